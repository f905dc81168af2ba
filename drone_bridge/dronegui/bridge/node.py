# SPDX-License-Identifier: Apache-2.0
"""dronegui_bridge: flies an AR.Drone through its control GUI, as a ROS 2 node. See docs/dronegui.md."""

import contextlib
import itertools
import math
import time
from collections.abc import Callable, Coroutine
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.publisher import Publisher
from std_msgs.msg import Bool, Empty
from std_srvs.srv import SetBool, Trigger

from drone_bridge.dronegui.bridge.flight import ButtonPanel, FlightCommands, FlightWatch, Source, Waits
from drone_bridge.dronegui.codec import (
    DEFAULT_NAVDATA_PORT,
    DEFAULT_PORT,
    FIRST_SEQ,
    NEED_DATA,
    ControllerConnection,
    Controls,
    Demo,
    FlightState,
    Navdata,
    VisionDetect,
)
from drone_bridge.dronegui.topics import (
    HOVER,
    TOPICS,
    DeadReckoning,
    Pose,
    Translation,
    controls_from_shares,
    drone_gui_state,
    measured_motion,
    navdata_facts,
    static_transforms,
    with_buttons,
)
from drone_bridge.motion.tilt_control import TiltedDrone
from drone_bridge.msg import DroneGuiState
from drone_bridge.net.clock import elapsed_s
from drone_bridge.net.connector import (
    Cancellation,
    LinkCancelledError,
    LinkError,
    LinkRefusedError,
    LinkTimeoutError,
)
from drone_bridge.net.udp import Datagram, UdpConnector, UdpListener, UdpStream
from drone_bridge.ros.common_parameters import (
    common_parameters,
    frame_names,
    frame_parameters,
)
from drone_bridge.ros.frames import DroneFrameNames
from drone_bridge.ros.limits import limit_parameters
from drone_bridge.ros.link_node import STALE_DATAGRAMS, LinkNode, repeat_farewell
from drone_bridge.ros.parameters import ParameterDeclaration
from drone_bridge.ros.program import run
from drone_bridge.ros.stall_watch import STALL_S
from drone_bridge.ros.tilt_commands import TiltCommands, drone_parameters, read_drone
from drone_bridge.ros.topics import TopicPublishers, latched
from drone_bridge.session.arbiter import Rank
from drone_bridge.session.tilt_pilot import ESTIMATED, ESTIMATES, TiltPilot
from drone_bridge.wire.addresses import address_name, peer_name
from drone_bridge.wire.events import RemoteProtocolError

#: States in which the drone follows commands, and in which its height and heading are to be held.
STEERED = (FlightState.FLYING, FlightState.HOVERING)
#: The emulated drone's, which are an AR.Drone's by default.
AR_DRONE = TiltedDrone(max_tilt=0.2094, max_climb=0.7, max_yaw_rate=1.745)  # 12 degrees, and 100 per second

PARAMETERS = (
    *common_parameters(DEFAULT_PORT, "The GUI's port.", roles=("connect",)),
    ParameterDeclaration("rate", 20.0, "Control packets per second.", (2.0, 200.0), live=True),
    ParameterDeclaration(
        "press_time", 0.5, "Seconds for which a service holds its button down.", range=(0.05, 5.0), live=True
    ),
    *drone_parameters(AR_DRONE),
    ParameterDeclaration(
        "first_packet_copies",
        1,
        "How many times packet 1 is sent. If it is lost, a receiver that has seen higher numbers ignores what follows.",
        range=(1, 10),
    ),
    ParameterDeclaration(
        "receive_navdata",
        True,
        "Listen for navdata. Disable for a GUI that sends none; assume_flying then sets whether the drone flies.",
    ),
    ParameterDeclaration(
        "navdata_port", DEFAULT_NAVDATA_PORT, "The local port to which the GUI sends navdata.", range=(1, 65535)
    ),
    ParameterDeclaration(
        "navdata_timeout",
        1.0,
        "Seconds without navdata after which the last one is considered outdated.",
        range=(0.2, 60.0),
        live=True,
    ),
    ParameterDeclaration(
        "initially",
        "unknown",
        "Where the drone is when the process starts: landed, if a person vouches for it at each start, so not where "
        "something starts the process again: its takeoff may press reset, which stops the motors of a flying drone.",
        choices=("unknown", "landed"),
    ),
    ParameterDeclaration(
        "bootstrap",
        True,
        "Press reset before the first take-off if no navdata arrives and a person has said that the drone is on the "
        "ground: a GUI requests navdata from its drone only then, and never lands the drone without it.",
        live=True,
    ),
    ParameterDeclaration(
        "bootstrap_timeout", 3.0, "Seconds to wait for navdata after that press.", range=(0.1, 60.0), live=True
    ),
    ParameterDeclaration(
        "confirm_timeout",
        5.0,
        "Seconds within which navdata must confirm a take-off or landing after its button was pressed.",
        range=(0.1, 60.0),
        live=True,
    ),
    ParameterDeclaration(
        "publish_odometry", True, "Publish odom: integrated velocities, with the measured height and attitude."
    ),
    *frame_parameters("publish_map_to_odom", "map_frame"),
    *limit_parameters(is_drone=True, tells_battery=True),
)


