# SPDX-License-Identifier: Apache-2.0
"""dronegui_bridge: flies an AR.Drone through its control GUI, as a ROS 2 node. See docs/dronegui.md."""

import contextlib
import itertools
import time
from collections.abc import Callable, Coroutine
from typing import Any, Final

from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import Twist
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.exceptions import InvalidHandle
from rclpy.publisher import Publisher
from std_msgs.msg import Bool, Empty
from std_srvs.srv import SetBool, Trigger

from drone_bridge.dronegui.bridge.buttons import ButtonPanel
from drone_bridge.dronegui.bridge.flight_commands import FlightCommands
from drone_bridge.dronegui.bridge.flight_watch import FlightWatch, Source
from drone_bridge.dronegui.bridge.navdata import PROBLEMS, NavdataOutputs, NavdataPort
from drone_bridge.dronegui.bridge.parameters import PARAMETERS
from drone_bridge.dronegui.codec import FIRST_SEQ, ControllerConnection, Controls, Demo, FlightState, Navdata
from drone_bridge.dronegui.topics import controls as translate
from drone_bridge.dronegui.topics.controls import HOVER, FullScale
from drone_bridge.msg import DroneGuiState
from drone_bridge.net.connector import Cancellation, LinkCancelledError, LinkError, LinkRefusedError
from drone_bridge.net.udp import UdpConnector, UdpStream
from drone_bridge.ros.commands import CommandIntake
from drone_bridge.ros.common_parameters import frame_names, read_group
from drone_bridge.ros.frames import DroneFrameNames
from drone_bridge.ros.lease import with_lease
from drone_bridge.ros.link_node import LinkNode, repeat_farewell
from drone_bridge.ros.program import run
from drone_bridge.ros.topics import latched

#: Hover packets at the start, as UDP may lose some.
HOVER_PACKETS: Final = 3
#: The count of packets for which the network reported that nobody listens.
UNHEARD: Final = "undelivered packets"

# Conditions in diagnostics.
NO_NAVDATA: Final = "navdata"
EMERGENCY: Final = "emergency"


