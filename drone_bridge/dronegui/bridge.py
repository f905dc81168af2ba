# SPDX-License-Identifier: Apache-2.0
"""dronegui_bridge: flies an AR.Drone through its control GUI, as a ROS 2 node. See docs/dronegui.md.

`session.controller` has the state machine, including take-off and landing. This node adds topics, parameters, services
and a link.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus
from std_msgs.msg import Empty
from std_srvs.srv import SetBool

from drone_bridge.ar_drone.bridge import ODOMETRY_PARAMETERS, ArDroneNode, video_parameters
from drone_bridge.ar_drone.cameras import CAMERAS
from drone_bridge.ar_drone.drone import AR_DRONE
from drone_bridge.ar_drone.flight_state import FlyingReport
from drone_bridge.dronegui.codec import DEFAULT_PORT, DEFAULT_VIDEO_PORT, Demo
from drone_bridge.dronegui.pictures.packets import VIDEO_ROW, GuiVideoPort
from drone_bridge.dronegui.ports import NavdataPeer
from drone_bridge.dronegui.session.controller import (
    NOT_SENDING,
    SENDING,
    DroneGuiControllerParameters,
    DroneGuiControllerSession,
    NavdataBlock,
    SentPacket,
)
from drone_bridge.dronegui.session.requests import RESET, TAKE_OFF
from drone_bridge.dronegui.topics import TOPICS, DroneGuiTranslation, drone_gui_state, navdata_facts
from drone_bridge.msg import DroneGuiState
from drone_bridge.net.clock import Clock
from drone_bridge.pictures.video_port import video_log
from drone_bridge.ros.commands.tilt_commands import drone_parameters, read_drone
from drone_bridge.ros.node.common_parameters import common_parameters
from drone_bridge.ros.node.limit_reports import limit_parameters
from drone_bridge.ros.node.parameters import ParameterDeclaration, declarations, read
from drone_bridge.ros.node.program import run
from drone_bridge.ros.node.protocol_node import REFUSED_COMMANDS
from drone_bridge.ros.topics.frames import DroneFrameNames
from drone_bridge.session.session import EMERGENCY, LAND
from drone_bridge.wire.counters import ProblemCounter

PARAMETERS = (
    *common_parameters(DEFAULT_PORT, "Port of the GUI.", roles=("connect",)),
    *declarations(DroneGuiControllerParameters),
    *drone_parameters(AR_DRONE),
    ParameterDeclaration(
        "receive_navdata",
        True,
        "Listen for navdata. Disable it for a GUI that sends none: assume_flying then sets whether the drone flies.",
    ),
    *ODOMETRY_PARAMETERS,
    *video_parameters(DEFAULT_VIDEO_PORT, "Local port to which the GUI forwards the drone's video.", *CAMERAS),
    *limit_parameters(is_drone=True, tells_battery=True, land_unattended_s=0.0),  # a person may fly by the GUI, unseen
)

#: Counter of failed attempts to bind the navdata port.
PORT_UNAVAILABLE = ProblemCounter("missed_navdata_ports")
#: Services with an empty request.
REQUESTS = (TAKE_OFF, LAND, RESET, EMERGENCY)


class DroneGuiBridge(ArDroneNode):
    """Sends controls at a steady rate, publishes navdata, and takes off and lands on request."""

    open_state = SENDING
    conditions = (
        ("navdata", DiagnosticStatus.WARN),
        ("emergency", DiagnosticStatus.ERROR),
    )
    _session: DroneGuiControllerSession | None

    def __init__(self, **options: Any) -> None:
        super().__init__("dronegui_bridge", PARAMETERS, REQUESTS, **options)
        self._steady_clock = Clock()
        group = self._requests.group
        self.create_service(SetBool, "~/assume_flying", self._serve_assume_flying, callback_group=group)

    def set_up(self) -> None:
        names = read(DroneFrameNames, self.parameters)
        self._frame_id = names.base_link
        self._sent_states = self.make_publisher(DroneGuiState, "dronegui/state", 10)
        self._translation = DroneGuiTranslation(names)
        rows = TOPICS if self.parameters["receive_navdata"] else ()
        self.set_up_drone(read_drone(self.parameters, AR_DRONE), self._translation, rows, CAMERAS, VIDEO_ROW)
        for name in REQUESTS:
            self.make_subscription(Empty, name, self._on_message(name), 1, callback_group=self._requests.group)

    def make_transport(self) -> NavdataPeer:
        """Send to the GUI, and listen for navdata at our address towards it."""
        get = self.parameters.__getitem__
        self._link_to_gui = NavdataPeer(
            get("host"),
            get("port"),
            get("navdata_port") if get("receive_navdata") else None,
            self.connecting_failed,
            self.wire_log,
            on_port=self._warn_of_port,
            clock=self._steady_clock,
        )
        return self._link_to_gui

    def new_session(self, *common: Any, **more: Any) -> DroneGuiControllerSession:
        """Create a session, which numbers packets from 1."""
        link = self._link_to_gui
        port_problem = (lambda: link.problem) if self.parameters["receive_navdata"] else None
        gui_host = lambda: link.peer_host  # noqa: E731
        more["parameters"] = self.parameters.live(DroneGuiControllerParameters)
        return DroneGuiControllerSession(*common, gui_host=gui_host, port_problem=port_problem, **more)

    def video(self) -> GuiVideoPort:
        get, link = self.parameters.__getitem__, self._link_to_gui
        return GuiVideoPort(get("video_port"), lambda: link.hosts, video_log(self.wire_log))

    # Events of the session, on the link's thread.

    def publish_event(self, message: NavdataBlock | SentPacket | FlyingReport) -> None:
        """Publish navdata, a sent packet, or whether the drone flies."""
        if isinstance(message, NavdataBlock):
            self._publish_navdata(message)
        elif isinstance(message, FlyingReport):
            self.publish_flying(message.is_flying)
        elif self.is_wanted(self._sent_states):
            state = drone_gui_state(message.seq, message.controls, self.get_clock().now().to_msg())
            state.header.frame_id = self._frame_id
            self.publish(self._sent_states, state)

    def _publish_navdata(self, received: NavdataBlock) -> None:
        block, stamp = received.block, self.now()
        self._topics.publish(received.datagram, stamp)
        self._topics.publish(block, stamp)
        if isinstance(block, Demo):
            self.publish_pose(self._translation.converted(block), stamp)
            self.report.facts |= navdata_facts(block) | {"navdata_source": received.source}
        self.report.record_duration("navdata_read_to_published", self._steady_clock.now_s() - self.decided_s)

    def _warn_of_port(self, address: str, problem: str) -> None:
        if problem:
            sentence = f"{problem} There is no navdata without it. Retrying."
            self.report.count_and_warn_ongoing(PORT_UNAVAILABLE, sentence)
        else:
            self.report.end_ongoing(PORT_UNAVAILABLE)
            self.report.inform(f"Listening for navdata on {address}.")

    # For the executor.

    def _ask_to_assume(self, is_flying: bool, request: Any, now_s: float) -> Any:
        assert self._session
        return self._session.assume_flying(is_flying, request, now_s)

    def _refusal(self, name: str) -> str | None:
        """Return why a button can't be pressed, or None."""
        if self._session and self._session.is_open:
            return None
        return f"{name} {NOT_SENDING}"

    def _on_message(self, name: str) -> Callable[[Empty], Any]:
        """Return a callback that makes a request for an empty message."""

        async def receive(_: Empty) -> None:
            try:
                self.report.inform(await self._requests.request(name))
            except ValueError as error:
                self.report.count_and_warn(REFUSED_COMMANDS, f"A message on {name} was refused: {error}")

        return receive

    async def _serve_assume_flying(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        """Accept a person's statement."""
        try:
            ask = partial(self._ask_to_assume, request.data)
            response.message = await self._requests.request("assume_flying", ask, moves=False)
            response.success = True
        except ValueError as error:
            response.message = str(error)
        return response


def main() -> int:
    """Run the node."""
    return run(DroneGuiBridge)