# Navdata.


#: Time between attempts to open the port.
RETRY_S = 2.0
#: Limits what diagnostics keep of unknown types, which peers choose.
MAX_OTHER_TYPES = 8
MAX_TYPE_LETTERS = 24

# Counts whose growth is a warning.
FOREIGN_NAVDATA = "refused navdata"
PORT_UNAVAILABLE = "missed navdata ports"


class NavdataPort:
    """Receives the GUI's datagrams at our address towards it. For the link's thread."""

    def __init__(
        self,
        node: LinkNode,
        stream: UdpStream,
        connection: ControllerConnection,
        cancellation: Cancellation,
        take: Callable[[Navdata, bytes], None],
    ) -> None:
        """`take` gets each block that could be decoded, and its datagram."""
        self._node = node
        self._own_host, self._gui_host = stream.own_host, stream.peer_host
        self._connection = connection
        self._cancellation = cancellation
        self._take = take
        self._listener: UdpListener | None = None
        self._tried_s = -math.inf
        self._other_types: set[str] = set()

    @property
    def is_open(self) -> bool:
        return self._listener is not None

    def receive_until(self, due_s: float) -> None:
        """Receive navdata until a time of time.monotonic. Raises LinkCancelledError."""
        while True:
            self._open()
            left_s = max(0.0, due_s - time.monotonic())
            if self._listener:
                self._receive(self._listener, left_s)
            elif self._cancellation.wait(min(left_s, RETRY_S)):
                raise LinkCancelledError("Waiting was cancelled.")
            if time.monotonic() >= due_s:
                return

    def close(self) -> None:
        if self._listener:
            self._listener.close()
            self._listener = None

    def _open(self) -> None:
        now_s = time.monotonic()
        if self._listener or now_s < self._tried_s + RETRY_S:
            return
        self._tried_s = now_s
        port = self._node.parameters["navdata_port"]
        try:
            freshness = self._node.fresh_within("navdata_timeout")
            self._listener = UdpListener(
                self._own_host, port, self._cancellation, self._node.wire_log, freshness=freshness
            )
        except LinkError as error:
            self._node.reports.count_and_warn_ongoing(
                PORT_UNAVAILABLE, f"{error} Without it there is no navdata; retrying."
            )
        else:
            self._node.reports.end_ongoing(PORT_UNAVAILABLE)
            self._node.inform(f"Listening for navdata on {address_name(self._own_host, port)}.")

    def _receive(self, listener: UdpListener, timeout_s: float) -> None:
        try:
            datagram = listener.receive(timeout_s)
        except LinkTimeoutError:
            return
        except LinkCancelledError:
            raise
        except LinkError as error:
            self.close()
            self._node.count_and_warn(PORT_UNAVAILABLE, f"{error} The port is opened again.")
            return
        self._read(datagram)

    def _read(self, datagram: Datagram) -> None:
        counts = self._node.statistics.counts
        if datagram.source[0] != self._gui_host:
            self._node.reports.count_and_warn_ongoing(
                FOREIGN_NAVDATA,
                f"Navdata of {peer_name(datagram.source)} was refused: the GUI is at {self._gui_host}.",
            )
            return
        self._connection.receive_data(datagram.data)
        try:
            block = self._connection.next_event()
        except RemoteProtocolError as error:
            self._node.count_and_warn(
                "rejected input", f"A datagram of navdata from {peer_name(datagram.source)} was refused: {error}"
            )
            return
        if block is NEED_DATA:
            return
        if isinstance(block, Demo):
            counts["navdata"] += 1
            self._node.statistics.facts["navdata source"] = peer_name(datagram.source)
        elif isinstance(block, VisionDetect):
            counts["detections"] += 1
        else:
            counts["other navdata"] += 1
            if len(self._other_types) < MAX_OTHER_TYPES:
                self._other_types.add(block.type[:MAX_TYPE_LETTERS])
                self._node.statistics.facts["other navdata types"] = ", ".join(sorted(self._other_types))
        self._take(block, datagram.data)


