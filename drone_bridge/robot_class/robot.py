# SPDX-License-Identifier: Apache-2.0
r"""Robot: base class of a robot that is described in one class, and the types of its methods.

    class Pioneer(Robot):
        name, summary = "pioneer", "a Pioneer 3 robot"
        control = Tcp(8101, Packets(b"\xfa\xfb", length_at=2))
        max_speeds, robot_stops_after_s = {"x": 2.2, "yaw": 8.7}, 2.0

        def handshake(self): ...                  # packets on a new connection, and tests of their answers
        def encode_command(self, velocity): ...   # packets for a velocity
        def decode_report(self, packet): ...      # Telemetry(...), or None

These methods define the bridge. `decode_command` and `encode_report`, the robot's end of the same packets, add the
emulator, the server for the robot's original programs, and round-trip tests. An entry point registers the class:

    [project.entry-points."drone_bridge.protocols"]
    pioneer = "pioneer:Pioneer"

An instance is one end of one connection, so it may keep state. Its methods are called by one thread. For invalid bytes,
they may raise any of DECODE_ERRORS, such as ValueError or struct.error. The bridge drops the packet, and names the
method's line.
Velocities and positions are in SI units in the axes of REP 103: x forward, y left, z up, yaw to the left.
"""

from __future__ import annotations

import copy
import math
import re
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import partial
from typing import Any, ClassVar, TypeVar

from drone_bridge.kind import ProtocolKind
from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.motion.measurement import Measurement
from drone_bridge.motion.tilted_drone import Shares, TiltedDrone
from drone_bridge.robot_class import returned
from drone_bridge.robot_class.parts import Parts
from drone_bridge.robot_class.transports import Camera, Delimited, Framing, Lidar, Link, Packets, Serial, Udp
from drone_bridge.session.session import ENDS_FLIGHT
from drone_bridge.wire.json_numbers import is_number

#: Errors of a description for invalid bytes. AssertionError is how ROS messages refuse a value out of range.
DECODE_ERRORS = (
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    AssertionError,
    RecursionError,
    struct.error,
)
#: Fastest speed, m/s or rad/s. A larger number is one in another unit.
FASTEST = 100.0
#: Ranges of other numbers of a class, s or Hz.
RANGES = dict.fromkeys(("report_rate", "robot_stops_after_s"), (0.01, 600.0))
RANGES |= {"rate": (1.0, 200.0), "link_timeout_s": (0.2, 600.0)}
#: Range of `sizes`.
SIZES = 1e-6, 1e6
#: Field of BodyVelocity for each axis.
AXES = {"x": "forward", "y": "left", "z": "up", "yaw": "turn"}
STANDARD_TOPICS = "odom", "battery_state", "height", "velocity", "imu/data", "flying", "range", "scan", "bumper/points"


#: Report of a robot. A number that is not finite counts as not reported.
Telemetry = Measurement


@dataclass(frozen=True, slots=True)
class Request:
    """Packet that a service of the bridge sends, and what follows from it."""

    packet: bytes | Callable[[Any], bytes]
    """Its packet. Or a function of the client's end that returns it, for one that depends on what was set before: at
    the robot's end, `decode_command` then returns the request, from `all_requests`. Not to end a flight."""
    timeout_s: float = 0.0
    """Timeout of its Answer, returned by `decode_report`. 0: it is not answered."""
    moves: bool = True
    """Whether it may move the robot. If not, it is also sent on hold."""
    stop: bytes = b""
    """Packet that ends the motion that it began, if neutral does not: before the next command, on hold, at the end, and
    with the last words. Empty: that of the robot."""
    name: str = field(default="", kw_only=True)
    """Its name in `requests`, which sets it."""

    def encoded(self, end: Robot) -> bytes:
        """Return its packet now, of a client's end. Raises any error of the description."""
        if isinstance(self.packet, bytes):
            return self.packet
        data = bytes(returned.checked(f"requests[{self.name!r}]", self.packet, *_PACKETS)(end))
        if not data:  # nothing would be sent, and its caller would wait forever
            raise ValueError(f"requests[{self.name!r}]() has returned no bytes")
        return data


