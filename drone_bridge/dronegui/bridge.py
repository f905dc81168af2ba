# SPDX-License-Identifier: Apache-2.0
"""dronegui_bridge: flies an AR.Drone through its control GUI, as a ROS 2 node. See docs/dronegui.md.

`session.controller` has the state machine, including take-off and landing. This node adds topics, parameters, services
and a link.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.publisher import Publisher
from std_msgs.msg import Bool, Empty
from std_srvs.srv import SetBool

from drone_bridge.ar_drone.cameras import CAMERAS, camera_of
from drone_bridge.ar_drone.drone import AR_DRONE
from drone_bridge.dronegui.codec import DEFAULT_NAVDATA_PORT, DEFAULT_PORT, DEFAULT_VIDEO_PORT, Demo
from drone_bridge.dronegui.pictures.packets import VIDEO_ROW, GuiVideoPort
from drone_bridge.dronegui.ports import NavdataPeer
from drone_bridge.dronegui.session.controller import (
    NOT_SENDING,
    RESET,
    SENDING,
    TAKE_OFF,
    DroneGuiControllerSession,
    FlyingReport,
    NavdataBlock,
    SentPacket,
)
from drone_bridge.dronegui.topics import (
    TOPICS,
    DroneGuiTranslation,
    charge_note,
    drone_gui_state,
    navdata_facts,
)
from drone_bridge.motion.dead_reckoning import DeadReckonedPose, DeadReckoning
from drone_bridge.msg import DroneGuiState
from drone_bridge.net.clock import Clock, elapsed_s
from drone_bridge.pictures.camera import CameraTopics, camera_parameters
from drone_bridge.pictures.topics import camera_transforms
from drone_bridge.pictures.video_port import video_log
from drone_bridge.ros.commands.tilt_commands import TiltCommands, drone_parameters, read_drone
from drone_bridge.ros.node.common_parameters import DRONE_ODOMETRY, common_parameters, frame_names, frame_parameters
from drone_bridge.ros.node.doubt_reports import report_doubts
from drone_bridge.ros.node.limit_reports import limit_parameters
from drone_bridge.ros.node.parameters import ParameterDeclaration
from drone_bridge.ros.node.pose_restarts import make_drone_pose
from drone_bridge.ros.node.program import run
from drone_bridge.ros.node.protocol_node import REFUSED_COMMANDS, ProtocolNode
from drone_bridge.ros.node.request_services import RequestServices
from drone_bridge.ros.qos import latched
from drone_bridge.ros.topics.frames import DroneFrameNames
from drone_bridge.ros.topics.topic_publishers import TopicPublishers
from drone_bridge.ros.topics.transforms import rangefinder_transform
from drone_bridge.session.feedback import Feedback
from drone_bridge.session.session import EMERGENCY, LAND
from drone_bridge.session.tilt_pilot import TiltPilot
from drone_bridge.wire.addresses import address_name
from drone_bridge.wire.counters import ProblemCounter

PARAMETERS = (
    *common_parameters(DEFAULT_PORT, "Port of the GUI.", roles=("connect",)),
    ParameterDeclaration("rate", 20.0, "Control packets per second.", (2.0, 200.0), live=True),
    ParameterDeclaration(
        "press_time", 0.5, "Time for which a service holds its button down, s.", range=(0.05, 5.0), live=True
    ),
    *drone_parameters(AR_DRONE),
    ParameterDeclaration(
        "first_packet_copies",
        1,
        "Number of copies of packet 1. If it is lost, a receiver that has seen higher numbers ignores later packets.",
        range=(1, 10),
    ),
    ParameterDeclaration(
        "receive_navdata",
        True,
        "Listen for navdata. Disable it for a GUI that sends none: assume_flying then sets whether the drone flies.",
    ),
    ParameterDeclaration(
        "navdata_port", DEFAULT_NAVDATA_PORT, "Local port to which the GUI sends navdata.", range=(1, 65535)
    ),
    ParameterDeclaration(
        "navdata_timeout",
        1.0,
        "Time without navdata after which it is stale, s.",
        range=(0.2, 60.0),
        live=True,
    ),
    ParameterDeclaration(
        "bootstrap",
        True,
        "Press reset before the first take-off if no navdata arrives and a person has confirmed by assume_flying that "
        "the drone is on the ground. A GUI requests navdata only then, and never lands the drone without it.",
        live=True,
    ),
    ParameterDeclaration(
        "confirm_timeout",
        5.0,
        "Time within which navdata must confirm a take-off or landing after its button was pressed, s.",
        range=(0.1, 60.0),
        live=True,
    ),
    DRONE_ODOMETRY,
    *frame_parameters(without=("publish_map_to_odom", "map_frame")),
    ParameterDeclaration(
        "video_port",
        DEFAULT_VIDEO_PORT,
        "Local port to which the GUI forwards the drone's video. 0 disables the camera's topics.",
        range=(0, 65535),
    ),
    *camera_parameters(*CAMERAS),
    ParameterDeclaration(
        "wire_log_video",
        False,
        "Record complete video packets in the wire log, 300 kB/s, instead of their size and hash.",
    ),
    *limit_parameters(is_drone=True, tells_battery=True, land_unattended_s=0.0),  # a person may fly by the GUI, unseen
)

#: Counter of failed attempts to bind the navdata port.
PORT_UNAVAILABLE = ProblemCounter("missed_navdata_ports")
#: Services with an empty request.
REQUESTS = (TAKE_OFF, LAND, RESET, EMERGENCY)
# Conditions in /diagnostics.
NO_NAVDATA, MOTORS_OFF, OTHER_CONTROLLER = "navdata", "emergency", "other_controller"


class DroneGuiBridge(ProtocolNode):
    """Sends controls at a steady rate, publishes navdata, and takes off and lands on request."""

    open_state = SENDING

    def __init__(self, **options: Any) -> None:
        super().__init__("dronegui_bridge", PARAMETERS, **options)
        self._session: DroneGuiControllerSession | None = None  # until the node is active
        self._flying: Publisher[Any] | None = None  # until the node is configured
        self._is_hover_held = False
        self._has_noted_charge = False
        self._steady_clock = Clock()
        # They exist before the node is configured, and explain their refusal.
        on_hold = (LAND, RESET, EMERGENCY)
        self._requests = RequestServices(
            self, REQUESTS, self._ask, refusal=self._refusal, outlive_cleanup=True, on_hold=on_hold
        )
        group = self._requests.group
        self.create_service(SetBool, "~/hover", self._serve_hover, callback_group=group)
        self.create_service(SetBool, "~/assume_flying", self._serve_assume_flying, callback_group=group)

    def set_up(self) -> None:
        get = self.parameters.__getitem__
        self._flying = self.make_publisher(Bool, "flying", latched())
        self._sent_states = self.make_publisher(DroneGuiState, "dronegui/state", 10)
        names = frame_names(self.parameters, DroneFrameNames)
        self._frame_id = names.base_link
        self._camera = CameraTopics(self, names, CAMERAS, camera_of, VIDEO_ROW) if get("video_port") else None
        self._translation = DroneGuiTranslation(names)
        if get("receive_navdata"):
            table = [row for row in TOPICS if get("publish_odometry") or row.of is not DeadReckonedPose]
            # Detections are in the front camera's frame.
            transforms = [rangefinder_transform(names), *camera_transforms(names, CAMERAS)]
            self._topics = TopicPublishers(self, table, self._translation, transforms)
        drone = read_drone(self.parameters, AR_DRONE)
        commands = TiltCommands(self, drone, has_landing_button=True)
        self._pilot = TiltPilot(commands.arbiter, drone, hovers=True)
        self._pose = make_drone_pose(self, drone, self._translation)
        report_doubts(self, lambda: self._pilot.doubts, lambda: self._pilot.is_drifting)
        for name in REQUESTS:
            self.make_subscription(Empty, name, self._on_message(name), 1, callback_group=self._requests.group)
        self.each_second(self._report_conditions)

    def make_transport(self) -> NavdataPeer:
        """Send to the GUI, and listen for navdata at our address towards it."""
        get = self.parameters.__getitem__
        self._link_to_gui = NavdataPeer(
            get("host"),
            get("port"),
            get("navdata_port") if get("receive_navdata") else None,
            self._connecting_failed,
            self.wire_log,
            on_port=self._warn_of_port,
            clock=self._steady_clock,
        )
        return self._link_to_gui

    def make_session(self) -> DroneGuiControllerSession:
        """Start a session, which numbers packets from 1."""
        get, link = self.parameters.__getitem__, self._link_to_gui
        self._dead_reckoning = DeadReckoning()
        if get("receive_navdata"):
            self._topics.restart()
        self._session = DroneGuiControllerSession(
            address_name(get("host"), get("port")),
            get,
            self._pilot,
            Feedback(self.observed, self._pilot.arbiter.limits, self._pilot),
            is_hover_held=lambda: self._is_hover_held,
            gui_host=lambda: link.peer_host,
            port_problem=(lambda: link.problem) if get("receive_navdata") else None,
            pose=self._pose,
        )
        return self._session

    def undeliverable(self) -> str | None:
        """Return why commands can't reach the drone now, or None. A silent GUI may still follow them."""
        session = self._session
        return session.undeliverable(elapsed_s()) if session and session.is_open else super().undeliverable()

    def link_begins(self) -> None:
        if self._camera:
            get, link = self.parameters.__getitem__, self._link_to_gui
            log = video_log(self.wire_log, get("wire_log_video"))
            self._camera.start(GuiVideoPort(get("video_port"), lambda: link.hosts, log))

    def link_ended(self) -> None:
        super().link_ended()
        if self._camera:
            self._camera.stop()
        self._report_conditions()

    # Events of the session, on the link's thread.

    def publish_event(self, message: NavdataBlock | SentPacket | FlyingReport) -> None:
        """Publish navdata, a sent packet, or whether the drone flies."""
        if isinstance(message, NavdataBlock):
            self._publish_navdata(message)
        elif isinstance(message, FlyingReport):
            self._publish_flying(message.is_flying)
        elif message.is_out and self.is_wanted(self._sent_states):
            state = drone_gui_state(message.seq, message.controls, self.get_clock().now().to_msg())
            state.header.frame_id = self._frame_id
            self.publish(self._sent_states, state)

    def _publish_navdata(self, received: NavdataBlock) -> None:
        received_s, block, pose = self.decided_s, received.block, None
        if isinstance(block, Demo):
            self.report.facts |= navdata_facts(block) | {"navdata_source": received.source}
            if (note := charge_note(block)) and not self._has_noted_charge:
                self._has_noted_charge = True
                self.report.inform(note)
            measured, is_doubted = self._translation.converted(block), self._pilot.is_position_doubted
            pose = self._dead_reckoning.update(measured, received_s, is_doubted=is_doubted)
        stamp = self.now()
        self._topics.publish(received.datagram, stamp)
        self._topics.publish(block, stamp)
        if pose:
            self._topics.publish(pose, stamp)
        self.report.record_duration("navdata_read_to_published", self._steady_clock.now_s() - received_s)

    def _publish_flying(self, is_flying: bool) -> None:
        if self._flying:
            self.publish(self._flying, Bool(data=is_flying))

    def _warn_of_port(self, address: str, problem: str) -> None:
        if problem:
            sentence = f"{problem} There is no navdata without it. Retrying."
            self.report.count_and_warn_ongoing(PORT_UNAVAILABLE, sentence)
        else:
            self.report.end_ongoing(PORT_UNAVAILABLE)
            self.report.inform(f"Listening for navdata on {address}.")

    # For the executor.

    def _ask(self, request: Any, now_s: float) -> Any:
        assert self._session
        return self._session.ask(request, now_s)

    def _ask_to_assume(self, is_flying: bool, request: Any, now_s: float) -> Any:
        assert self._session
        return self._session.assume_flying(is_flying, request, now_s)

    def _refusal(self, name: str) -> str | None:
        """Return why a button can't be pressed, or None."""
        if self._session and self._session.is_open:
            return None
        button = {TAKE_OFF: "take_off", LAND: "take_off", RESET: "reset", EMERGENCY: "reset"}.get(name)
        return f"{button} can't be pressed {NOT_SENDING}" if button else f"{name} can't be carried out {NOT_SENDING}"

    def _on_message(self, name: str) -> Callable[[Empty], Any]:
        """Return a callback that makes a request for an empty message."""

        async def receive(_: Empty) -> None:
            try:
                self.report.inform(await self._requests.request(name))
            except ValueError as error:
                self.report.count_and_warn(REFUSED_COMMANDS, f"A message on {name} was refused: {error}")

        return receive

    def _serve_hover(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        """Hold hover, or release it, also while the node is inactive."""
        if not request.data and not self.takes_commands():
            response.message = "The request may be stale: the bridge was stalled. The drone keeps hovering."
            return response
        if self._is_hover_held and not request.data and self.has_link:
            self._pilot.arbiter.forget()  # it hovers until it gets a new command
        self._is_hover_held = request.data
        if not request.data and self._session:
            self.post(self._session.steer_again)
        response.success = True
        response.message = (
            "The drone hovers and ignores commands." if request.data else "The drone follows commands again."
        )
        return response

    async def _serve_assume_flying(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        """Accept a person's statement."""
        try:
            ask = partial(self._ask_to_assume, request.data)
            response.message = await self._requests.request("assume_flying", ask, moves=False)
            response.success = True
        except ValueError as error:
            response.message = str(error)
        return response

    def _report_conditions(self) -> None:
        """Report in /diagnostics whether navdata arrives, an emergency, and another controller."""
        navdata, emergency, other = self._session.problems if self._session else ("", "", "")
        for name, problem, level in (
            (NO_NAVDATA, navdata, DiagnosticStatus.WARN),
            (MOTORS_OFF, emergency, DiagnosticStatus.ERROR),
            (OTHER_CONTROLLER, other, DiagnosticStatus.ERROR),
        ):
            self.report.update_condition(name, problem, level=level)


def main() -> int:
    """Run the node."""
    return run(DroneGuiBridge)
