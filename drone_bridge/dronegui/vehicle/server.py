# SPDX-License-Identifier: Apache-2.0
"""dronegui_server: emulates the control GUI, so that programs written for it fly any ROS drone.

It mirrors dronegui_bridge, see docs/dronegui.md: control packets become cmd_vel, and the drone's topics become
navdata. `session.gui` has the state machine.
"""

from functools import partial
from typing import Any

from rclpy.publisher import Publisher
from std_msgs.msg import Bool, Empty, String
from std_srvs.srv import SetBool, Trigger

from drone_bridge.dronegui import units
from drone_bridge.dronegui.codec import (
    AXES,
    DEFAULT_NAVDATA_PORT,
    DEFAULT_NAVDATA_SOURCE_PORT,
    DEFAULT_PORT,
    MAX_DATAGRAM_BYTES,
    NEED_DATA,
    ControllerConnection,
    Controls,
    Demo,
    FlightState,
)
from drone_bridge.dronegui.ports import PortWithOutlet
from drone_bridge.dronegui.topics import DETECTIONS_TOPIC, NAVDATA_TOPIC, TABLE, TOPICS, assembled_demo, navdata_facts
from drone_bridge.dronegui.vehicle.device import NAVDATA_RATE, GuiDialect
from drone_bridge.dronegui.vehicle.pictures.gui_video import GUI_VIDEO_PARAMETERS, GuiVideo
from drone_bridge.dronegui.vehicle.session.flying import FlyingState
from drone_bridge.dronegui.vehicle.session.gui import (
    REJECTED_MESSAGES,
    RESET,
    SERVING,
    TAKE_OFF,
    GuiParameters,
    GuiSession,
)
from drone_bridge.dronegui.vehicle.session.hover import HOVER
from drone_bridge.net.clock import elapsed_s
from drone_bridge.ros.commands.command_axes import FullScale, velocity_from_shares
from drone_bridge.ros.node.common_parameters import (
    ALLOWED_PEERS,
    CMD_VEL,
    COMMAND_OUTPUT,
    NEUTRAL_TIME,
    SOURCE_TIMEOUT,
    common_parameters,
    full_scale_parameters,
    read_allowed_peers,
)
from drone_bridge.ros.node.parameters import ParameterDeclaration, declarations, read
from drone_bridge.ros.node.program import run
from drone_bridge.ros.node.protocol_node import ProtocolNode
from drone_bridge.ros.qos import latched
from drone_bridge.ros.servers.bridge_watch import BridgeWatch
from drone_bridge.ros.servers.sampled_topics import SampledTopics
from drone_bridge.ros.servers.service_caller import ServiceCaller
from drone_bridge.ros.servers.topic_subscriptions import TopicSubscriptions
from drone_bridge.ros.servers.velocity_publisher import VelocityPublisher
from drone_bridge.ros.topics.frames import DroneFrameNames
from drone_bridge.session.session import EMERGENCY, EMERGENCY_AGE_S, ENDS_FLIGHT, LAND, Answer
from drone_bridge.wire.addresses import address_name
from drone_bridge.wire.events import RemoteProtocolError

#: Buttons of the operators, by the names of the bridge's services.
TARGETS = (TAKE_OFF, LAND, RESET, EMERGENCY, HOVER)

PARAMETERS = (
    *common_parameters(DEFAULT_PORT, "Port for control packets. 0 picks a free port.", roles=("listen",)),
    SOURCE_TIMEOUT,
    NEUTRAL_TIME,
    ALLOWED_PEERS,
    *declarations(GuiParameters),
    COMMAND_OUTPUT,
    *full_scale_parameters(AXES),
    ParameterDeclaration(
        "buttons_as",
        "services",
        "Transport of take_off and reset to the drone: std_srvs/Trigger calls, or std_msgs/Empty on topics.",
        choices=("services", "topics"),
    ),
    *(
        ParameterDeclaration(
            f"target.{name}",
            "",
            f"Service or topic for {name}. If empty, {'target.reset, or ' if name == EMERGENCY else ''}the service "
            f"dronegui_bridge/{name}{', a std_srvs/SetBool' if name == HOVER else f' or the topic {name}'}."
            + (" If it does not exist, reset is called." if name == EMERGENCY else ""),
        )
        for name in TARGETS
    ),
    ParameterDeclaration("navdata_port", DEFAULT_NAVDATA_PORT, "Port of the operators for navdata.", range=(1, 65535)),
    *GUI_VIDEO_PARAMETERS,
)

