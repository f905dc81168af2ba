# SPDX-License-Identifier: Apache-2.0
"""dronegui_server: stands in for the control GUI, so that programs written for it fly any drone in ROS.

The mirror of dronegui_bridge, see docs/dronegui.md: control packets become cmd_vel, and the drone's topics
become navdata.
"""

import contextlib
import math
import time
from functools import partial
from typing import Any

from std_msgs.msg import Bool, String

from drone_bridge.dronegui.codec import (
    AXES,
    DEFAULT_NAVDATA_PORT,
    DEFAULT_NAVDATA_SOURCE_PORT,
    DEFAULT_PORT,
    MAX_DATAGRAM_BYTES,
    NEED_DATA,
    ControllerConnection,
    ControlPacket,
    Controls,
    Demo,
    FlightState,
    Navdata,
    VisionDetect,
)
from drone_bridge.dronegui.device import Dialect, Gui
from drone_bridge.dronegui.server.buttons import REFUSED, UNANSWERED, Buttons, ServiceButtons, TopicButtons
from drone_bridge.dronegui.topics import (
    DETECTIONS_TOPIC,
    NAVDATA_TOPIC,
    TABLE,
    TOPICS,
    FullScale,
    assembled_demo,
    navdata_facts,
    shares_from_controls,
    twist_from_controls,
)
from drone_bridge.msg import DetectionArray
from drone_bridge.net.connector import Cancellation, LinkError, LinkTimeoutError
from drone_bridge.net.udp import Datagram, Operators, OperatorsPort, UdpListener, open_preferred
from drone_bridge.ros.bridge_watch import BridgeWatch
from drone_bridge.ros.common_parameters import (
    ALLOWED_PEERS,
    CMD_VEL,
    COMMAND_OUTPUT,
    NEUTRAL_TIME,
    SOURCE_TIMEOUT,
    common_parameters,
    frame_names,
    full_scale_parameters,
    read_allowed_peers,
    read_group,
)
from drone_bridge.ros.frames import DroneFrameNames
from drone_bridge.ros.last_word import VelocityOutput
from drone_bridge.ros.link_node import STALE_DATAGRAMS, LinkNode
from drone_bridge.ros.parameters import ParameterDeclaration
from drone_bridge.ros.program import run
from drone_bridge.ros.topics import TopicSubscriptions, latched
from drone_bridge.session.operator_command import OPERATORS_LOST
from drone_bridge.session.session import AFTER_STALLS
from drone_bridge.wire.addresses import address_name, peer_name
from drone_bridge.wire.events import RemoteProtocolError

#: The buttons that operators press, by the names of the bridge's services.
TARGETS = ("takeoff", "land", "reset", "hover")

PARAMETERS = (
    *common_parameters(DEFAULT_PORT, "The port for control packets; 0 picks a free one.", roles=("listen",)),
    SOURCE_TIMEOUT,
    NEUTRAL_TIME,
    ALLOWED_PEERS,
    ParameterDeclaration(
        "rate",
        20.0,
        "The minimum rate of cmd_vel while an operator is heard, Hz; every packet is also published at once.",
        range=(1.0, 200.0),
        live=True,
    ),
    COMMAND_OUTPUT,
    *full_scale_parameters(AXES),
    ParameterDeclaration(
        "buttons_as",
        "services",
        "How take_off and reset reach the drone: as std_srvs/Trigger calls, or as std_msgs/Empty on topics.",
        choices=("services", "topics"),
    ),
    *(
        ParameterDeclaration(
            f"target.{name}",
            "",
            f"The service or topic for {name}. If empty, the service dronegui_bridge/{name}"
            + (", a std_srvs/SetBool." if name == "hover" else f" or the topic {name}."),
        )
        for name in TARGETS
    ),
    ParameterDeclaration(
        "python_literals",
        False,
        "Accept True, False and None, which appear in the protocol's document but are not JSON.",
    ),
    ParameterDeclaration(
        "bootstrapped",
        True,
        "Send navdata, and track whether the drone is flying, from the start. If false, only after the first reset, "
        "as the real GUI does; until then take_off cannot land the drone.",
    ),
    ParameterDeclaration("navdata_port", DEFAULT_NAVDATA_PORT, "The operators' port for navdata.", range=(1, 65535)),
)


# The drone in ROS, and navdata of it.

#: The count of messages that the drone is on the ground which were not believed.
DOUBTFUL = "doubtful landings"
UNSENT = "unsent navdata"
SILENT_SOURCES = "sources"
#: How often publishers are counted.
PUBLISHER_CHECK_PERIOD_S = 0.1
MOTION_TOPICS = ("imu/data", "odom", "velocity", "height", "altitude")