class DroneGuiBridge(LinkNode):
    """Sends the controls at a steady rate: the newest command while it is fresh, otherwise hover.

    Whether the drone flies is known from navdata, or from a person; until one of them says so it is unknown, and what
    could do the opposite of what is wanted is refused. Without navdata it is then assumed from the commands, and
    service responses say so.
    """

    open_state = "sending"
    peer_may_be_silent = True
    rates = ("packets", "commands", "navdata", "detections")
    problems = (*LinkNode.problems, UNHEARD, "refused commands", "dropped messages", *PROBLEMS)

    def __init__(self, **options: Any) -> None:
        super().__init__("dronegui_bridge", PARAMETERS, **options)
        self._is_flying: bool | None = None  # as published
        self._flying_publisher: Publisher[Any] | None = None
        self._is_hover_held = False
        self._was_refused = False  # the previous packet
        # Reentrant, as presses take time. Services always exist, and return an error until connected.
        self._group = ReentrantCallbackGroup()
        self._wait_ended = self.create_guard_condition(self._finish_waits, callback_group=self._group)
        self._buttons = ButtonPanel()
        self._watch = FlightWatch(self._wait_ended.trigger)
        self._flight = FlightCommands(
            self,
            self._buttons,
            self._watch,
            self._assume_flying,
            expects_link=self._expects_link,
            wake_executor=self._end_waits_soon,
        )
        for name, command in self._flight_commands():
            self.make_service(Trigger, name, self._on_call(name, command), callback_group=self._group)
        self.make_service(SetBool, "hover", self._serve_hover, callback_group=self._group)
        self.make_service(SetBool, "assume_flying", self._serve_assume_flying, callback_group=self._group)

    def _flight_commands(self) -> tuple[tuple[str, Callable[[], Coroutine[Any, Any, str]]], ...]:
        """Return the commands that are both a service and a topic."""
        return ("takeoff", self._flight.take_off), ("land", self._flight.land), ("reset", self._flight.reset)

    # The lifecycle.

    def set_up(self) -> None:
        self._flying_publisher = self.make_publisher(Bool, "flying", with_lease(latched()))
        self._state_publisher = self.make_publisher(DroneGuiState, "dronegui/state", 10)
        names = frame_names(self.parameters, DroneFrameNames)
        self._frame_id = names.base_link
        self._first_packet_copies = self.parameters["first_packet_copies"]
        self._flight.receives_navdata = self.parameters["receive_navdata"]
        if self.parameters["initially"] == "landed":
            self._watch.begin(is_flying=False)
        if self._flight.receives_navdata:
            self._outputs = NavdataOutputs(self, names)
        self._commands: CommandIntake[Controls] = CommandIntake(self)
        self._commands.take_limited_velocities(self._read, ("linear.x", "linear.y", "linear.z", "angular.z"))
        for name, command in self._flight_commands():
            self.make_subscription(Empty, name, self._on_topic(name, command), 1, callback_group=self._group)

    def make_endpoint(self, cancellation: Cancellation) -> UdpConnector:
        """Send to one peer, with sequence numbers that start at 1 when the node is activated."""
        self._cancelled = cancellation
        self._connection = ControllerConnection()
        self._flight.was_reset_pressed = False
        self._watch.listen()
        self._is_flying = None
        if self._flight.receives_navdata:
            self._outputs.restart()
        host, port = self.parameters["host"], self.parameters["port"]
        return UdpConnector(host, port, cancellation, self._connecting_failed, self.wire_log)

    # The conversation, on the link's thread.

    def prepare(self) -> None:
        """Forget old commands."""
        self._commands.mailbox.clear()

    def converse(self, stream: UdpStream) -> None:
        """Send the controls and receive navdata until cancelled; leave the drone hovering in any case."""
        port = NavdataPort(self, stream, self._connection, self._cancelled, self._take_navdata)
        self._flight.navdata_port = port if self._flight.receives_navdata else None
        self._buttons.open()
        self._watch.open()
        self._end_waits_soon()
        if (is_flying := self._flight.is_flying) is not None:
            self._publish_flying(is_flying)
        elif not self._flight.receives_navdata:
            self.inform(f"Whether the drone flies is unknown: {self._flight.advice}.")
        due_s = time.monotonic()
        try:
            for number in itertools.count():
                if number == HOVER_PACKETS:
                    self.opened()
                self._send(stream, HOVER if number < HOVER_PACKETS else self._commanded())
                # After a delay, continue from now without catching up.
                due_s = max(due_s + 1 / self.parameters["rate"], time.monotonic())
                self._receive_until(due_s)
        except Exception:
            self._leave_hovering(stream)
            raise
        finally:
            self._flight.navdata_port = None
            port.close()
            self.statistics.end_condition(NO_NAVDATA)
            self.statistics.end_condition(EMERGENCY)
            self._buttons.close()
            self._watch.close()  # which wakes the executor

    def _commanded(self) -> Controls:
        """Return the controls to send, without momentary button presses."""
        controls = None if self._is_hover_held else self._commands.follow()
        if controls is None:
            self.statistics.counts["hover packets"] += 1
            return HOVER
        if translate.is_zero(controls) and self.parameters["hover_on_zero"]:
            return HOVER
        return controls

    def _send(self, stream: UdpStream, controls: Controls) -> None:
        """Send a packet with the pressed buttons, and publish it. Raises LinkError."""
        now_s = time.monotonic()
        down = self._buttons.down(now_s)
        controls = translate.with_buttons(controls, down)
        seq = self._connection.next_seq
        datagram = self._connection.send(controls)
        was_refused = False
        try:
            for _ in range(self._first_packet_copies if seq == FIRST_SEQ else 1):
                stream.send(datagram)
        except LinkRefusedError as error:
            was_refused = True
            if not self._cancelled.is_set:  # the GUI may have closed before us
                self.reports.count_and_warn_ongoing(UNHEARD, f"{error} Packets are still sent.")
        if not was_refused and self._was_refused and not self._cancelled.is_set:
            self.reports.end_ongoing(UNHEARD)
        self._was_refused = was_refused
        self.statistics.counts["packets"] += 1
        if self._buttons.sent(down, now_s, was_refused):
            self._wait_ended.trigger()
        if self.is_wanted(self._state_publisher):
            message = translate.drone_gui_state(seq, controls, self.get_clock().now().to_msg())
            message.header.frame_id = self._frame_id
            self.publish(self._state_publisher, message)

    def _receive_until(self, due_s: float) -> None:
        """Receive navdata until a time of time.monotonic. Raises LinkCancelledError."""
        if port := self._flight.navdata_port:
            port.receive_until(due_s)
            self._report_navdata()
        elif self._cancelled.wait(max(0.0, due_s - time.monotonic())):
            raise LinkCancelledError("Waiting was cancelled.")
        self._watch.end_overdue()

    def _take_navdata(self, block: Navdata, datagram: bytes) -> None:
        received_s = time.monotonic()
        self.statistics.liveness.heard()
        if isinstance(block, Demo):
            self._watch.note(block.flight_state)
            self._flight.was_reset_pressed = False  # if the GUI falls silent after this, it may be a new one
            if self._watch.is_flying is not None and self._watch.is_flying != self._is_flying:
                self._publish_flying(self._watch.is_flying)
            self.statistics.facts |= translate.navdata_facts(block)
        self._outputs.publish(block, datagram, self.now())
        self.statistics.took("navdata read to published", time.monotonic() - received_s)

    def _report_navdata(self) -> None:
        """Report in diagnostics whether navdata arrives, and an emergency."""
        if self._flight.hears_gui:
            self.statistics.end_condition(NO_NAVDATA)
        elif self._watch.listened_s > self.parameters["navdata_timeout"]:
            sentence = f"no navdata: {self._flight.blind_reason}"
            if self._flight.is_flying is None:
                sentence += f", and whether the drone flies is unknown: {self._flight.advice}"
            self._begin_condition(NO_NAVDATA, sentence, DiagnosticStatus.WARN)
        if self._flight.sees_drone and self._watch.state is FlightState.DEFAULT:
            sentence = "the drone's motors are off, as after an emergency: call reset when it is on the ground"
            self._begin_condition(EMERGENCY, sentence, DiagnosticStatus.ERROR)
        else:
            self.statistics.end_condition(EMERGENCY)

    def _begin_condition(self, name: str, sentence: str, level: bytes) -> None:
        """Begin a condition, and log it the first time."""
        if name not in self.statistics.conditions:
            self.warn(f"{sentence[0].upper()}{sentence[1:]}.")
        self.statistics.begin_condition(name, sentence, level)

    def _leave_hovering(self, stream: UdpStream) -> None:
        """Send hover, with all other buttons released, as the last packets."""

        def send_hover() -> None:
            with contextlib.suppress(LinkError):
                self._send(stream, HOVER)

        self._buttons.close()
        repeat_farewell(send_hover)

    # What the executor does.

    def _read(self, twist: Twist) -> tuple[Controls, bool]:
        return translate.controls_from_twist(twist, read_group(self.parameters, "full_scale", FullScale))

    def _finish_waits(self) -> None:
        for press in self._buttons.over():
            if not press.over.done():
                press.over.set_result(None)
        for wait in self._buttons.ended_waits(time.monotonic()):
            wait.set_result(None)
        self._watch.finish()

    def _end_waits_soon(self) -> None:
        with contextlib.suppress(InvalidHandle):  # the node is gone, and nobody waits any more
            self._wait_ended.trigger()

    def _expects_link(self) -> bool:
        return self._link is not None

    def _assume_flying(self, is_flying: bool, source: Source = Source.PRESS) -> None:
        self._watch.assume(is_flying, source)
        self._publish_flying(is_flying)

    def _publish_flying(self, is_flying: bool) -> None:
        self._is_flying = is_flying
        if self._flying_publisher:  # a lifecycle publisher, silent while inactive
            self.publish(self._flying_publisher, Bool(data=is_flying))

    def _on_topic(self, topic: str, command: Callable[[], Coroutine[Any, Any, str]]) -> Callable[[Empty], Any]:
        """Return a callback that runs a command for an empty message."""

        async def receive(_: Empty) -> None:
            try:
                self._check_hold(topic)
                self.inform(await command())
            except ValueError as error:
                self.count_and_warn("refused commands", f"A message on {topic} was refused: {error}")

        return receive

    def _check_hold(self, name: str) -> None:
        """Raise ValueError for a command that is refused while the drone is held, or that may have waited for long."""
        if name != "land":
            self.hold.check(name)
        if name == "takeoff" and not self.takes_commands():
            raise ValueError("This process has just stood still, and takeoff may have waited meanwhile: call it again.")

    def _on_call(self, name: str, command: Callable[[], Coroutine[Any, Any, str]]) -> Callable[[Any, Any], Any]:
        """Return a callback that runs a command for a service call."""

        async def serve(_: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
            try:
                self._check_hold(name)
                response.message, response.success = await command(), True
            except ValueError as error:
                response.message, response.success = str(error), False
                self.count_and_warn("refused commands", response.message)
            return response

        return serve

    def _serve_hover(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        if self._is_hover_held and not request.data and self._expects_link():
            self._commands.mailbox.forget()  # it hovers on until it is told something new
        self._is_hover_held = request.data
        response.success = True
        response.message = (
            "The drone hovers, whatever is commanded." if request.data else "The drone follows commands again."
        )
        return response

    def _serve_assume_flying(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        if self._flight.sees_drone:
            response.message = f"Nothing needs to be assumed: navdata says {self.statistics.facts['flight state']}."
            return response
        self._assume_flying(request.data, Source.PERSON)
        response.success = True
        response.message = f"The drone is assumed to {'fly' if request.data else 'be on the ground'}."
        if not request.data and self._flight.needs_bootstrap:
            response.message += " takeoff will press reset, which stops the motors of a drone that flies."
        return response


def main() -> int:
    """Run the node."""
    return run(DroneGuiBridge)