SILENT_SOURCES = "sources"
MOTION_TOPICS = ("imu/data", "odom", "velocity", "height", "altitude")
#: Longer than dronegui_bridge needs by default to start a GUI, take off, and confirm the flight.
ANSWER_TIMEOUT_S = 15.0


class DroneGuiServer(ProtocolNode):
    """Publishes the operators' commands, calls services for their buttons, and sends them navdata."""

    is_server = True
    open_state = SERVING

    def __init__(self, **options: Any) -> None:
        super().__init__("dronegui_server", PARAMETERS, **options)
        self._session: GuiSession | None = None  # until the node is active

    def set_up(self) -> None:
        get = self.parameters.__getitem__
        self._allowed_peers = read_allowed_peers(self.parameters)
        frame_id = read(DroneFrameNames, self.parameters).base_link
        self._velocities = VelocityPublisher(self, frame_id if get("command_output") != CMD_VEL else None)
        self._flying = FlyingState(self.resolve_topic_name("flying"), self._publishers_of_flying)
        self._reader = ControllerConnection()
        self._translation = TABLE.make_translation()
        self.make_subscription(Bool, "flying", self._take_flying, latched())
        self._topics = TopicSubscriptions(self, TOPICS, self._translation, self._take, sampled=MOTION_TOPICS)
        motion = [TABLE.row(topic) for topic in MOTION_TOPICS]
        self.intake = SampledTopics(self, motion, self._topics, NAVDATA_RATE, self._send_navdata)
        self.each_second(self._report_sources)
        self._video = GuiVideo(self) if get("video_port") else None
        are_services = get("buttons_as") == "services"
        default = "dronegui_bridge/{}" if are_services else "{}"
        chosen = {name: get(f"target.{name}") for name in TARGETS}
        chosen[EMERGENCY] = chosen[EMERGENCY] or chosen[RESET]
        targets = {name: target or default.format(name) for name, target in chosen.items()}
        self._presses: dict[str, Publisher[Any]] = {}
        if not are_services:
            of_presses = {name: target for name, target in targets.items() if name != HOVER}  # drivers have no hover
            self._presses = {name: self.make_publisher(Empty, target, 10) for name, target in of_presses.items()}
            return
        # DDS keeps the services of a killed bridge in the ROS graph until its lease expires.
        of_bridge = {name for name, target in chosen.items() if not target}
        bridge = self.resolve_service_name(default.partition("/")[0])
        watch = BridgeWatch(self, lambda: {bridge}) if of_bridge else None
        self._caller = ServiceCaller(
            self,
            targets,
            ANSWER_TIMEOUT_S,
            types={HOVER: SetBool, EMERGENCY: Trigger},
            on_missing=self._forget_hover,
            is_gone=lambda name: watch is not None and watch.is_gone and name in of_bridge,
        )

    def make_transport(self) -> PortWithOutlet:
        """Listen for packets, and open the port for navdata."""
        host = self.parameters["host"]
        self._port = PortWithOutlet(host, self.parameters["port"], DEFAULT_NAVDATA_SOURCE_PORT, self.wire_log)
        if problem := self._port.problem:
            self.get_logger().info(problem)
        self.get_logger().info(f"Waiting for control packets on {address_name(host, self._port.port)}.")
        return self._port

    def make_session(self) -> GuiSession:
        dialect = GuiDialect(is_bootstrapped=True, navdata_port=self.parameters["navdata_port"])
        self._session = GuiSession(
            self.parameters.live(GuiParameters),
            self._allowed_peers,
            (dialect, self._port.loopback_host),
            self._flying,
            is_held=lambda: self.hold.is_held,
            is_neutral_last=lambda: self._velocities.is_neutral_last,
        )
        return self._session

    def link_begins(self) -> None:
        if self._video and self._session:
            self._video.start(self.parameters["host"], self._session.controllers)

    def link_ended(self) -> None:
        if self._video:
            self._video.stop()
        super().link_ended()

    # Commands of the operators, on the link's thread.

    def publish_event(self, message: Controls | Demo) -> None:
        """Publish the axes of a state, or report navdata in /diagnostics."""
        if isinstance(message, Demo):
            self.report.facts |= navdata_facts(message)
            return
        shares = units.shares(message)
        full_scale = FullScale(*(self.parameters[f"full_scale.{axis}"] for axis in ("gas", "pitch", "roll", "yaw")))
        self._velocities.publish(velocity_from_shares(shares, full_scale), shares, self.decided_s)

    def call_service(self, name: str, tag: bool | None) -> None:
        """Call a service, or publish a press; `tag` is whether hover is to be held.

        reset replaces an emergency service that does not exist. Land and emergency are also requested from a bridge
        whose reports have stopped.
        """
        age_s = elapsed_s() - self.decided_s
        if name == EMERGENCY and age_s > EMERGENCY_AGE_S:
            reason = f"the press is {age_s:.1f} s old. Press it again"
            self._answer(name, tag, Answer(False, reason, was_called=False, has_come=False))
        elif not self._presses:
            request = None if tag is None else SetBool.Request(data=tag)
            target = RESET if name == EMERGENCY and not self._caller.is_known(EMERGENCY) else name
            ends_flight = name in ENDS_FLIGHT
            moves = not (ends_flight or name == HOVER)
            answered = partial(self._answer, name, tag)
            self._caller.call(target, answered, request, moves=moves, even_if_gone=ends_flight)
        elif publisher := self._presses.get(name):
            if name == EMERGENCY and not self.is_wanted(publisher):
                publisher = self._presses[RESET]
            if self.is_wanted(publisher):
                self.publish(publisher, Empty())
                self._answer(name, tag, Answer(True, f"published on {publisher.topic_name}"))
            else:
                reason = f"no node subscribes to {publisher.topic_name}"
                self._answer(name, tag, Answer(False, reason, was_called=False, has_come=False))

    def _answer(self, name: str, tag: bool | None, answer: Answer) -> None:
        if self._session:
            self.post(partial(self._session.answered, name, tag, answer), is_kept=True)

    def _send_navdata(self) -> None:
        if self._session:
            self.post(partial(self._session.send_navdata, self._demo))

    def _demo(self, state: FlightState | None) -> Demo | None:
        """Return navdata from the drone's topics; None if a bridge publishes navdata."""
        return None if self._is_navdata_offered() else assembled_demo(self._topics.value, state)

    def _is_navdata_offered(self) -> bool:
        return self.count_publishers(self.resolve_topic_name(NAVDATA_TOPIC)) > 0

    def _publishers_of_flying(self) -> frozenset[bytes]:
        found = self.get_publishers_info_by_topic(self.resolve_topic_name("flying"))
        return frozenset(bytes(publisher.endpoint_gid) for publisher in found)

    # For the executor.

    def _forget_hover(self, name: str) -> None:
        if self._session and name == HOVER:
            self.post(self._session.forget_hover)

    def _take_flying(self, message: Bool) -> None:
        """Store the state, which is latched, also without a session."""
        heard = partial(self._flying.received, message.data)
        if self.has_link:
            self.post(heard, is_kept=True)
        else:
            heard(elapsed_s())

    def _take(self, topic: str, message: Any) -> None:
        if topic == NAVDATA_TOPIC:
            self._forward(message)
            return
        self._topics.put(topic, message)
        if self._session and topic == DETECTIONS_TOPIC and not self._is_navdata_offered():
            self.post(partial(self._session.send_detections, self._translation.wire_detections(message)))

    def _forward(self, message: String) -> None:
        datagram = message.data.encode()[: MAX_DATAGRAM_BYTES + 1]
        self._reader.receive_data(datagram)
        try:
            block = self._reader.next_event()
        except RemoteProtocolError as error:
            self.report.count_and_warn(REJECTED_MESSAGES, f"A message on {NAVDATA_TOPIC} was refused: {error}")
            return
        if isinstance(block, Demo):
            self._topics.put(NAVDATA_TOPIC, message)
        if self._session and block is not NEED_DATA:
            self.post(partial(self._session.forward, block, datagram))

    def _report_sources(self) -> None:
        has_motion = any(self._topics.message(topic) for topic in (NAVDATA_TOPIC, *MOTION_TOPICS))
        is_asked = self._session is not None and self._session.is_open
        problem = None if has_motion or not is_asked else "no topic provides the drone's motion, so no navdata is sent"
        advice = "publish imu/data, odom, velocity, height, altitude, or a bridge's dronegui/navdata"
        self.report.update_condition(SILENT_SOURCES, problem, advice)


def main() -> int:
    """Run the node."""
    return run(DroneGuiServer)