class FlyingState:
    """Whether the drone flies: by its topic or its navdata, else by what it was told."""

    def __init__(self, node: LinkNode) -> None:
        self._node = node
        #: None while nothing is known; what was commanded counts only where nothing else says so.
        self.is_flying: bool | None = None
        self._is_told = False  # by a topic
        self._vouching: frozenset[bytes] = frozenset()  # the publishers of `flying` when the drone was known to fly
        self._is_landed_doubtful = False
        self._was_told_to_land = False
        self._is_stopped = False  # by an emergency
        node.make_subscription(Bool, "flying", self._take_flying, latched())

    def pressed(self, name: str) -> None:
        """Note a press of takeoff, land or reset, which stops the motors in the air."""
        self._is_stopped = name == "reset" and bool(self.is_flying)

    def done(self, name: str) -> None:
        """Note that the drone carries out a press."""
        self._was_told_to_land = name == "land"
        if not self._is_told or (self._is_landed_doubtful and name != "takeoff"):
            self._know(name == "takeoff")

    def shown(self, is_flying: bool) -> None:
        """Note what the drone's navdata shows."""
        self._is_told = True
        if is_flying is not self.is_flying:
            self._know(is_flying)

    def state(self, is_hovering: bool) -> FlightState | None:
        """Return what navdata says of it."""
        if self.is_flying is None:
            return None
        if not self.is_flying:
            return FlightState.DEFAULT if self._is_stopped else FlightState.LANDED
        if self._was_told_to_land:
            return FlightState.LANDING
        return FlightState.HOVERING if is_hovering else FlightState.FLYING

    def _take_flying(self, message: Bool) -> None:
        self._is_told = True
        publishers = self._publishers_of_flying()
        if self.is_flying and not message.data and publishers - self._vouching:
            # A bridge that was started in flight may take the drone for landed, and a press would then take off.
            self._is_landed_doubtful = True
            self._node.reports.count_and_warn(
                DOUBTFUL,
                f"{self._node.resolve_topic_name('flying')} says that the drone is on the ground, but so may a node "
                "started while it flew: take_off means land until navdata shows that, or land or reset succeeds.",
            )
            return
        self._know(message.data, publishers)

    def _know(self, is_flying: bool, publishers: frozenset[bytes] | None = None) -> None:
        self.is_flying, self._is_landed_doubtful = is_flying, False
        self._is_stopped &= not is_flying
        self._was_told_to_land &= is_flying
        self._vouching = self._publishers_of_flying() if publishers is None else publishers

    def _publishers_of_flying(self) -> frozenset[bytes]:
        found = self._node.get_publishers_info_by_topic(self._node.resolve_topic_name("flying"))
        return frozenset(bytes(publisher.endpoint_gid) for publisher in found)