@dataclass(frozen=True, slots=True)
class Answer:
    """Outcome of one of `requests`."""

    name: str
    """Name of the request. Empty if the robot does not report it: the longest pending request."""
    is_success: bool = True
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Command of a client that the robot's end does not execute. It is counted and logged."""

    command: str
    """Its name in the robot's document."""
    reason: str = "this end does not have it"
    answer: bytes = b""
    """Packet that answers it, if any."""


@dataclass(frozen=True, slots=True)
class Move:
    """Way along the body's axes, and a turn, from the pose in which it begins. `encode_answer` answers its end."""

    forward: float = 0.0
    left: float = 0.0
    up: float = 0.0
    """Along x, y and z, m."""
    turn: float = 0.0
    """To the left, rad. It may be several turns."""
    speed: float = 1.0
    """Along the way, m/s."""
    turn_speed: float = 1.0
    """Of the turn, rad/s."""
    heading: float | None = None
    """In place of `turn`: the heading by its odometry to turn to, and to keep until another command, rad."""
    cruise: float = 0.0
    """In place of a way: the speed ahead meanwhile, m/s."""
    is_setpoint: bool = False
    """Whether the next one takes its place, and the time without a command ends it. Else another one is refused."""


#: Command of a robot, or of a drone that is steered by tilt.
Command = BodyVelocity | Shares
CommandT = TypeVar("CommandT", bound=Command)
#: Neutral commands.
NEUTRALS = (BodyVelocity(), Shares())
#: Meaning of a packet at the robot's end.
Meaning = Command | Move | Request | Refusal | bytes | None
#: Step of a handshake: bytes, or bytes and the test of the packet that answers them. A function in place of the bytes
#: returns them anew for each repeat, such as with another number.
Step = bytes | tuple[bytes | Callable[[], bytes], Callable[[bytes], bool]]


