# SPDX-License-Identifier: Apache-2.0
"""Autostart: configures and activates a node at its start, with retries. For the executor."""

from collections.abc import Callable
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.lifecycle import LifecycleNode, TransitionCallbackReturn

from drone_bridge.net.connector import LinkError
from drone_bridge.ros.node.parameters import UNCONFIGURED, DeclaredParameters
from drone_bridge.ros.node.status_publisher import StatusPublisher
from drone_bridge.ros.steady_timer import steady_timer

#: Period of the reports of a node that could not start, and of the retries if its port was taken.
PERIOD_S = 2.0


class IncorrigibleError(ValueError):
    """Failure of a start that no parameter can mend, but its program."""


class Autostart:
    """Automatic start of a lifecycle node.

    A node that can't start stays up, unconfigured, since a restart would not help. It reports an error on /diagnostics
    until its port is free, its parameters are valid, or a user configures it.
    """

    def __init__(
        self,
        node: LifecycleNode,
        parameters: DeclaredParameters,
        status: StatusPublisher,
        hardware_id: Callable[[], str],
    ) -> None:
        """`hardware_id` returns the status's hardware_id, by the present parameters."""
        self._node, self._parameters, self._status, self._hardware_id = node, parameters, status, hardware_id
        self._failure: Exception | None = None  # error of the last attempt
        self._is_trying = False
        #: Whether this object reports a start that has failed.
        self.is_reporting = False

    def start(self) -> None:
        """Configure and activate the node. If that fails, start the timer for reports and retries."""
        if self._has_started():
            return
        advice = "The node stays unconfigured until its parameters are set to allowed values."
        if isinstance(self._failure, LinkError):
            advice = f"This is tried again every {PERIOD_S:g} s."
        elif self._failure is None or isinstance(self._failure, IncorrigibleError):
            advice = "The node stays unconfigured: mend this, and start it again."
        self._node.get_logger().error(f"{self._failure or 'The start failed.'} {advice}")
        self.is_reporting = True
        self._timer = steady_timer(self._node, PERIOD_S, self._retry)

    def takes(self, failure: Exception) -> bool:
        """Store the error of a failed transition. Return True if this object requested it: retries are not logged."""
        if self._is_trying:
            self._failure = failure
        return self._is_trying

    def _has_started(self) -> bool:
        """Try to configure and activate. Return True on success; otherwise `_failure` has the error, if known."""
        success = TransitionCallbackReturn.SUCCESS
        self._failure, self._is_trying = None, True
        self._tried_settings = self._settings()
        try:
            if self._node.trigger_configure() != success:
                return False
            if self._node.trigger_activate() == success:
                return True
            self._node.trigger_cleanup()  # parameters can be changed only while unconfigured
            return False
        finally:
            self._is_trying = False

    def _settings(self) -> tuple[dict[str, Any], dict[str, str]]:
        """Return the values of the parameters, and the errors of refused values."""
        return self._parameters.values(), dict(self._parameters.refused)

    def _retry(self) -> None:
        """Report an unconfigured node. Retry the start if its port was taken, or if its parameters have changed."""
        is_unconfigured = not self._parameters.are_frozen
        waits_for_port = isinstance(self._failure, LinkError)
        if is_unconfigured and (waits_for_port or self._settings() != self._tried_settings):
            is_unconfigured = not self._has_started()
        if not is_unconfigured:
            self._timer.cancel()
            self.is_reporting = False
            return
        message = f"{UNCONFIGURED}: {self._failure or 'the start failed, see the log.'}"
        status = DiagnosticStatus(level=DiagnosticStatus.ERROR, name=self._status.name, message=message)
        status.hardware_id = self._hardware_id()
        self._status.publish(status)
