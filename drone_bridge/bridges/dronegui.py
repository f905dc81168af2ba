# SPDX-License-Identifier: Apache-2.0
"""dronegui_bridge: flies an AR.Drone through its control GUI, as a ROS 2 node. See docs/dronegui.md."""

import contextlib
import itertools
import time
from collections.abc import Callable, Coroutine
from typing import Any, Final

from geometry_msgs.msg import Twist
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.publisher import Publisher
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_msgs.msg import Bool, Empty
from std_srvs.srv import SetBool, Trigger

from drone_bridge.bridges.buttons import ButtonPanel
from drone_bridge.bridges.commands import CommandIntake
from drone_bridge.bridges.common_parameters import common_parameters
from drone_bridge.bridges.farewell import repeat_farewell
from drone_bridge.bridges.node import BridgeNode
from drone_bridge.links.cancellation import Cancellation
from drone_bridge.links.errors import LinkError, LinkRefusedError
from drone_bridge.links.pace import Pace
from drone_bridge.links.udp import UdpConnector, UdpStream
from drone_bridge.msg import DroneGuiState
from drone_bridge.parameters import ParameterDeclaration
from drone_bridge.program import run
from drone_bridge.protocols.dronegui import AXES, DEFAULT_PORT, FIRST_SEQ, ControllerConnection, Controls
from drone_bridge.translate import dronegui as translate
from drone_bridge.translate.dronegui import HOVER, FullScale
from drone_bridge.translate.frame_names import FrameNames

#: How often hover is said at the start, because UDP may lose some of them.
HOVER_PACKETS: Final = 3
#: The count of packets that nobody listened to, as far as the network tells.
UNHEARD: Final = "undelivered packets"

PARAMETERS: Final = (
    *common_parameters(DEFAULT_PORT, "The GUI's port.", roles=("connect",)),
    ParameterDeclaration("rate", 20.0, "Packets per second, with or without a new command.", (2.0, 200.0), live=True),
    ParameterDeclaration(
        "press_time", 0.5, "Seconds for which a service holds its button down.", range=(0.05, 5.0), live=True
    ),
    *(
        ParameterDeclaration(
            f"full_scale.{axis}", 1.0, f"The {field} of cmd_vel that means full {axis}.", range=(1e-3, 1e3), live=True
        )
        for axis, field in zip(AXES, ("linear.y", "linear.x", "angular.z", "linear.z"), strict=True)
    ),
    ParameterDeclaration(
        "hover_on_zero", False, "Press hover for a cmd_vel of zero, instead of holding the drone level.", live=True
    ),
    ParameterDeclaration(
        "first_packet_copies",
        1,
        "How often packet 1 is sent: lost, it leaves a receiver that has seen higher numbers deaf to the next ones.",
        range=(1, 10),
    ),
)