class Robot:
    """Base class of a robot. Methods that a subclass omits are not supported."""

    KIND: ClassVar[ProtocolKind]
    """Registry entry, created for each subclass with a name."""
    parts: ClassVar[Parts]
    """Parts that KIND names."""

    name: ClassVar[str]
    summary: ClassVar[str] = ""
    model: ClassVar[str] = "rover"
    """Model and kind of vehicle: rover, drone or submarine."""
    drone: ClassVar[TiltedDrone | None] = None
    """Full deflections of a drone that is steered by tilt: see `encode_shares`. Sets `model` and the axes.

    Velocities are flown by its telemetry: velocity, yaw, height, roll and pitch, whose plausibility is checked.
    """
    hovers: ClassVar[bool] = True
    """Whether such a drone holds its place by itself on Shares()."""
    max_speeds: ClassVar[Mapping[str, float]] = {"x": 1.0, "yaw": 1.0}
    """Maximum speed of each axis of cmd_vel that it supports, of x, y, z and yaw, m/s and rad/s. Faster commands are
    clamped."""
    served_speeds: ClassVar[Mapping[str, float]] = {}
    """Slowest plausible speeds, by axis, for the packets of `max_speeds`, where nobody has measured these: `max_speeds`
    are then the fastest plausible ones. So a robot moves no faster than the bridge's command, nor a vehicle at the
    server faster than the robot of its program. `decode_command` returns these."""
    rate: ClassVar[float] = 20.0
    """Rate of commands, Hz."""
    link_timeout_s: ClassVar[float] = 3.0
    """Silence of the robot after which the bridge greets it again. Unused without `decode_report`."""
    robot_stops_after_s: ClassVar[float | None] = 0.5
    """Time without a command after which the robot stops by itself. None: never."""
    any_packet_counts: ClassVar[bool] = False
    """Whether each packet of a client counts as a command there, such as one that only says that it is there."""
    answered: ClassVar[bool | None] = None
    """Whether the robot answers each packet of the first link by one packet there, in order or by name, and sends no
    others. Then one packet is outstanding, so that a slow robot executes none late. For an answer that is no report,
    `decode_report` returns an Answer with an empty name. None: unknown, so the bridge warns if it answers commands."""
    lands_itself: ClassVar[bool] = False
    """Whether a drone lands then."""
    land_unattended_s: ClassVar[float] = 60.0
    """Time in the air without a command after which the bridge lands a drone that reports `flying`, s. 0: never."""
    silent_ports: ClassVar[tuple[int, ...]] = ()
    """Ports of TCP to which its programs connect, too, and at which its end says nothing. It has them while the port of
    its first link is the class's own."""
    report_rate: ClassVar[float] = 10.0
    """Rate of its reports, Hz, at which the robot's end calls `encode_report`. An emulator moves 50 times per second.
    On a stream, it is moved for the time of three without a report, or for `command_timeout` if that is longer."""
    battery_v: ClassVar[tuple[float, float]] = 9.6, 12.6
    """Voltage of the emulator's battery, empty and full."""
    topics: ClassVar[Iterable[str] | Mapping[str, str]] = ("odom", "battery_state")
    """Topics that its reports fill: of STANDARD_TOPICS, and its own as "name: package/Type". A mapping has the types by
    name; those of standard ones are empty. `Telemetry.extra` has the messages of its own topics. With none, it is moved
    without a report."""
    latched: ClassVar[tuple[str, ...]] = ()
    """Its own topics that are states: published when they change, also to late subscribers."""
    absolute_pose: ClassVar[bool] = False
    """Whether its pose is one on a map. Otherwise it may begin again at 0 with the robot, and `odom` then goes on from
    the last one."""
    keeps: ClassVar[tuple[str, ...]] = ()
    """Attributes that the next connection takes over, of a pose that the class counts itself, such as by wheel
    encoders."""
    reckons: ClassVar[bool] = False
    """Whether the bridge integrates velocity to a position, with the height and attitude that are reported. Without
    them, in the plane."""
    camera: ClassVar[Camera | None] = None
    lidar: ClassVar[Lidar | None] = None
    """Lidar of `topics` with scan."""
    bumpers: ClassVar[Mapping[str, tuple[float, float, float]]] = {}
    """Places of bumpers and cliff sensors on the body, m, by their names, for `Telemetry.contacts` and bumper/points.
    Nav2's costmap needs them outside the footprint."""
    requests: ClassVar[Mapping[str, Request | bytes]] = {}
    """Packets sent by services of the bridge, by the services' names. The page supports takeoff and land.

    All but land and emergency are refused while the robot is not connected, or silent. These two are sent again if they
    are called again before their answer.
    """
    sizes: ClassVar[Mapping[str, float]] = {}
    """Numbers in which builds of the robot differ, such as `wheel_radius`, with defaults. They are parameters of its
    nodes and options of its programs; `self.sizes` has the values that are set."""
    login: str | None = None
    """Login, such as a password. If a class has "" here, it is the text of the file or environment variable that the
    bridge's parameter `login` names, from before the handshake of a client's end."""
    stop: ClassVar[bytes] = b""
    """See Request.stop. A request with this packet is sent on hold and after a stall, too."""

    # Set from these for each class with a name.
    links: ClassVar[Mapping[str, Link]]
    """Links by their names in the class: attributes that are Udp, Tcp or Serial. The first one carries the commands."""
    axes: ClassVar[tuple[str, ...]]
    standard_topics: ClassVar[tuple[str, ...]]
    own_topics: ClassVar[Mapping[str, str]]
    """Types of its own topics by name."""
    all_requests: ClassVar[Mapping[str, Request]]
    """`requests` as objects with their names."""
    always_accepted: ClassVar[frozenset[str]]
    """Requests that end a flight or a motion, which are always accepted."""

    def touched(self, contacts: Iterable[tuple[float, float, float]] | None) -> set[str]:
        """Return the names of the bumpers nearest to contacts."""
        nearest = lambda place: min(self.bumpers, key=lambda name: math.dist(self.bumpers[name], place))  # noqa: E731
        return set(map(nearest, contacts or ()))

    # The client's end.

    def handshake(self) -> Iterator[Step]:
        """Yield the steps on a new connection, before the first command. A step without its answer is sent again.

        The greeting also has to succeed with a robot that a killed client left in the middle of a conversation.
        """
        yield from ()

    def encode_command(self, velocity: BodyVelocity) -> bytes:
        """Return the packets for a velocity within `max_speeds`. BodyVelocity() is neutral. A datagram is one packet.

        For an error, neutral is sent instead; for one of neutral, the last words, and the link is closed.
        """
        raise NotImplementedError(f"{type(self).__name__} has no encode_command().")

    def encode_shares(self, shares: Shares) -> bytes:
        """Return the packets for shares of the full deflections of `drone`. Shares() is neutral."""
        raise NotImplementedError(f"{type(self).__name__} has no encode_shares().")

    def encode_goodbye(self) -> bytes:
        """Return the last bytes, after the neutral command."""
        return b""

    def last_words(self) -> tuple[bytes, bytes]:
        """Return the neutral command and then `encode_goodbye`, without changing this description.

        A process of its own sends them if the bridge is killed or stalls. Override it if `encode_command` changes
        state, such as the number of a packet, or whether the robot moves: otherwise the robot has no last words. See
        `has_last_words`.
        """
        return encoded(self, None), self.encode_goodbye()

    def decode_report(self, packet: bytes) -> Telemetry | Answer | None:
        """Decode a packet of the robot. None: no report.

        Those of a further link come to the method `decode_` with the link's name, if there is one. An error drops the
        packet. Without reports, the bridge can't detect that a robot has stopped reading, and commands wait for it.
        """
        return None

    # The robot's end.

    def decode_command(self, packet: bytes) -> Meaning | tuple[Meaning, ...]:
        """Decode a client's packet: to a command, a Move, a request, the packet that answers it, or several of them.

        A Refusal for what would move or stop the robot, and is not executed. None: nothing. The packets of `requests`
        do not come here. Any of DECODE_ERRORS rejects the packet. A stream is then closed.
        """
        raise NotImplementedError(f"{type(self).__name__} has no decode_command().")

    def encode_answer(self, answer: Answer) -> bytes:
        """Return the packet that answers a request, or a Move, whose name is empty. Empty: none."""
        return b""

    def encode_report(self, telemetry: Telemetry) -> bytes | None:
        """Return the packet that reports telemetry, over the second link if there is one.

        None before the client subscribes.
        """
        return None

    def __init_subclass__(cls, **options: Any) -> None:
        """Create its KIND. Raises ValueError for an inconsistent description."""
        super().__init_subclass__(**options)
        for name, method in _misnamed(cls):
            raise ValueError(f"{cls.__name__}.{name} is not used. Name it {method}, or _{name} if it is your own.")
        of_links = [f"decode_{name}" for name in dir(cls) if isinstance(getattr(cls, name, None), Link)]
        for name, (check, expected) in (dict.fromkeys(of_links, _RETURNS["decode_report"]) | _RETURNS).items():
            if name in vars(cls):
                called = f"{cls.__name__}.{name}"
                check_of = partial(returned.steps, called) if name == "handshake" else check
                setattr(cls, name, returned.checked(called, vars(cls)[name], check_of, expected))
        if not hasattr(cls, "name"):
            return
        cls.summary = cls.summary or f"the robot {cls.name}"
        cls.model = "drone" if cls.drone else cls.model
        try:
            _refuse(cls.drone and cls.encode_shares is Robot.encode_shares, "it has a drone, and no encode_shares().")
            for name, each in (("max_speeds", cls.max_speeds), ("requests", cls.requests)):
                _refuse(not isinstance(each, Mapping), f"{name} is {each!r:.60}, and must be a dict.")
            cls.axes = tuple(AXES) if cls.drone else tuple(cls.max_speeds)
            cls.links = _links(cls)
            cls.standard_topics, cls.own_topics = _topics(cls.topics)
            cls.all_requests = {name: _request(name, each) for name, each in cls.requests.items()}
            _check(cls)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{cls.__name__}: {error}") from None
        stops = {cls.stop, *(each.stop for each in cls.all_requests.values())} - {b""}
        ends_motion = {name for name, each in cls.all_requests.items() if each.packet in stops}
        cls.always_accepted = frozenset(ENDS_FLIGHT) | ends_motion
        cls.parts, sends_first = Parts(cls), listens(cls)
        has_robots_end = cls.decode_command is not Robot.decode_command and not sends_first
        cls.KIND = cls.parts.kind(
            first_link(cls).port,
            port_parameters(cls),
            is_stream=is_stream(cls),
            has_robots_end=has_robots_end,
            sends_first=sends_first,
        )


