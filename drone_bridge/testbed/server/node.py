# SPDX-License-Identifier: Apache-2.0
"""testbed_server: a virtual testbed for legacy autopilots, flown by whatever drone is in ROS. See docs/testbed.md."""

import math
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from builtin_interfaces.msg import Time
from geometry_msgs.msg import Twist
from nav_msgs.msg import Odometry
from rclpy.publisher import Publisher
from sensor_msgs.msg import CameraInfo, Image, Imu

from drone_bridge.motion.quaternions import Quaternion
from drone_bridge.msg import CommandRates, DroneProperties
from drone_bridge.net.clock import elapsed_s
from drone_bridge.net.connector import LinkError
from drone_bridge.net.tcp import TcpStream, Wakeup
from drone_bridge.ros.common_parameters import NEUTRAL_TIME, SOURCE_TIMEOUT, common_parameters
from drone_bridge.ros.frames import FrameNames
from drone_bridge.ros.last_word import LastWord, has_followers
from drone_bridge.ros.link_node import LinkNode
from drone_bridge.ros.parameters import DeclaredParameters, ParameterDeclaration
from drone_bridge.ros.program import run
from drone_bridge.ros.stall_watch import PROCESS
from drone_bridge.ros.tcp_link_node import TcpLinkNode
from drone_bridge.ros.topics import latched, newest, wait_for_delivery
from drone_bridge.ros.velocity_messages import cmd_vel_type
from drone_bridge.testbed import topics as translate
from drone_bridge.testbed.codec import NEED_DATA, AngleUnit, AttitudeLayout, ConnectionClosed
from drone_bridge.testbed.device import Dialect, FlightLimits, LevelVelocity, LockstepExchange, ModelledFlight
from drone_bridge.testbed.server.drone import ATTITUDE_TIMEOUT_S, FrameSynchronizer, RosDrone
from drone_bridge.testbed.topics import ANGLE_UNIT, SIDES, Command, attitude_layout
from drone_bridge.wire.events import LocalProtocolError

# Parameters.

AUTO = "auto"
RATES = "cmd_rates"
VELOCITY = "cmd_vel"
CHOICES = (AUTO, RATES, VELOCITY)
LOCKSTEP = "lockstep"
#: How many image pairs are queued: until their attitude arrives, and in lockstep until they are due.
DEPTHS = {"latest": 4, LOCKSTEP: 16}
#: The sides to subscribe to, by the parameter cameras.
SIDES_OF = {"stereo": SIDES, "mono": SIDES[:1], "none": ()}
ATTITUDE_TOPICS = {"imu/data": Imu, "odom": Odometry}
#: Prefix of the assumed properties, which are named as in DroneProperties.
DRONE = "drone"
GRAVITY = 9.81  # m/s^2
_VELOCITY = "velocity"
#: How far the modelled drone may be from the vehicle, m, and how fast its position converges to the vehicle's, 1/s.
MAX_LEAD, CORRECTION_GAIN = 1.0, 0.8
_ASSUMED = {
    "image_width": (200, "pixels", 1, 4096),
    "image_height": (200, "pixels", 1, 4096),
    "horizontal_angle_of_view": (math.radians(120.0), "rad, edge to edge", 0.01, 3.1),
    "vertical_angle_of_view": (math.radians(120.0), "rad, edge to edge", 0.01, 3.1),
    "mass": (1.0, "kg", 1e-3, 1e4),
    "drag": (0.2, "kg/s, force per air speed", 0.0, 1e4),
    "max_thrust": (25.0, "N", 1e-3, 1e6),
    "max_rate": (4 * math.pi, "rad/s, of roll, pitch and yaw", 0.0, 100.0),
}

