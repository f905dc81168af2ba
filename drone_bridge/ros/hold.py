# SPDX-License-Identifier: Apache-2.0
"""Hold: a vehicle that stays neutral, whatever is commanded, until a person says otherwise. See docs/bridges.md.

It is set by the service `~/hold`, and by the end of a person's helm: commands on `~/helm` are those of somebody at a
stick, and lock all others out; when they end, however they end, nothing more has to be sent for the vehicle to be
held. Somebody may be at the helm again then, but after the service was called only that service helps: see
`session.hold_state`. A file keeps it for a node that is killed and comes back, see `hold_file`.
"""

import contextlib
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rclpy.publisher import Publisher
from std_msgs.msg import Bool
from std_srvs.srv import SetBool

from drone_bridge.net.clock import elapsed_s
from drone_bridge.ros.hold_file import HoldFile
from drone_bridge.ros.publishers import NO_EVENTS, PUBLISHER_ERRORS
from drone_bridge.ros.qos import latched
from drone_bridge.session.hold_state import AT_HELM, CALLED, HoldState

if TYPE_CHECKING:
    from drone_bridge.ros.vehicle_node import VehicleNode

#: The count of commands that were refused because the vehicle is held, or because somebody is at its helm.
REFUSED = "commands_refused_on_hold"
HELD = "hold"  # of conditions
_ADVICE = "call the service hold with false, or press Resume on the page, to let it follow commands"


class Hold:
    """Whether a node's vehicle is held. Changed in the executor, read by any thread without a lock."""

    def __init__(self, node: "VehicleNode", topic: str) -> None:
        """Find out whether the node was holding when it ended; `topic` is where it says so."""
        self._node = node
        self._file = HoldFile(node.context.get_domain_id(), node.get_fully_qualified_name())
        self._unkept = ""  # why the file does not say what is so
        self._lock = threading.Lock()  # between the executor and the reports; never taken by the link's thread
        self._on_hold: list[Callable[[], None]] = []
        #: What there is to know of it.
        self.state = HoldState(reason := self._read())
        self._publisher: Publisher[Any] = node.create_publisher(Bool, topic, latched(), event_callbacks=NO_EVENTS)
        node.create_service(SetBool, "~/hold", self._serve)
        self._publish()
        if reason:
            node.get_logger().warning(f"It was holding when it ended ({reason}), and still holds: {_ADVICE}.")

    @property
    def is_held(self) -> bool:
        """Whether the vehicle has to be neutral."""
        return self.state.look(elapsed_s())[0]

    def when_set(self, call: Callable[[], None]) -> None:
        """Have a function called in the executor whenever the vehicle is about to be held, until cleanup."""
        self._on_hold.append(call)
        self._node.cleanup.callback(self._on_hold.remove, call)

    def check(self, what: str) -> None:
        """Raise ValueError with a sentence if the vehicle is held, for what moves it."""
        if reason := self.state.reason(elapsed_s()):
            raise ValueError(f"{what} is refused while the vehicle is held ({reason}): {_ADVICE}.")

    def admits(self, topic: str, *, is_helm: bool = False) -> bool:
        """Return whether a command is to be followed; one that is not is counted. For the executor."""
        if self._take_helm() if is_helm else self.state.is_free:
            return True
        reason = self.state.reason(elapsed_s())
        why = f"it is held ({reason}): {_ADVICE}" if reason else "somebody is at its helm"
        self._node.reports.count_and_warn_ongoing(REFUSED, f"Commands on {topic} do not move the vehicle: {why}.")
        return False

    def report(self) -> None:
        """Notice the end of a helm, and report. To be called now and then, in another thread than the link's."""
        with self._lock:
            if self.state.end_helm(elapsed_s()):
                self._held()
        reason = self.state.reason(elapsed_s())
        self._node.reports.update_condition(HELD, f"holding: {reason}" if reason else None, _ADVICE)

    def _take_helm(self) -> bool:
        """Note a command from the helm; return whether it is followed."""
        with self._lock:
            was_held = bool(self.state.now[0])
            if self.state.steer(elapsed_s()):
                self._write(AT_HELM)  # for a bridge that is killed meanwhile
                self._node.inform("Somebody is at the helm: other commands are refused.")
                self._forget_commands()
                if was_held:
                    self._publish()
            return not self.is_held

    def _serve(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        if not request.data:
            try:
                self._node.check_age("hold with false")
            except ValueError as error:
                response.message = str(error)
                return response
        with self._lock:
            if request.data:
                if self.state.hold(CALLED):
                    self._held()
                elif self._unkept:
                    self._write(CALLED)
                response.message = f"The vehicle is held: {_ADVICE}. {self._unkept or f'{self._file.path} keeps that.'}"
            else:
                self._release()
                response.message = f"The vehicle follows commands. {self._unkept}".rstrip()
        response.success = True
        self.report()
        return response

    def _held(self) -> None:
        """Do what belongs to a hold that has just begun."""
        self._forget_commands()
        self._publish()
        self._write(self.state.now[0])

    def _release(self) -> None:
        if not self.is_held:
            return
        self._forget_commands()
        self.state.release(elapsed_s())
        self._write("" if self.state.is_free else AT_HELM)
        self._node.reports.end_ongoing(REFUSED)
        self._publish()

    def _forget_commands(self) -> None:
        for call in tuple(self._on_hold):
            call()

    def _publish(self) -> None:
        with contextlib.suppress(*PUBLISHER_ERRORS):
            self._publisher.publish(Bool(data=bool(self.state.now[0])))

    # The file.

    def _read(self) -> str:
        """Return why the node was holding, or an empty string."""
        try:
            return self._file.read()
        except OSError as error:
            self._node.get_logger().warning(
                f"Whether the vehicle was held can't be read from {self._file.path}: {error}."
            )
            return ""

    def _write(self, reason: str) -> None:
        """Keep the reason for a node that comes back; an empty one ends it."""
        try:
            if reason:
                self._file.write(reason)
            else:
                self._file.remove()
        except OSError as error:
            self._unkept = (
                f"If this node is killed, it will not know that its vehicle was held: {self._file.path} can't be "
                f"written ({error})."
                if reason
                else f"If this node is killed, it will hold again: {self._file.path} can't be removed ({error})."
            )
            self._node.get_logger().warning(self._unkept)
        else:
            self._unkept = ""