def _refuse(is_wrong: object, sentence: str) -> None:
    """Raise ValueError with a sentence if something is wrong."""
    if is_wrong:
        raise ValueError(sentence)


def _links(robot: type[Robot]) -> dict[str, Link]:
    """Return the links of a class, of base classes first. Raises ValueError for a wrong combination."""
    names = dict.fromkeys(name for each in reversed(robot.__mro__) for name in vars(each))
    links: dict[str, Link] = {name: link for name in names if isinstance(link := getattr(robot, name), Link)}
    _refuse(not links, "it has no link, such as control = Udp(8889) or Tcp(7700, Delimited(b'\\n')).")
    (name, first), *others = links.items()
    unframed = not (isinstance(first, Udp) or first.framing)
    _refuse(unframed, f"{name} is a stream, so it needs a framing, such as Delimited(b'\\n').")
    is_port = isinstance(first.port, int) and 0 < first.port < 65536
    _refuse(not is_port, f"{name} has port {first.port!r}, and ports are 1 to 65535, or use Serial().")
    ports = [robot.camera.link.port] if robot.camera and robot.camera.link else []
    is_one = isinstance(first, Serial) or (isinstance(first, Udp) and first.listen)
    for name, link in others:
        is_allowed = isinstance(link, Udp) and link.listen and not is_one
        _refuse(not is_allowed, f"{name} must be Udp(port, listen=True), and the first link Udp(port) or Tcp.")
        _refuse(link.port in ports, f"{name} and another link listen on one port: {link.port}.")
        ports.append(link.port)
    for framing in (each for link in links.values() for each in (link.framing, link.commands)):
        _refuse(not (framing is None or callable(framing)), f"a framing is {framing!r:.60}, which is no function.")
    return links