# The node.

#: Hover packets at the start, as UDP may lose some.
HOVER_PACKETS = 3
#: The count of packets for which the network reported that nobody listens.
UNHEARD = "undelivered packets"
# Conditions in diagnostics.
NO_NAVDATA = "navdata"
EMERGENCY = "emergency"


class DroneGuiBridge(LinkNode):
    """Sends the controls at a steady rate: the newest command while it is fresh, otherwise hover.

    Whether the drone flies is known from navdata, or from a person; until one of them says so it is unknown, and what
    could do the opposite of what is wanted is refused. Without navdata it is then assumed from the commands, and
    service responses say so.
    """

    open_state = "sending"
    peer_may_be_silent = True
    rates = ("packets", "commands", "navdata", "detections")
    problems = (
        *LinkNode.problems,
        UNHEARD,
        "refused commands",
        "dropped messages",
        FOREIGN_NAVDATA,
        PORT_UNAVAILABLE,
        STALE_DATAGRAMS,
    )

    def __init__(self, **options: Any) -> None:
        super().__init__("dronegui_bridge", PARAMETERS, **options)
        self._is_flying: bool | None = None  # as published
        self._flying_publisher: Publisher[Any] | None = None
        self._is_hover_held = False
        self._was_refused = False  # the previous packet
        # Reentrant, as presses take time. Services always exist, and return an error until connected.
        self._group = ReentrantCallbackGroup()
        self._buttons = ButtonPanel()
        self._watch = FlightWatch(lambda: float(self.parameters["navdata_timeout"]))
        waits = Waits(self, self._group)
        self._flight = FlightCommands(
            self, self._buttons, self._watch, waits, self._assume_flying, expects_link=self._expects_link
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
        self._flying_publisher = self.make_publisher(Bool, "flying", latched())
        self._state_publisher = self.make_publisher(DroneGuiState, "dronegui/state", 10)
        names = frame_names(self.parameters, DroneFrameNames)
        self._frame_id = names.base_link
        self._first_packet_copies = self.parameters["first_packet_copies"]
        self._flight.receives_navdata = self.parameters["receive_navdata"]
        if self.parameters["initially"] == "landed":
            self._watch.begin(is_flying=False)
        if self._flight.receives_navdata:
            has_odometry = self.parameters["publish_odometry"]
            table = [row for row in TOPICS if has_odometry or row.of is not Pose]
            translation = Translation(names)
            self._topics = TopicPublishers(self, table, translation, static_transforms(names))
        drone = read_drone(self.parameters, AR_DRONE)
        commands = TiltCommands(self, drone, has_landing_button=True)
        self._pilot = TiltPilot(commands.arbiter, drone, hovers=True)
        self._is_landing = False
        self.each_second(self._land_if_it_has_to)
        for name, command in self._flight_commands():
            self.make_subscription(Empty, name, self._on_topic(name, command), 1, callback_group=self._group)

    def make_endpoint(self, cancellation: Cancellation) -> UdpConnector:
        """Send to one peer, with sequence numbers that start at 1 when the node is activated."""
        self._cancelled = cancellation
        self._connection = ControllerConnection()
        self._watch.listen()
        self._is_flying = None
        if self._flight.receives_navdata:
            self._topics.restart()
            self._dead_reckoning = DeadReckoning()
        host, port = self.parameters["host"], self.parameters["port"]
        return UdpConnector(host, port, cancellation, self._connecting_failed, self.wire_log)

    # The conversation, on the link's thread.

    def prepare(self) -> None:
        """Forget old commands."""
        self._pilot.restart(elapsed_s())

    def converse(self, stream: UdpStream) -> None:
        """Send the controls and receive navdata until cancelled; leave the drone hovering in any case."""
        port = NavdataPort(self, stream, self._connection, self._cancelled, self._take_navdata)
        self._flight.navdata_port = port if self._flight.receives_navdata else None
        self._buttons.is_open = True
        if (is_flying := self._watch.is_flying) is not None:
            self._publish_flying(is_flying)
        elif not self._flight.receives_navdata:
            self.inform(f"Whether the drone flies is unknown: {self._flight.advice}.")
        due_s = time.monotonic()
        try:
            for number in itertools.count():
                if number == HOVER_PACKETS:
                    self.opened()
                self._send(stream, self._commanded if number >= HOVER_PACKETS else lambda: HOVER)
                # After a delay, continue from now without catching up.
                due_s = max(due_s + 1 / self.parameters["rate"], time.monotonic())
                self._receive_until(port, due_s)
        except Exception:
            self._leave_hovering(stream)
            raise
        finally:
            self._flight.navdata_port = None
            port.close()
            self.statistics.end_condition(NO_NAVDATA)
            self.statistics.end_condition(EMERGENCY)
            self._buttons.close()

    def _commanded(self) -> Controls:
        """Return the controls to send, without momentary button presses."""
        shares = self._pilot.shares(elapsed_s(), is_overruled=self._is_hover_held)
        if self._pilot.is_estimating:
            self.reports.count_and_warn_ongoing(ESTIMATED, ESTIMATES)
        if shares is None:
            self.statistics.counts["hover packets"] += 1
            return HOVER
        return controls_from_shares(shares)

    def _send(self, stream: UdpStream, decide: Callable[[], Controls]) -> None:
        """Send a packet with the pressed buttons, and publish it. Raises LinkError."""
        for _ in range(2):
            decided_s, seq, now_s = elapsed_s(), self._connection.next_seq, time.monotonic()
            down = self._buttons.down(now_s)
            pressed, neutral = with_buttons(decide(), down), with_buttons(HOVER, down)
            sent = self.encode(lambda each: (each, self._connection.send(each)), pressed, neutral)
            assert sent  # hover can always be encoded
            controls, datagram = sent
            if seq == FIRST_SEQ or elapsed_s() - decided_s <= STALL_S:
                break  # else this process stood still since, and what was decided is too old
        was_refused = False
        try:
            for _ in range(self._first_packet_copies if seq == FIRST_SEQ else 1):
                stream.send(datagram)
        except LinkRefusedError as error:
            was_refused = True
            if not self._cancelled.is_set:  # the GUI may have closed before us
                self.reports.count_and_warn_ongoing(UNHEARD, f"{error} Packets are still sent.")
                if self._watch.refused():
                    self.warn(f"Whether the drone flies is not known any more: {self._flight.advice}.")
        if not was_refused and self._was_refused and not self._cancelled.is_set:
            self.reports.end_ongoing(UNHEARD)
        self._was_refused = was_refused
        self.statistics.counts["packets"] += 1
        self._buttons.sent(down, now_s, was_refused)
        if self.is_wanted(self._state_publisher):
            message = drone_gui_state(seq, controls, self.get_clock().now().to_msg())
            message.header.frame_id = self._frame_id
            self.publish(self._state_publisher, message)

    def _receive_until(self, port: NavdataPort, due_s: float) -> None:
        """Receive navdata until a time of time.monotonic. Raises LinkCancelledError."""
        if self._flight.receives_navdata:
            port.receive_until(due_s)
            self._report_navdata()
        elif self._cancelled.wait(max(0.0, due_s - time.monotonic())):
            raise LinkCancelledError("Waiting was cancelled.")

    def _take_navdata(self, block: Navdata, datagram: bytes) -> None:
        received_s = time.monotonic()
        self.statistics.liveness.heard()
        if isinstance(block, Demo):
            self._watch.note(block.flight_state)
            if self._watch.is_flying is not None and self._watch.is_flying != self._is_flying:
                self._publish_flying(self._watch.is_flying)
            self.statistics.facts |= navdata_facts(block)
            if (percentage := block.vbat_flying_percentage) is not None:
                self.observed.battery = percentage / 100
            if block.flight_state not in (None, *STEERED):
                self._pilot.stands()
            elif motion := measured_motion(block):
                self._pilot.measured(motion, elapsed_s())
        stamp = self.now()
        self._topics.publish(datagram, stamp)
        self._topics.publish(block, stamp)
        if isinstance(block, Demo) and (pose := self._dead_reckoning.update(block, received_s)):
            self.observed.measured(*pose.motion, height=pose.z)
            self._topics.publish(pose, stamp)
        self.statistics.took("navdata read to published", time.monotonic() - received_s)

    def _report_navdata(self) -> None:
        """Report in diagnostics whether navdata arrives, and an emergency."""
        if self._watch.hears_gui:
            self.statistics.end_condition(NO_NAVDATA)
        elif self._watch.listened_s > self.parameters["navdata_timeout"]:
            sentence = f"no navdata: {self._flight.blind_reason}"
            if self._watch.is_flying is None:
                sentence += f", and whether the drone flies is unknown: {self._flight.advice}"
            self._begin_condition(NO_NAVDATA, sentence, DiagnosticStatus.WARN)
        if self._watch.sees_drone and self._watch.state is FlightState.DEFAULT:
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
                self._send(stream, lambda: HOVER)

        self._buttons.close()
        repeat_farewell(send_hover)

    def _land_if_it_has_to(self) -> None:
        is_due = not self._is_landing and self._pilot.arbiter.rank(elapsed_s()) is Rank.LANDING
        if is_due and (executor := self.executor):
            self._is_landing = True
            executor.create_task(self._land)  # as it takes long

    async def _land(self) -> None:
        try:
            self.warn(await self._flight.land())
        except ValueError as error:
            self.warn(f"The vehicle has to land, and does not: {error}")
        finally:
            self._is_landing = False

    # What the executor does.

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
                self._check_allowed(topic)
                self.inform(await command())
            except ValueError as error:
                self.count_and_warn("refused commands", f"A message on {topic} was refused: {error}")

        return receive

    def _check_allowed(self, name: str) -> None:
        """Raise ValueError for a command that is refused while the drone is held, or that may have waited for long."""
        if name != "land":  # which does nothing unless the drone has been seen flying since
            self.hold.check(name)
            self.check_age(name)

    def _on_call(self, name: str, command: Callable[[], Coroutine[Any, Any, str]]) -> Callable[[Any, Any], Any]:
        """Return a callback that runs a command for a service call."""

        async def serve(_: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
            try:
                self._check_allowed(name)
                response.message, response.success = await command(), True
            except ValueError as error:
                response.message, response.success = str(error), False
                self.count_and_warn("refused commands", response.message)
            return response

        return serve

    def _serve_hover(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        if not request.data and not self.takes_commands():
            response.message = "The drone hovers on: the request may have waited while this process stood still."
            return response
        if self._is_hover_held and not request.data and self._expects_link():
            self._pilot.arbiter.forget()  # it hovers on until it is told something new
        self._is_hover_held = request.data
        response.success = True
        response.message = (
            "The drone hovers, whatever is commanded." if request.data else "The drone follows commands again."
        )
        return response

    def _serve_assume_flying(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        try:
            self.check_age("assume_flying")
        except ValueError as error:
            response.message = str(error)
            return response
        if self._watch.sees_drone:
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