PARAMETERS = (
    *common_parameters(8000, "The port to listen on, 0 picks a free one; or the autopilot's.", ("listen", "connect")),
    SOURCE_TIMEOUT,
    NEUTRAL_TIME,
    attitude_layout(is_detectable=False),
    ANGLE_UNIT,
    ParameterDeclaration(
        "sync",
        "latest",
        "latest sends the newest frame once the previous one is answered, and drops those in between; lockstep sends "
        "all of them in order, for a drone that waits for the command to each.",
        choices=tuple(DEPTHS),
    ),
    ParameterDeclaration(
        "stamp_source",
        "ros",
        "The time on the wire: ros counts from the stamp of the first frame; wire takes the stamps as they are.",
        choices=("ros", "wire"),
    ),
    ParameterDeclaration(
        "cameras",
        "stereo",
        "stereo pairs left and right images by stamp; mono sends left/image_raw as both, with no separation; none "
        "sends black images with every attitude.",
        choices=tuple(SIDES_OF),
    ),
    ParameterDeclaration(
        "image_tolerance",
        0.0,
        "How far the stamps of a left and a right image may be apart that make a pair, s, for cameras that run freely: "
        "less than half their period. Once two have had the same stamp, only such make one.",
        range=(0.0, 1.0),
    ),
    ParameterDeclaration(
        "attitude_from",
        "imu/data",
        "The topic that gives the attitude; a pose always comes from odom.",
        choices=tuple(ATTITUDE_TOPICS),
    ),
    ParameterDeclaration(
        "command_output",
        AUTO,
        "Publish rates and thrust (cmd_rates), or the velocities they lead to (cmd_vel); auto uses cmd_vel if it has "
        "subscribers and cmd_rates has none. With cmd_vel the autopilot gets the tilt of a modelled drone, and the "
        "images show the vehicle's: an autopilot that steers by what it sees needs cmd_rates.",
        choices=CHOICES,
    ),
    *(
        ParameterDeclaration(f"{_VELOCITY}.{name}", default, meaning, range=(least, most))
        for name, default, meaning, least, most in (
            ("max_speed", 5.0, "Maximum horizontal speed on cmd_vel, m/s.", 0.01, 50.0),
            ("max_climb_speed", 2.5, "Maximum vertical speed on cmd_vel, m/s.", 0.01, 50.0),
            ("max_yaw_rate", 4.0, "Maximum yaw rate on cmd_vel, rad/s.", 0.01, 100.0),
            ("max_tilt", 1.0, "Maximum tilt of the modelled drone, rad.", 0.05, 1.4),
        )
    ),
    ParameterDeclaration(
        "negative_gravity", False, "Announce gravity as some testbeds do, as an acceleration upwards."
    ),
    *(
        ParameterDeclaration(
            f"{DRONE}.{name}", default, f"Assumed if drone_properties is not published; {unit}.", range=(least, most)
        )
        for name, (default, unit, least, most) in _ASSUMED.items()
    ),
)


def assumed_drone(parameters: DeclaredParameters) -> dict[str, float]:
    """Return the assumed properties of the drone by their names in DroneProperties."""
    drone = {name: parameters[f"{DRONE}.{name}"] for name in _ASSUMED}
    rate = drone.pop("max_rate")
    return {**drone, "gravity": GRAVITY, "max_roll_rate": rate, "max_pitch_rate": rate, "max_yaw_rate": rate}


def flight_limits(parameters: DeclaredParameters) -> FlightLimits:
    """Return the limits that apply while velocities are published."""
    limits = ("max_speed", "max_climb_speed", "max_tilt", "max_yaw_rate")
    return FlightLimits(**{name: parameters[f"{_VELOCITY}.{name}"] for name in limits}, max_lead=MAX_LEAD)


# What the drone is: from drone_properties, or from camera_info and parameters.

_CHECK_PERIOD_S = 0.1