def _topics(topics: Iterable[str] | Mapping[str, str]) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the standard topics, and the types of the others by name. Raises ValueError for a name without a type."""
    _refuse(isinstance(topics, str), f"topics is the text {topics!r}, and must be a tuple such as ({topics!r},).")
    pairs = topics.items() if isinstance(topics, Mapping) else (each.partition(":")[::2] for each in topics)
    types = {name.strip(): (kind or "").strip() for name, kind in pairs}
    own = {name: kind for name, kind in types.items() if name not in STANDARD_TOPICS}
    for name, kind in own.items():
        known = f"Standard ones are {', '.join(STANDARD_TOPICS)}; one of its own has a type"
        _refuse(len(kind.split("/")) != 2, f'topics has {name!r}. {known}: "{name}: package/Type".')
    return tuple(name for name in types if name in STANDARD_TOPICS), own


def _request(name: str, given: Request | bytes) -> Request:
    """Return a request with its name. Raises ValueError for one that can't be sent."""
    request = given if isinstance(given, Request) else Request(given)
    can_vary = callable(request.packet) and name not in ENDS_FLIGHT
    is_packet = can_vary or (isinstance(request.packet, bytes) and request.packet)
    is_right = is_packet and isinstance(request.stop, bytes)
    _refuse(not is_right, f"requests has {given!r:.80} for {name}, and must have bytes, or a Request with them.")
    return replace(request, name=name)