class DroneGuiBridge(BridgeNode):
    """Sends the controls at a steady rate: what is commanded while it is fresh, otherwise hover.

    Nothing ever comes back, so whether the drone flies is this node's own idea: a press of take_off turns it over.
    """

    open_state = "sending"
    peer_may_stay_mute = True
    rates = ("packets", "commands")
    problems = (*BridgeNode.problems, UNHEARD, "refused commands", "dropped messages")

    def __init__(self) -> None:
        super().__init__("dronegui_bridge", PARAMETERS)
        self._flying = False
        self._was_refused = False  # the packet before
        self._flying_publisher: Publisher[Any] | None = None
        self._is_hover_held = False
        self._buttons = ButtonPanel()
        # A press that is under way keeps nobody else waiting. Services are there from the start and say what is wrong.
        self._group = ReentrantCallbackGroup()
        self._press_ended = self.create_guard_condition(self._finish_presses, callback_group=self._group)
        self.create_service(Trigger, "takeoff", self._serve_takeoff, callback_group=self._group)
        self.create_service(Trigger, "land", self._serve_land, callback_group=self._group)
        self.create_service(Trigger, "reset", self._serve_reset, callback_group=self._group)
        self.create_service(SetBool, "hover", self._serve_hover, callback_group=self._group)
        self.create_service(SetBool, "assume_flying", self._serve_assume_flying, callback_group=self._group)

    # The lifecycle.

    def set_up(self) -> None:
        """Create publishers and subscriptions."""
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self._flying_publisher = self.make_publisher(Bool, "flying", latched)
        self._state_publisher = self.make_publisher(DroneGuiState, "dronegui/state", 10)
        self._frame_id = FrameNames(self.parameters["frame_prefix"]).base_link
        self._first_packet_copies = self.parameters["first_packet_copies"]
        self._commands: CommandIntake[Controls] = CommandIntake(self)
        self._commands.take_limited_velocities(self._read)
        for topic, press in (("takeoff", self._take_off), ("land", self._land), ("reset", self._reset)):
            self.make_subscription(Empty, topic, self._on_topic(topic, press), 1, callback_group=self._group)

    def make_endpoint(self, cancellation: Cancellation) -> UdpConnector:
        """Send to one peer, with numbers that start from 1 for as long as the node is active."""
        self._cancelled = cancellation
        self._connection = ControllerConnection()
        return UdpConnector(self.parameters["host"], self.parameters["port"], cancellation, self._connecting_failed)

    # The conversation, on the link's thread.

    def converse(self, stream: UdpStream) -> None:
        """Send the controls until cancelled, and leave the drone hovering, whatever has happened."""
        self._commands.mailbox.clear()
        self._buttons.open()
        self._publish_flying()
        pace = Pace(self._cancelled)
        try:
            for number in itertools.count():
                if number == HOVER_PACKETS:
                    self.opened()
                self._send(stream, HOVER if number < HOVER_PACKETS else self._commanded())
                pace.wait(1 / self.parameters["rate"])
        except Exception:
            self._leave_hovering(stream)
            raise
        finally:
            self._buttons.close()
            self._press_ended.trigger()

    def _commanded(self) -> Controls:
        """Return what the drone is to do now, but for the buttons that are pressed for a moment."""
        controls = None if self._is_hover_held else self._commands.follow()
        if controls is None:
            self.statistics.counts["hover packets"] += 1
            return HOVER
        if translate.is_zero(controls) and self.parameters["hover_on_zero"]:
            return HOVER
        return controls

    def _send(self, stream: UdpStream, controls: Controls) -> None:
        """Send one packet with the buttons that are pressed, and publish it. Raises LinkError."""
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
            if not self._cancelled.is_set:  # nothing is sent on after a farewell, and a GUI may leave before us
                self.reports.complain_while(UNHEARD, f"{error} Packets are sent on, for when somebody does.")
        if not was_refused and self._was_refused and not self._cancelled.is_set:
            self.reports.end(UNHEARD)
        self._was_refused = was_refused
        self.statistics.counts["packets"] += 1
        if self._buttons.sent(down, now_s, was_refused):
            self._press_ended.trigger()
        if self.is_wanted(self._state_publisher):
            message = translate.drone_gui_state(seq, controls, self.get_clock().now().to_msg())
            message.header.frame_id = self._frame_id
            self.publish(self._state_publisher, message)

    def _leave_hovering(self, stream: UdpStream) -> None:
        """Say hover, with all other buttons released, as the last thing there is to say."""

        def say_hover() -> None:
            with contextlib.suppress(LinkError):
                self._send(stream, HOVER)

        self._buttons.close()
        repeat_farewell(say_hover)

    # What the executor does.

    def _read(self, twist: Twist) -> tuple[Controls, bool]:
        full_scale = FullScale(*(self.parameters[f"full_scale.{axis}"] for axis in AXES))
        return translate.controls_from_twist(twist, full_scale)

    async def _take_off(self) -> str:
        self._buttons.check_released("take_off")  # what it does shows only afterwards
        if self._flying:
            raise ValueError(
                "The drone is taken to fly, and the take_off button would land it. If it is on the ground, "
                "call assume_flying with false first."
            )
        return await self._press("take_off", flying_afterwards=True)

    async def _land(self) -> str:
        self._buttons.check_released("take_off")  # what it does shows only afterwards
        if not self._flying:
            raise ValueError(
                "The drone is taken to be on the ground, and the take_off button would make it fly. If it flies, "
                "call assume_flying with true first."
            )
        return await self._press("take_off", flying_afterwards=False)

    async def _reset(self) -> str:
        return await self._press("reset", flying_afterwards=False)

    async def _press(self, button: str, flying_afterwards: bool) -> str:
        """Press a button, and return a sentence when it has been released. Raises ValueError with another one."""
        press = self._buttons.press(button, self.parameters["press_time"])
        await press.over
        self._buttons.forget(button)
        if press.was_refused:
            raise ValueError(f"{button} was not pressed: nobody listens at {self.statistics.peer}.")
        if not press.was_sent:
            raise ValueError(f"{button} was not pressed: nothing could be sent any more.")
        self._set_flying(flying_afterwards)
        if not press.was_released:
            raise ValueError(f"{button} was pressed, and then nothing could be sent any more.")
        return f"{button} was pressed and released."

    def _finish_presses(self) -> None:
        for press in self._buttons.over():
            if not press.over.done():
                press.over.set_result(None)

    def _set_flying(self, flying: bool) -> None:
        self._flying = flying
        self._publish_flying()

    def _publish_flying(self) -> None:
        if self._flying_publisher:  # which says nothing while the node is not active
            self.publish(self._flying_publisher, Bool(data=self._flying))

    def _on_topic(self, topic: str, press: Callable[[], Coroutine[Any, Any, str]]) -> Callable[[Empty], Any]:
        """Return what an empty message does: the same as the service of that name, with nobody to answer to."""

        async def receive(_: Empty) -> None:
            try:
                self.inform(await press())
            except ValueError as error:
                self.complain("refused commands", f"A message on {topic} was refused: {error}")

        return receive

    async def _serve_takeoff(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        return await self._answer(self._take_off(), response)

    async def _serve_land(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        return await self._answer(self._land(), response)

    async def _serve_reset(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        return await self._answer(self._reset(), response)

    async def _answer(self, press: Coroutine[Any, Any, str], response: Trigger.Response) -> Trigger.Response:
        try:
            response.message, response.success = await press, True
        except ValueError as error:
            response.message, response.success = str(error), False
            self.complain("refused commands", response.message)
        return response

    def _serve_hover(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        self._is_hover_held = request.data
        response.success = True
        response.message = (
            "The drone hovers, whatever is commanded." if request.data else "The drone follows commands again."
        )
        return response

    def _serve_assume_flying(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        self._set_flying(request.data)
        response.success = True
        response.message = f"The drone is taken to {'fly' if request.data else 'be on the ground'}."
        return response


def main() -> int:
    """Run the node."""
    return run(DroneGuiBridge)