class PropertiesSource:
    """Subscribes to drone_properties, and falls back on camera_info and parameters after `source_timeout`.

    From the first drone_properties on, only those count. For the executor.
    """

    def __init__(self, node: LinkNode, learn: Callable[[DroneProperties], None]) -> None:
        """`learn` gets the properties whenever they change."""
        self._node = node
        self._sides = SIDES_OF[node.parameters["cameras"]]
        self._learn = learn
        self._assumed = assumed_drone(node.parameters)
        self._infos: dict[str, CameraInfo] = {}
        self._since_s = time.monotonic()
        self._uses_camera_info = self._is_known = False
        node.make_subscription(DroneProperties, "drone_properties", self._take_properties, latched())
        self._timer = node.make_timer(_CHECK_PERIOD_S, self._check_timeout)

    @property
    def missing(self) -> str:
        """What is still needed, as a sentence."""
        resolve = self._node.resolve_topic_name
        infos = " and ".join(resolve(f"{side}/camera_info") for side in self._sides if side not in self._infos)
        infos = infos and f" {infos} and"
        return f"The drone's properties come from {resolve('drone_properties')}, or{infos} the parameters {DRONE}.*."

    def _take_properties(self, properties: DroneProperties) -> None:
        if len(self._sides) < len(SIDES):  # both images are the same then
            properties.camera_separation = 0.0
        self._is_known = True
        self._timer.cancel()
        if self._uses_camera_info:
            self._uses_camera_info = False
            for side in self._sides:
                self._node.end_subscriptions(f"{side}/camera_info")
        self._node.statistics.facts["constants"] = "from drone_properties"
        self._learn(properties)

    def _check_timeout(self) -> None:
        """Subscribe to camera_info only when it is needed, as every image has one."""
        if self._is_known or self._uses_camera_info:
            return
        if time.monotonic() - self._since_s > self._node.parameters["source_timeout"]:
            self._timer.cancel()
            self._uses_camera_info = True
            for side in self._sides:
                self._node.make_subscription(CameraInfo, f"{side}/camera_info", partial(self._take_info, side), 1)
            if not self._sides:
                self._assume(DroneProperties(**self._assumed), f"from the parameters {DRONE}.*")

    def _take_info(self, side: str, info: CameraInfo) -> None:
        if self._is_known or (side in self._infos and _same(self._infos[side], info)):
            return
        self._infos[side] = info
        if self._infos.keys() < set(self._sides):
            return
        properties = DroneProperties(**self._assumed)
        try:
            translate.add_cameras(properties, self._infos["left"], self._infos.get("right"))
        except ValueError as error:
            self._node.count_and_warn("rejected input", f"The drone's cameras are not known: {error}")
            return
        self._assume(properties, f"from camera_info and the parameters {DRONE}.*")

    def _assume(self, properties: DroneProperties, source: str) -> None:
        self._node.statistics.facts["constants"] = source
        self._node.inform(f"Nobody publishes drone_properties: the parameters {DRONE}.* are used.")
        self._learn(properties)


def _same(one: CameraInfo, other: CameraInfo) -> bool:
    """Return whether two messages are equal except for their headers."""
    return (one.width, one.height, list(one.k), list(one.p)) == (
        other.width,
        other.height,
        list(other.k),
        list(other.p),
    )


# Commands: what is published, and a neutral one when an operator's stop.


class CommandOutputs:
    """The publishers, of which one is `chosen`. `check_subscribers` is for the executor, the rest for other threads."""

    def __init__(self, node: LinkNode, frame_id: str) -> None:
        """Create the publishers that the parameter command_output allows."""
        self._node = node
        self._frame_id = frame_id
        choice = node.parameters["command_output"]
        self._allowed = (RATES, VELOCITY) if choice == AUTO else (choice,)
        types = {RATES: CommandRates, VELOCITY: cmd_vel_type(node.parameters)}
        self.publishers = {topic: node.make_publisher(types[topic], topic, newest()) for topic in self._allowed}
        #: The topic that is published, and the one that should be.
        self.chosen = self.wanted = self._seen_best = self._allowed[0]

    @property
    def topics(self) -> str:
        """The topics that may be published, as text."""
        return " or ".join(map(self._node.resolve_topic_name, self._allowed))

    @property
    def is_velocity(self) -> bool:
        """Whether velocities are published."""
        return self.chosen == VELOCITY

    def check_subscribers(self, *, is_flying: bool) -> bool:
        """Choose the topic by its subscribers, preferring rates; return whether there are any.

        A change takes two checks, as the subscriptions of one node are not discovered at once. In flight the topic
        changes only once it has lost its subscribers.
        """
        subscribed = [topic for topic in self._allowed if has_followers(self._node, topic)]
        best, before = subscribed[0] if subscribed else self.wanted, self._seen_best
        self._seen_best = best
        if best == before and not (is_flying and self.wanted in subscribed):
            self.wanted = best
        return bool(subscribed)

    def rates(self, command: Command, stamp: Time) -> "tuple[Publisher[Any], CommandRates]":
        """Return rates and thrust, with the stamp of the frame that they answer, and their publisher."""
        message = translate.rates_from_command(command, stamp)
        message.header.frame_id = self._frame_id
        return self.publishers[RATES], message

    def velocity(self, twist: Twist) -> "tuple[Publisher[Any], Twist]":
        """Return a velocity and its publisher."""
        return self.publishers[VELOCITY], twist