def _check(robot: type[Robot]) -> None:
    """Raise ValueError for a name that ROS refuses, unknown axes, numbers out of range, and a wrong camera."""
    for name in (robot.name, *robot.requests, *robot.sizes):
        is_name = re.fullmatch("[A-Za-z][A-Za-z0-9_]*", str(name))
        _refuse(not is_name, f"name is {name!r}: letters, digits and underscores are possible, a letter first.")
    possible = f"{', '.join(AXES)} are possible, above 0 and up to {FASTEST:g} m/s or rad/s"
    for axis, speed in robot.max_speeds.items():
        is_right = axis in AXES and is_number(speed) and 0 < speed <= FASTEST
        _refuse(not is_right, f"max_speeds has {speed!r} for {axis!r}: {possible}.")
    for axis, speed in robot.served_speeds.items():
        is_right = axis in robot.max_speeds and is_number(speed) and 0 < speed <= robot.max_speeds[axis]
        _refuse(not is_right, f"served_speeds has {speed!r} for {axis!r}, and must be above 0 and within max_speeds.")
    for name, size in robot.sizes.items():
        is_right = is_number(size) and SIZES[0] <= size <= SIZES[1]
        _refuse(not is_right, f"sizes has {size!r} for {name!r}, and must be from {SIZES[0]:g} to {SIZES[1]:g}.")
    for name, (low, high) in RANGES.items():
        is_right = (value := getattr(robot, name)) is None or (is_number(value) and low <= value <= high)
        _refuse(not is_right, f"{name} is {value!r}, and must be from {low:g} to {high:g}.")
    for name in ("keeps", "latched"):
        text = getattr(robot, name)
        _refuse(isinstance(text, str), f"{name} is the text {text!r}, and must be a tuple such as ('x', 'y').")
    lidar = robot.lidar
    _refuse(("scan" in robot.standard_topics) != bool(lidar), "topics must have scan if it has a lidar, and only then.")
    is_right = not lidar or (0 <= lidar.range_min < lidar.range_max and min(lidar.rays, lidar.scan_s) > 0)
    _refuse(not is_right, f"lidar is {lidar}: its reach, rays and scan_s must be above 0, and range_max > range_min.")
    if camera := robot.camera:
        is_known, link = camera.encoding in ("rgb8", "jpeg", "h264"), camera.link
        _refuse(not is_known, f"camera has encoding {camera.encoding!r}, and may have rgb8, jpeg or h264.")
        _refuse((camera.encoding == "h264") != bool(link), "camera must have a link if it has h264, and only then.")
        is_wrong = link and not (link.listen and isinstance(first_link(robot), Udp) and not listens(robot))
        _refuse(is_wrong, "camera.link must be Udp(port, listen=True), beside a first link that is Udp(port).")
        is_wrong = link and not (camera.ask and min(camera.width, camera.height, *camera.focal) > 0)
        _refuse(is_wrong, "camera with h264 must have ask, width, height, focal and center.")


def _misnamed(robot: type[Robot]) -> Iterator[tuple[str, str]]:
    """Yield the methods of a class whose name is nearly one of a method that it omits, and this."""
    methods = [name for name, value in vars(Robot).items() if callable(value) and not name.startswith("_")]
    omitted = [name for name in methods if getattr(robot, name) is getattr(Robot, name)]
    for name in sorted(set(vars(robot)) - set(dir(Robot))):
        is_private = name.startswith("_") or (name.startswith("decode_") and name[7:] in dir(robot))
        if callable(getattr(robot, name)) and not is_private:
            yield from ((name, method) for method in get_close_matches(name.lower(), omitted, 1, 0.9))


def misspelt(robot: type[Robot]) -> Iterator[str]:
    """Yield a sentence for each attribute of a class whose name is nearly that of one that it omits, as `max_speed`.

    And for what is `latched`, but none of its own topics.
    """
    for name in sorted({*robot.latched} - {*robot.own_topics}):
        yield f"{robot.__name__}.latched has {name!r}, which is none of its own topics."
    own = {name for each in robot.__mro__[: robot.__mro__.index(Robot)] for name in vars(each)}
    omitted = [name for name in vars(Robot) if not name.startswith("_") and name not in own]
    for name in sorted(own - set(dir(Robot)) - set(Robot.__annotations__) - set(robot.links)):
        is_value = not name.startswith("_") and not callable(getattr(robot, name))
        for known in get_close_matches(name, omitted, 1, 0.8) if is_value else ():
            yield f"{robot.__name__}.{name} is not used. Name it {known}, or _{name} if it is your own."


