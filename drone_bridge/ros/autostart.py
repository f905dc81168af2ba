# SPDX-License-Identifier: Apache-2.0
"""Autostart: configures and activates a node by itself, and again where that may help. For the executor."""

from collections.abc import Callable
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.clock import Clock, ClockType  # type: ignore[attr-defined] # where humble has it, too
from rclpy.lifecycle import LifecycleNode, TransitionCallbackReturn

from drone_bridge.net.connector import LinkError
from drone_bridge.ros.parameters import UNCONFIGURED, DeclaredParameters
from drone_bridge.ros.status_publisher import StatusPublisher

#: How often a node that could not start reports that, and one whose port was taken tries again.
PERIOD_S = 2.0


class Autostart:
    """The start of a node that nobody has to configure.

    A node that can't start stays up, unconfigured, as ending it would not help: it reports an error on /diagnostics
    until its port is free, its parameters are set to what is allowed, or somebody configures it.
    """

    def __init__(
        self,
        node: LifecycleNode,
        parameters: DeclaredParameters,
        status: StatusPublisher,
        hardware_id: Callable[[], str],
    ) -> None:
        """`hardware_id` returns that of the status, by the present parameters."""
        self._node, self._parameters, self._status, self._hardware_id = node, parameters, status, hardware_id
        self._failure: Exception | None = None  # of the last attempt
        self._is_trying = False

    def start(self) -> None:
        """Configure and activate the node, now or later."""
        if self._has_started():
            return
        advice = (
            f"This is tried again every {PERIOD_S:g} s."
            if isinstance(self._failure, LinkError)
            else "The node stays unconfigured until its parameters are set to what is allowed."
        )
        self._node.get_logger().error(f"{self._failure or 'The start failed.'} {advice}")
        self._timer = self._node.create_timer(PERIOD_S, self._retry, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def takes(self, failure: Exception) -> bool:
        """Note why a transition failed; return whether it was ours, which is not logged at each attempt."""
        if self._is_trying:
            self._failure = failure
        return self._is_trying

    def _has_started(self) -> bool:
        """Try to configure and activate; return whether that worked. If not, `_failure` says why."""
        success = TransitionCallbackReturn.SUCCESS
        self._failure, self._is_trying = None, True
        self._tried_settings = self._settings()
        try:
            if self._node.trigger_configure() != success:
                return False
            if self._node.trigger_activate() == success:
                return True
            self._node.trigger_cleanup()  # so that the parameters can be changed
            return False
        finally:
            self._is_trying = False

    def _settings(self) -> tuple[dict[str, Any], dict[str, str]]:
        """Return the values of the parameters, and which values were refused."""
        return self._parameters.values(), dict(self._parameters.refused)

    def _retry(self) -> None:
        """Report an unconfigured node, and try to start it where that may help."""
        is_unconfigured = not self._parameters.are_frozen
        waits_for_port = isinstance(self._failure, LinkError)
        if is_unconfigured and (waits_for_port or self._settings() != self._tried_settings):
            is_unconfigured = not self._has_started()
        if not is_unconfigured:
            self._timer.cancel()
            return
        message = f"{UNCONFIGURED}: {self._failure or 'the start failed, see the log.'}"
        status = DiagnosticStatus(level=DiagnosticStatus.ERROR, name=self._status.name, message=message)
        status.hardware_id = self._hardware_id()
        self._status.publish(status)