class NavdataSender:
    """Sends navdata, in the executor, while the node is active."""

    def __init__(self, node: LinkNode) -> None:
        self._node = node
        self._reader = ControllerConnection()
        self._forwarded_s = -math.inf  # when the last demo was
        self._has_publisher = False
        self._checked_s = -math.inf
        self._gui: Gui | None = None
        self._socket: UdpListener | None = None
        self.flying = FlyingState(node)
        self._translation = TABLE.make_translation()
        self._topics = TopicSubscriptions(node, TOPICS, self._translation, self._take)

    def open(self, gui: Gui, socket: UdpListener) -> None:
        """Start sending from this socket."""
        self._forwarded_s = -math.inf
        self._gui, self._socket = gui, socket

    def close(self) -> None:
        self._gui = None
        if self._socket:
            self._socket.close()

    @property
    def is_flying(self) -> bool:
        """Whether the drone is in the air according to the newest navdata or a topic."""
        return bool(self.flying.is_flying)

    def report(self) -> None:
        """Report in diagnostics whether there is navdata to send. For the link's thread."""
        has_motion = self._is_forwarding or any(self._topics.message(topic) for topic in MOTION_TOPICS)
        problem = None if has_motion else "no topic gives the drone's motion, so no navdata is sent"
        advice = "expected are imu/data, odom, velocity, height, altitude, or a bridge's dronegui/navdata"
        self._node.reports.update_condition(SILENT_SOURCES, problem, advice)

    @property
    def _is_forwarding(self) -> bool:
        """Whether a bridge publishes its drone's navdata."""
        return bool(time.monotonic() - self._forwarded_s <= self._node.parameters["source_timeout"])

    def _take(self, topic: str, message: Any) -> None:
        if topic == NAVDATA_TOPIC:
            self._forward(message)
        elif topic == DETECTIONS_TOPIC:
            self._send_detections(message)
        else:
            self._topics.put(topic, message)
            if topic in MOTION_TOPICS:
                self._send_demo()

    def _forward(self, message: String) -> None:
        """Forward a block unchanged."""
        gui = self._gui
        datagram = message.data.encode()[: MAX_DATAGRAM_BYTES + 1]
        self._reader.receive_data(datagram)
        try:
            block = self._reader.next_event()
        except RemoteProtocolError as error:
            self._node.count_and_warn("rejected messages", f"A message on {NAVDATA_TOPIC} was refused: {error}")
            return
        if isinstance(block, Demo):
            self._forwarded_s = time.monotonic()
            if block.flight_state is not None:  # 0 is a state, too
                self.flying.shown(block.flight_state.is_airborne)
        if gui and block is not NEED_DATA and gui.hears_drone(time.monotonic()):
            self._send(gui, block, datagram)

    def _has_navdata_topic(self) -> bool:
        """Return whether a bridge publishes navdata; the graph is queried only now and then."""
        now_s = time.monotonic()
        if now_s - self._checked_s > PUBLISHER_CHECK_PERIOD_S:
            self._checked_s = now_s
            topic = self._node.resolve_topic_name(NAVDATA_TOPIC)
            self._has_publisher = self._node.count_publishers(topic) > 0
        return self._has_publisher

    def _send_demo(self) -> None:
        gui = self._gui
        if gui is None or self._has_navdata_topic() or not gui.navdata_is_due(time.monotonic()):
            return
        self._send_block(gui, assembled_demo(self._topics.value, self.flying.state(gui.controls.hover)))

    def _send_detections(self, message: DetectionArray) -> None:
        gui = self._gui
        if gui and not self._has_navdata_topic() and gui.hears_drone(time.monotonic()):
            self._send_block(gui, self._translation.wire_detections(message))

    def _send_block(self, gui: Gui, block: Navdata) -> None:
        if datagrams := self._node.encode(lambda each: gui.navdata([each]), block):
            self._send(gui, block, *datagrams)

    def _send(self, gui: Gui, block: Navdata, datagram: bytes) -> None:
        if isinstance(block, Demo):
            self._node.statistics.facts |= navdata_facts(block)
        if not self._socket:
            return
        for address in gui.receivers(datagram, time.monotonic()):
            try:
                self._socket.send(datagram, address)
            except LinkError as error:
                self._node.count_and_warn(UNSENT, str(error))
            else:
                kind = "navdata" if isinstance(block, Demo) else "detections"
                self._node.statistics.counts[kind if isinstance(block, (Demo, VisionDetect)) else "other navdata"] += 1


# The node.

LATE = "late packets"