#: Check of what each method returns, and its name.
_PACKETS = returned.packet, "bytes"
_RETURNS: dict[str, tuple[returned.Check, str]] = {
    "handshake": (iter, "an iterator of steps"),
    **dict.fromkeys(("encode_command", "encode_shares", "encode_goodbye", "encode_answer"), _PACKETS),
    "last_words": (returned.two_packets, "two packets: neutral, and the last bytes"),
    "decode_report": (returned.one_of(Telemetry, Answer, type(None)), "Telemetry, an Answer, or None"),
    "decode_command": (
        returned.several(BodyVelocity, Shares, Move, Request, Refusal, bytes, type(None)),
        "a command, a Move, one of its requests, a Refusal, bytes, None, or a tuple of them",
    ),
    "encode_report": (returned.one_of(bytes, type(None)), "bytes, or None"),
}


def created(robot: type[Robot]) -> Robot | str:
    """Return a robot, or why it can't be created, a sentence."""
    try:
        return robot()
    except Exception as error:
        return f"{robot.__name__} can't be created: {returned.described(error)}."


def unstoppable(robot: type[Robot]) -> str:
    """Return why a robot could not be stopped, a sentence, or "". After a motion, its neutral command is no packet.

    Or its last words are no packets, or it lacks what it `keeps`.
    """
    if isinstance(end := created(robot), str):
        return end
    for name in robot.keeps:
        if not hasattr(end, name):
            return f"{robot.__name__}.keeps has {name!r}, but __init__() creates no attribute of this name."
    try:
        encoded(end, sample_command(robot))
        if not encoded(end, None):
            method = f"{robot.__name__}.{'encode_shares' if robot.drone else 'encode_command'}"
            return f"{method}() returns no packet for the neutral command: the robot could not be stopped."
        end.last_words()
    except returned.WrongResultError as error:
        return f"{error}."
    except Exception:
        return ""  # perhaps before its handshake
    return ""


def has_last_words(robot: type[Robot]) -> bool:
    """Return whether a robot has last words: it declares them, or encoding them does not affect later commands."""
    if robot.last_words is not Robot.last_words:
        return True
    end = robot()
    try:
        asked = copy.deepcopy(end)
        for command in (None, sample_command(robot)) * 2:
            if encoded(end, command) != encoded(asked, command):
                return False
            asked.last_words()
        return encoded(end, None) == encoded(asked, None)
    except Exception:
        return False


def sized(robot: type[Robot], value: Callable[[str], Any]) -> type[Robot]:
    """Return a robot with other `sizes`, given the value of a parameter or an option by its name."""
    sizes = {name: value(name) for name in robot.sizes}
    of_class = {"__module__": robot.__module__, "__qualname__": robot.__qualname__}
    return robot if sizes == robot.sizes else type(robot.__name__, (robot,), of_class | {"sizes": sizes})


def step_bytes(step: bytes | Callable[[], bytes]) -> bytes:
    """Return the bytes of a step of a handshake to send now. Raises DECODE_ERRORS."""
    return step if isinstance(step, bytes) else step()


def encoded(end: Robot, command: Command | None) -> bytes:
    """Return the packets for a command within the robot's maxima. None is neutral. Raises DECODE_ERRORS."""
    if end.drone is None:
        assert not isinstance(command, Shares)
        return end.encode_command(clamped(type(end), command or BodyVelocity()))
    assert not isinstance(command, BodyVelocity)
    return end.encode_shares(command or Shares())