class CommandWatchdog:
    """Forwards commands, and publishes the neutral one once after a timeout.

    Thread-safe: a command and the neutral one never overtake each other. Times are passed in.
    """

    def __init__(self, publish_neutral: Callable[[], None], *, is_lockstep: bool = False) -> None:
        """Prepare to forward.

        Args:
            publish_neutral: publishes the neutral command.
            is_lockstep: the timeout runs from each frame instead of each command, as the vehicle waits for the command
                to its frame, and the neutral command may be that command.
        """
        self._lock = threading.Lock()
        self._publish_neutral = publish_neutral
        self._is_lockstep = is_lockstep
        self._forwarded_s: float | None = None  # when the last command was forwarded; None after the neutral one
        self._asked_s: float | None = None  # when the frame was sent whose command is awaited

    @property
    def is_active(self) -> bool:
        """Whether the last command was not the neutral one."""
        return self._forwarded_s is not None

    def ask(self, now_s: float) -> None:
        """Note that a frame was sent, so that a command is expected."""
        with self._lock:
            self._asked_s = now_s

    def forward(self, publish_command: Callable[[], None], now_s: float) -> bool:
        """Publish a command, unless the neutral one was published instead; return whether it was published."""
        with self._lock:
            if self._is_lockstep and self._asked_s is None:
                return False
            publish_command()
            self._forwarded_s, self._asked_s = now_s, None
            return True

    def check(self, now_s: float, timeout_s: float) -> bool:
        """Publish the neutral command if none has come for `timeout_s`; return whether it was published."""
        with self._lock:
            since_s = self._asked_s if self._is_lockstep else self._forwarded_s
            if self._forwarded_s is None or since_s is None or now_s - since_s < timeout_s:
                return False
            self._release()
            return True

    def release(self) -> None:
        """Publish the neutral command, unless it was the last one."""
        with self._lock:
            if self._forwarded_s is not None:
                self._release()

    def _release(self) -> None:
        self._forwarded_s = self._asked_s = None
        self._publish_neutral()


# The node.

_WATCH_PERIOD_S = 0.02
_SUBSCRIBER_CHECK_PERIOD_S = 0.5
_RECEIVE_BYTES = 256
#: How long the autopilot has to close its side.
_LEAVE_TIMEOUT_S = 0.3
_WAITING = "waiting for the drone"  # of conditions
#: The tilt, rad, from which a drone that is to hover is levelled out at any time, and within which it is level.
_TILTED, _LEVEL = math.radians(5.0), math.radians(0.5)
#: When, after the first neutral command, it is levelled out from a smaller tilt: not at once, for an operator who is
#: back, and not for long, for a vehicle that stops by itself when it hears nothing.
_LEVELLING_FROM_S, _LEVELLING_UNTIL_S = 1.0, 2.5
#: An older attitude may be another one by now.
_ATTITUDE_AGE_S = 0.3
_LATE = "An answer took longer than command_timeout and was not followed."
_UNHEARD = "unheard commands"