class DroneGuiServer(LinkNode):
    """Takes packets on the link's thread, and sends navdata in the executor.

    The protocol has no time-out, so this node adds one: after `command_timeout` of silence from the operator it
    publishes a cmd_vel of zero, and then nothing.
    """

    is_server = True
    open_state = "serving"
    rates = ("packets", "commands", "navdata", "detections")
    problems = (
        *LinkNode.problems,
        STALE_DATAGRAMS,
        AFTER_STALLS,
        LATE,
        DOUBTFUL,
        REFUSED,
        UNANSWERED,
        UNSENT,
        "rejected messages",
        OPERATORS_LOST,
        "dropped messages",
    )
    buttons: Buttons

    def __init__(self, **options: Any) -> None:
        super().__init__("dronegui_server", PARAMETERS, **options)

    # The lifecycle.

    def set_up(self) -> None:
        """Read the parameters and create publishers, subscriptions and clients."""
        get = self.parameters.__getitem__
        self._allowed_peers = read_allowed_peers(self.parameters)
        self._dialect = Dialect(
            python_literals=get("python_literals"),
            loose_values=True,
            is_bootstrapped=get("bootstrapped"),
            navdata_port=get("navdata_port"),
        )
        self._velocities = VelocityOutput(
            self, frame_names(self.parameters, DroneFrameNames).base_link if get("command_output") != CMD_VEL else None
        )
        self.navdata = NavdataSender(self)
        are_services = get("buttons_as") == "services"
        default = "dronegui_bridge/{}" if are_services else "{}"
        targets = {name: get(f"target.{name}") or default.format(name) for name in TARGETS}
        if not are_services:
            self.buttons = TopicButtons(self, targets, self.navdata.flying.done)
            return
        # The services of a bridge that was killed stay in the ROS graph for as long as DDS believes in it.
        of_bridge = {name for name in TARGETS if not get(f"target.{name}")}
        node = self.resolve_service_name(default.partition("/")[0])
        bridge = BridgeWatch(self, lambda: {node}, lambda: None) if of_bridge else None
        self.buttons = ServiceButtons(
            self,
            targets,
            self.navdata.flying.done,
            lambda name: bridge is not None and bridge.is_gone and name in of_bridge,
        )

    def make_endpoint(self, cancellation: Cancellation) -> OperatorsPort:
        """Listen for packets, and open the socket for navdata."""
        host = self.parameters["host"]
        freshness = self.fresh_within("command_timeout")
        listener = UdpListener(host, self.parameters["port"], cancellation, self.wire_log, freshness=freshness)
        try:
            socket, problem = open_preferred(host, DEFAULT_NAVDATA_SOURCE_PORT, cancellation, self.wire_log)
        except LinkError:
            listener.close()
            raise
        if problem:
            self.get_logger().info(f"{problem} Navdata goes out from port {socket.port} instead.")
        self._gui = Gui(self, self._dialect, socket.loopback_host)
        self._sender = ""
        self.navdata.open(self._gui, socket)
        self._port = OperatorsPort(listener, cancellation, partial(self.count_and_warn, "lost connections"))
        self.get_logger().info(f"Waiting for control packets on {address_name(host, listener.port)}.")
        return self._port

    def stop_waiting(self) -> None:
        """Send nothing more."""
        self.navdata.close()

    # The conversation, on the link's thread.

    def converse(self, stream: Operators) -> None:
        """Handle packets until cancelled; publish zero at the end."""
        try:
            self._take(stream.first)
            due_s = time.monotonic()
            while True:
                with contextlib.suppress(LinkTimeoutError):
                    self._take(self._port.listener.receive(max(0.0, due_s - time.monotonic())))
                if time.monotonic() >= due_s:
                    self._follow()
                    self.navdata.report()
                    due_s = max(due_s + 1 / self.parameters["rate"], time.monotonic())
        finally:
            self._stop()

    def _take(self, datagram: Datagram) -> None:
        sender = peer_name(datagram.source)
        if not self._allowed_peers.allows(datagram.source[0]):
            self.count_and_warn("refused peers", f"{sender} was refused: it is not in allowed_peers.")
            return
        if not self.takes_commands():
            return
        was_gone = not self._velocities.is_active
        try:
            event = self._gui.receive(datagram.data, datagram.source, time.monotonic())
        except RemoteProtocolError as error:
            self.count_and_warn("rejected input", f"A packet from {sender} was refused: {error}")
            return
        if not isinstance(event, ControlPacket):
            sentence = f"Packets from {sender} arrive late: {event.seq:g} after {event.newest_seq:g}."
            self.reports.count_and_warn_ongoing(LATE, f"{sentence} A restarted sender must begin with seq 1.")
            return
        self.reports.end_ongoing(LATE)
        self.statistics.counts["packets"] += 1
        self.statistics.liveness.heard()
        if sender != self._sender or was_gone:
            self.inform(f"Controlled by {sender}.")
            self._sender = self.statistics.peer = sender

    # The Drone of the GUI, on the link's thread.

    @property
    def is_flying(self) -> bool:
        return self.navdata.is_flying

    def take_off(self) -> None:
        self._press("takeoff")

    def land(self) -> None:
        self._press("land")

    def reset(self) -> None:
        self._press("reset")

    def steer(self, controls: Controls) -> None:
        """Publish hover, and the axes."""
        self.buttons.hold_hover(controls.hover)
        full_scale = read_group(self.parameters, "full_scale", FullScale)
        self._velocities.command(twist_from_controls(controls, full_scale), shares_from_controls(controls))

    def _press(self, name: str) -> None:
        if name != "land" and self.hold.is_held:
            self.count_and_warn(REFUSED, f"{name} was pressed, and is refused while the vehicle is held.")
            return
        self.inform(f"{self.statistics.peer} presses {name}.")
        self.navdata.flying.pressed(name)
        self.buttons.press(name)

    def _follow(self) -> None:
        """Repeat the last command until the operator is silent; then the drone hovers.

        A zero cmd_vel alone would hold it level for a while, so that it drifts, even if the operator left it hovering.
        """
        if not self._sender:
            return
        if self._velocities.repeat(self._sender):
            self.buttons.hold_hover(self._gui.controls.hover)  # again, for services that were not available
        elif self._velocities.is_last_word:
            self.buttons.hold_hover(True)
        else:
            self.buttons.release_hover()

    def _stop(self) -> None:
        self._velocities.finish()  # before hover is released: the bridge follows what comes after that
        self.buttons.release_hover()


def main() -> int:
    """Run the node."""
    return run(DroneGuiServer)