def finite_command(command: CommandT) -> CommandT:
    """Return a command with float components. Raises ValueError if one is not finite, TypeError if not a number."""
    components = [float(part) for part in (command if isinstance(command, Shares) else command.components)]
    if not all(map(math.isfinite, components)):
        raise ValueError(f"{command} is not finite")
    limit = 1.0 if isinstance(command, Shares) else math.inf
    return type(command)(*(max(-limit, min(limit, part)) for part in components))


def sample_command(robot: type[Robot]) -> Command:
    """Return a moving command for a robot, perhaps beyond its axes and maxima."""
    return Shares(0.3, 0.3, 0.3, 0.3) if robot.drone else BodyVelocity(**dict.fromkeys(AXES.values(), 0.3))


def clamped(robot: type[Robot], velocity: BodyVelocity) -> BodyVelocity:
    """Return a velocity limited to the robot's axes and maximum speeds."""
    speeds = {AXES[axis]: most for axis, most in robot.max_speeds.items()}
    return BodyVelocity(**{axis: max(-most, min(most, getattr(velocity, axis))) for axis, most in speeds.items()})


def as_commanded(robot: type[Robot], command: CommandT, *, is_back: bool = False) -> CommandT:
    """Return a command at the robot's end as its client gave it: by `max_speeds`, not by `served_speeds`. Or back."""
    if not (robot.served_speeds and isinstance(command, BodyVelocity)):
        return command
    pairs = ((axis, robot.max_speeds[axis], served) for axis, served in robot.served_speeds.items())
    speeds = {AXES[axis]: served / most if is_back else most / served for axis, most, served in pairs}
    return replace(command, **{axis: share * getattr(command, axis) for axis, share in speeds.items()})


def maxima(robot: type[Robot]) -> tuple[float, float]:
    """Return the largest level speed and turn rate that a robot reaches, m/s and rad/s."""
    if robot.drone:
        return robot.drone.max_speed, robot.drone.max_yaw_rate
    speeds = robot.max_speeds
    return math.hypot(speeds.get("x", 0.0), speeds.get("y", 0.0)), speeds.get("yaw", 0.0)


def first_link(robot: type[Robot]) -> Link:
    """Return the link that carries the commands."""
    return next(iter(robot.links.values()))


def is_stream(robot: type[Robot]) -> bool:
    """Return whether the first link is a stream."""
    return not isinstance(first_link(robot), Udp)


def listens(robot: type[Robot]) -> bool:
    """Return whether the robot sends first, to a port of ours, and gets its commands where that came from."""
    return isinstance(link := first_link(robot), Udp) and link.listen


def reports(robot: type[Robot]) -> bool:
    """Return whether a robot's reports are decoded, so that it may count as silent."""
    methods = ("decode_report", *(f"decode_{name}" for name in further_links(robot)))
    return any(getattr(robot, name, None) not in (None, Robot.decode_report) for name in methods)


def further_links(robot: type[Robot]) -> dict[str, Link]:
    """Return the ports of ours to which a robot sends reports, by their links' names."""
    return dict(tuple(robot.links.items())[1:])


def rays_of(robot: type[Robot]) -> int:
    """Return the number of rays of its lidar, 0 without one."""
    return robot.lidar.rays if robot.lidar else 0


def image_of(robot: type[Robot]) -> str:
    """Return the encoding of the images in a robot's reports; empty for none."""
    return "" if robot.camera is None or robot.camera.link else robot.camera.encoding


def port_parameters(robot: type[Robot]) -> dict[str, int]:
    """Return the numbers of ports of ours by their parameters: those of further links, and of the camera."""
    camera = robot.camera.link if robot.camera else None
    links = further_links(robot) | ({"camera": camera} if camera else {})
    return {f"{name}_port": link.port for name, link in links.items()}


def framing_of(link: Link, *, to_robot: bool) -> Framing:
    """Return a link's framing of one direction. Without one, all is one packet: a datagram.

    Its result is checked like those of a robot's methods.
    """
    framing = (link.commands if to_robot else None) or link.framing
    if framing is None or isinstance(framing, Delimited | Packets):
        return framing or len
    name = getattr(framing, "__name__", "framing")
    return returned.checked(name, framing, returned.one_of(int), "a number of bytes")