class TestbedServer(TcpLinkNode):
    """Sends sensor frames to an autopilot, and publishes its answers as commands."""

    is_server = True
    __test__ = False  # not a test, whatever its name tells pytest
    rates = ("frames", "commands")
    problems = (*TcpLinkNode.problems, "dropped messages", "refused frames", "late answers", "neutral commands")

    def __init__(self, **options: Any) -> None:
        super().__init__("testbed_server", PARAMETERS, **options)
        self._wakeup = Wakeup()

    def set_up(self) -> None:
        get = self.parameters.__getitem__
        layout, unit = AttitudeLayout(get("attitude_layout")), AngleUnit(get("angle_unit"))
        self._dialect = Dialect(layout, unit, get("negative_gravity"), sends_in_pieces=True)
        self._stamps_are_simulated = get("stamp_source") == "wire"
        sides = SIDES_OF[get("cameras")]
        self._has_cameras = bool(sides)
        depth = DEPTHS[get("sync")]
        keeps_order = self._is_lockstep = get("sync") == LOCKSTEP
        self._read_timeouts()
        is_one_picture = len(sides) < len(SIDES)
        self._synchronizer = FrameSynchronizer(
            depth,
            keeps_order=keeps_order,
            is_mono=is_one_picture,
            on_input=self._wakeup.wake,
            tolerance_s=get("image_tolerance"),
        )
        self._drone = RosDrone(
            self._synchronizer,
            unit,
            stamps_are_simulated=self._stamps_are_simulated,
            now_s=time.monotonic,
            max_age_s=lambda: self._source_timeout_s,
            command=self._command_rates,
            follow=self._command_velocity,
            refuse=lambda sentence: self.count_and_warn("refused frames", f"A frame was not sent: {sentence}"),
        )
        self._new_constants = False
        self._has_told_of_tilt = False  # that is not in the images
        self._awaits_answer = False  # a frame was sent that the autopilot has not answered
        self._outputs = CommandOutputs(self, FrameNames(get("frame_prefix")).base_link)
        self._is_levelling = False
        self._attitude: tuple[Quaternion, float] | None = None  # the newest one, and when it came
        self._last_word = LastWord(self, tuple(self._outputs.publishers.values()), self._neutral)
        self._watchdog = CommandWatchdog(self._last_word.say, is_lockstep=keeps_order)
        in_hand = depth if keeps_order else 1
        for side in sides:
            self.make_subscription(Image, f"{side}/image_raw", partial(self._take_image, side), in_hand)
        topic = "odom" if layout is AttitudeLayout.POSE else get("attitude_from")
        self.make_subscription(ATTITUDE_TOPICS[topic], topic, self._take_attitude, in_hand)
        self._attitude_topic = topic
        if topic != "odom" and get("command_output") != RATES:  # a vehicle that follows velocities is steered by it
            self.make_subscription(Odometry, "odom", self._locate, 1)
        self._properties = PropertiesSource(self, self._learn)
        self.make_ticker("watch", _WATCH_PERIOD_S, self._check_timeouts)
        self.make_timer(_SUBSCRIBER_CHECK_PERIOD_S, self._check_subscribers)

    # In the executor.

    def _take_image(self, side: str, image: Image) -> None:
        self._synchronizer.add_image(side, image, time.monotonic())

    def _take_attitude(self, message: Imu | Odometry) -> None:
        now_s = time.monotonic()
        turned = message.orientation if isinstance(message, Imu) else message.pose.pose.orientation
        self._attitude = Quaternion(turned.x, turned.y, turned.z, turned.w), now_s
        self._synchronizer.add_attitude(message, now_s)
        if not self._has_cameras and self._drone.is_known:
            self._synchronizer.add_image(SIDES[0], self._drone.black_image(message.header.stamp), now_s)

    def _locate(self, odometry: Odometry) -> None:
        try:
            self._drone.locate(odometry)
        except ValueError as error:
            self.count_and_warn("rejected input", f"A message on {self.resolve_topic_name('odom')} is no pose: {error}")

    def _learn(self, properties: DroneProperties) -> None:
        before = self._drone.constants if self._drone.is_known else None
        try:
            self._drone.learn(properties)
        except ValueError as error:
            self.count_and_warn("rejected input", f"The drone's properties can't be announced: {error}")
            return
        self._new_constants = self._new_constants or before not in (None, self._drone.constants)
        self._wakeup.wake()

    def _read_timeouts(self) -> None:
        """Cache live parameters, as reading one takes too long to do it several times per frame."""
        self._command_timeout_s: float = self.parameters["command_timeout"]
        self._source_timeout_s: float = self.parameters["source_timeout"]
        self._silence_warning_s: float = self.parameters["silence_warning"]

    def _check_timeouts(self) -> None:
        """Tell the drone to stop when the autopilot is late. In a thread of its own."""
        self._read_timeouts()
        timeout_s = self._command_timeout_s
        if self._watchdog.check(time.monotonic(), timeout_s):
            # An autopilot can answer only what it was sent, and what it sends is read only while this process runs.
            if PROCESS.running_s() < timeout_s:
                reason = f"This process stood still, so that no command went out for {timeout_s:g} s"
            elif self._awaits_answer:
                reason = f"The autopilot has answered no frame for {timeout_s:g} s"
            else:
                reason = (
                    f"The drone has sent nothing new for {timeout_s:g} s, so that the autopilot has nothing to answer"
                )
            order = self._neutral_meaning
            self.count_and_warn("neutral commands", f"{reason} (command_timeout): the drone was commanded to {order}.")
        self._level_out()

    def _level_out(self) -> None:
        """Repeat the neutral command while the drone is tilted, each time for the attitude that it has by now."""
        age_s = self._last_word.age_s
        was_levelling, self._is_levelling = self._is_levelling, False
        if age_s is None or self._outputs.is_velocity:
            return
        if attitude := self._fresh_attitude():
            tilt = translate.tilt_of(attitude)
            is_time = _LEVELLING_FROM_S < age_s < _LEVELLING_UNTIL_S
            self._is_levelling = tilt > _TILTED or (is_time and tilt > _LEVEL)
        if self._is_levelling or was_levelling:  # the last of them has zero rates
            self._last_word.repeat()

    def _check_subscribers(self) -> None:
        is_open = self.statistics.liveness.is_open
        if not self._outputs.check_subscribers(is_flying=is_open) and is_open:
            self.statistics.begin_condition(_UNHEARD, f"nobody subscribes to {self._outputs.topics}")
        else:
            self.statistics.end_condition(_UNHEARD)

    # The conversation, on the link's thread.

    def converse(self, stream: TcpStream) -> None:
        """Send frames and publish the answers to them."""
        exchange = LockstepExchange(self._drone, self._dialect)
        self._drone.start_over()
        self._has_opened = self._new_constants = False
        self._idle_since_s = time.monotonic()  # since the autopilot's last answer
        self.statistics.facts["attitude layout"] = self._dialect.layout.value
        stream.acknowledge_at_once()  # some autopilots send an answer in pieces, with Nagle's algorithm on
        if self.parameters["role"] == "connect":  # when listening, a vanished autopilot's place goes to the next one
            stream.expect_acknowledgements()
        buffer = memoryview(bytearray(_RECEIVE_BYTES))
        try:
            while self._receive_answer(exchange):
                self._send_frame(stream, exchange)
                if stream.wait(self._wakeup, ATTITUDE_TIMEOUT_S / 2):
                    if count := stream.receive_into(buffer):
                        exchange.receive_data(buffer[:count])
                    else:
                        exchange.receive_eof()
                self._wakeup.clear()
            self.inform("The autopilot has left.")
        finally:
            self._watchdog.release()
            stream.leave(b"", _LEAVE_TIMEOUT_S)
            for publisher in self._outputs.publishers.values():  # whose last word may be lost when ROS is shut down
                wait_for_delivery(publisher)

    def _receive_answer(self, exchange: LockstepExchange) -> bool:
        """Handle the autopilot's answer, if it has arrived; return whether the autopilot is still connected."""
        now_s = time.monotonic()
        late_before, limited_before = exchange.late_answers, self._drone.limited
        exchange.answer_timeout_s = self._command_timeout_s
        if self._drone.flight and not self._watchdog.is_active:  # the vehicle was told to stop
            self._drone.flight.reset()
        event = exchange.next_event(now_s)
        self._awaits_answer = exchange.awaits_answer
        if isinstance(event, ConnectionClosed):
            return False
        if event is not NEED_DATA:
            assert self._drone.frame
            self.opened()
            self.statistics.took("waiting for the autopilot", now_s - self._idle_since_s)
            self._idle_since_s = now_s
            self.statistics.counts["limited commands"] += self._drone.limited - limited_before
            if exchange.late_answers > late_before:
                self.count_and_warn("late answers", _LATE)
        if not exchange.awaits_answer:
            self.statistics.liveness.heard()  # no answer is due
        return True

    def _send_frame(self, stream: TcpStream, exchange: LockstepExchange) -> None:
        """Send the next frame unless an answer is pending. Raises LinkError if there has been none for too long."""
        if self._new_constants:
            raise LinkError("The drone's properties have changed, and a testbed announces them once: reconnecting.")
        if exchange.awaits_answer:
            return
        self._choose_output()
        now_s = time.monotonic()
        if not self._has_opened and not self._open_session(stream, exchange, now_s):
            return
        if self._outputs.is_velocity and self._drone.flight is None:
            self._model_flight()
        try:
            pieces = exchange.next_frame(now_s)
        except LocalProtocolError as error:
            self.count_and_warn("refused frames", f"A frame was not sent: {error}")
            pieces = []
        if not pieces:
            self._check_sources(now_s)
            return
        self._awaits_answer = True
        self._watchdog.ask(now_s)
        for piece in pieces:
            # Longer than command_timeout: as with a testbed, a slow reader keeps its connection.
            stream.send_all(piece, self._silence_warning_s)
        assert self._drone.frame
        self.statistics.counts["frames"] += 1
        self.statistics.counts["dropped frames"] = self._synchronizer.dropped
        self.statistics.counts["images without their other side"] = self._synchronizer.unmatched
        self.statistics.took("frame complete to sent", time.monotonic() - self._drone.frame.completed_s)
        self._idle_since_s = now_s

    def _open_session(self, stream: TcpStream, exchange: LockstepExchange, now_s: float) -> bool:
        """Send the constants once there is a drone; return whether they were sent."""
        missing = self._synchronizer.missing(now_s, self._source_timeout_s)
        if not self._drone.is_known or missing:
            self._warn_of_missing(missing)
            return False
        stream.send_all(exchange.opening(), self._source_timeout_s)
        self._has_opened = True
        self._idle_since_s = now_s
        self.reports.end_ongoing(_WAITING)
        return True

    def _check_sources(self, now_s: float) -> None:
        """Raise LinkError if the drone has sent nothing for too long."""
        timeout_s = self._source_timeout_s
        if min(now_s - self._idle_since_s, PROCESS.running_s()) > timeout_s:  # it did not listen while it stood still
            missing = self._synchronizer.missing(now_s, timeout_s)
            raise LinkError(
                f"Nothing to send was received for {timeout_s:g} s (source_timeout){self._missing_topics(missing)}: "
                f"the connection is closed, as testbeds do."
            )

    def _warn_of_missing(self, missing: str) -> None:
        if time.monotonic() - self._idle_since_s < self._source_timeout_s:
            return
        properties = "" if self._drone.is_known else f" {self._properties.missing}"
        self.reports.warn_ongoing(
            _WAITING, f"The autopilot waits for its first frame{self._missing_topics(missing)}.{properties}"
        )

    def _missing_topics(self, missing: str) -> str:
        """Return which topics are missing, as a clause, or an empty string."""
        topics = {"left": "left/image_raw", "right": "right/image_raw", "attitude": self._attitude_topic}
        kinds = missing.split(" and ") if missing else []
        if not self._has_cameras:  # black images come with attitudes
            kinds = [kind for kind in kinds if kind not in SIDES]
        names = [self.resolve_topic_name(topics[kind]) for kind in kinds]
        if not names:
            mismatch = self._synchronizer.mismatch(time.monotonic(), self._source_timeout_s)
            return f", and {mismatch}" if mismatch else ""
        return f", and nothing is received on {' and '.join(names)}"

    # Commands.

    def _choose_output(self) -> None:
        """Switch to the topic that has subscribers."""
        outputs = self._outputs
        if outputs.chosen != outputs.wanted:
            self._watchdog.release()
            outputs.chosen, self._drone.flight = outputs.wanted, None
            self.inform(f"Commands are published on {self.resolve_topic_name(outputs.chosen)}, which has subscribers.")
        self.statistics.facts["commands"] = outputs.chosen

    def _model_flight(self) -> None:
        """Start a modelled flight, as the vehicle follows velocities."""
        if self._has_cameras and not self._has_told_of_tilt:
            self._has_told_of_tilt = True
            self.warn(
                "The vehicle follows velocities, so the autopilot gets the tilt of a modelled drone, while "
                "the images show what the vehicle sees: an autopilot that steers by the images needs a vehicle that "
                "takes cmd_rates (command_output)."
            )
        heading_gain = CORRECTION_GAIN if self._dialect.layout is AttitudeLayout.PITCH_YAW else math.inf
        limits, unit = flight_limits(self.parameters), self._dialect.angle_unit
        tells_position = self._dialect.layout is AttitudeLayout.POSE
        self._drone.flight = ModelledFlight(
            self._drone.constants, unit, limits, CORRECTION_GAIN, heading_gain, tells_position=tells_position
        )

    def _command_rates(self, command: Command, stamp: Time) -> None:
        self._forward(*self._outputs.rates(command, stamp))

    def _command_velocity(self, velocity: LevelVelocity) -> None:
        twist = translate.twist_from_velocity(*velocity)
        self._forward(*self._outputs.velocity(twist))

    def _forward(self, publisher: "Publisher[Any]", message: Any) -> None:
        now_s = time.monotonic()  # if this process stands still after this, the watchdog finds the command too old
        # In lockstep the vehicle waits, so nothing is old by its time.
        decided_s = math.inf if self._is_lockstep else elapsed_s()
        if not self._is_lockstep and not self.takes_commands():
            return
        if self._watchdog.forward(partial(self._last_word.publish, publisher, message, decided_s), now_s):
            self.statistics.counts["commands"] += 1
        else:
            self.count_and_warn("late answers", _LATE)

    def _neutral(self) -> "tuple[Publisher[Any], Any] | None":
        """Return the command that holds the vehicle best: a velocity of zero, or what levels it out."""
        if self._outputs.is_velocity:
            return self._outputs.velocity(Twist())
        if not self._drone.is_known:
            return None
        stamp = self.now()
        if self._stamps_are_simulated:  # in lockstep it is the command to the frame that was sent last
            if self._drone.frame is None:
                return None
            stamp = self._drone.frame.stamp if self._is_lockstep else self._synchronizer.newest_stamp
        attitude, constants = self._fresh_attitude(), self._drone.constants
        # Rates other than zero have to be followed by others soon, as `_level_out` does.
        if attitude and (self._is_levelling or translate.tilt_of(attitude) > _TILTED):
            return self._outputs.rates(translate.levelling(constants, attitude), stamp)
        return self._outputs.rates(translate.hover(constants), stamp)

    def _fresh_attitude(self) -> Quaternion | None:
        """Return how the vehicle is turned, if that is known."""
        attitude = self._attitude
        if attitude is None or time.monotonic() - attitude[1] > min(self._source_timeout_s, _ATTITUDE_AGE_S):
            return None
        return attitude[0]

    @property
    def _neutral_meaning(self) -> str:
        if self._outputs.is_velocity:
            return "stop"
        if self._fresh_attitude():
            return "level out"
        return (
            f"keep its attitude, by zero rates and the thrust that carries its weight when level: it hovers only if it "
            f"was level, as {self.resolve_topic_name(self._attitude_topic)} does not say how it is turned"
        )


def main() -> int:
    """Run the node."""
    return run(TestbedServer)
