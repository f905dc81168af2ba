# SPDX-License-Identifier: Apache-2.0
"""Robot: base class of a robot that is described in one class, and the types of its methods.

    class Pioneer(Robot):
        name, summary, port = "pioneer", "a Pioneer 3 robot", 8101
        axes, fastest, watchdog_s = ("x", "yaw"), BodyVelocity(forward=2.2, turn=8.7), 2.0

        def split(self, data): ...                # size of the first packet of a stream
        def handshake(self): ...                  # packets on a new connection, and tests of their answers
        def encode_command(self, velocity): ...   # packets for a velocity
        def decode(self, packet): ...             # Telemetry(...), or None

These methods define the bridge. `parse_command` and `encode_state`, the robot's end of the same packets, add the
emulator, the server for the robot's original programs, and round-trip tests. An entry point registers the class:

    [project.entry-points."drone_bridge.protocols"]
    pioneer = "pioneer:Pioneer"

An instance is one end of one connection, so it may keep state. Its methods are called by one thread. For invalid bytes,
they may raise any of DECODE_ERRORS, such as ValueError or struct.error.
Velocities and positions are in SI units in the axes of REP 103: x forward, y left, z up, yaw to the left.
"""

from __future__ import annotations

import copy
import math
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

from drone_bridge.kind import ProtocolKind, load
from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.motion.measurement import Measurement
from drone_bridge.motion.tilted_drone import Shares, TiltedDrone
from drone_bridge.robot_class import returned

#: Bridge, server, programs and other parts of a Robot, as text, because they import this module.
PARTS = "drone_bridge.robot_class.parts:Parts"
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
#: Port of the emulator of a robot that has a serial line only.
EMULATED_PORT = 7700
#: Field of BodyVelocity for each axis.
AXES = {"x": "forward", "y": "left", "z": "up", "yaw": "turn"}
STANDARD_TOPICS = ("odom", "battery_state", "height", "velocity", "imu/data", "flying")


#: Report of a robot. A number that is not finite counts as not reported.
Telemetry = Measurement


@dataclass(frozen=True, slots=True)
class Request:
    """One of `requests`, as received by the robot's end."""

    name: str


@dataclass(frozen=True, slots=True)
class Answer:
    """Outcome of one of `requests`."""

    name: str
    """Name of the request. Empty if the robot does not report it: the longest pending request."""
    is_success: bool = True
    reason: str = ""


#: Command of a robot, or of a drone that is steered by tilt.
Command = BodyVelocity | Shares
#: Neutral commands.
NEUTRALS = (BodyVelocity(), Shares())
#: Step of a handshake: bytes, or bytes and the test of the packet that answers them. A function in place of the bytes
#: returns them anew for each repeat, such as with another number.
Step = bytes | tuple[bytes | Callable[[], bytes], Callable[[bytes], bool]]


class Robot:
    """Base class of a robot. Methods that a subclass omits are not supported."""

    KIND: ClassVar[ProtocolKind]
    """Registry entry, created for each subclass with a name."""
    parts: ClassVar[Any]
    """Parts that KIND names: a robot_class.parts.Parts."""

    name: ClassVar[str]
    summary: ClassVar[str] = ""
    port: ClassVar[int]
    """Port that the robot listens on. 0: serial line only; its emulator listens on EMULATED_PORT."""
    transport: ClassVar[str] = "tcp"
    """tcp: a stream, framed by `split`, also over a serial line. udp: datagrams, which `split` may split."""
    state_port: ClassVar[int] = 0
    """Port of a client to which a udp robot sends its state, if separate. See `decode_state`."""
    baud: ClassVar[int] = 115200
    """Baud rate of a serial line."""
    longest: ClassVar[int] = 65536
    """Maximum size of a packet of a stream, bytes. A longer one ends the connection."""
    model: ClassVar[str] = "rover"
    """Model and kind of vehicle: rover, drone or submarine."""
    drone: ClassVar[TiltedDrone | None] = None
    """Full deflections of a drone that is steered by tilt: see `encode_shares`. Sets `model` and `axes`.

    Velocities are flown by its telemetry: velocity, yaw, height, roll and pitch, whose plausibility is checked.
    """
    hovers: ClassVar[bool] = True
    """Whether such a drone holds its place by itself on Shares()."""
    axes: ClassVar[tuple[str, ...]] = ("x", "yaw")
    """Supported axes of cmd_vel: x, y, z, yaw."""
    fastest: ClassVar[BodyVelocity] = BodyVelocity(1.0, 1.0, 1.0, turn=1.0)
    """Maximum speed of each axis. Faster commands are clamped."""
    rate: ClassVar[float] = 20.0
    """Rate of commands, Hz."""
    silence_s: ClassVar[float] = 3.0
    """Timeout of telemetry, after which it reconnects and greets the robot again. Unused without `decode`."""
    watchdog_s: ClassVar[float | None] = 0.5
    """Time without a command after which the robot stops by itself. None: never."""
    lands_itself: ClassVar[bool] = False
    """Whether a drone lands then."""
    land_unattended_s: ClassVar[float] = 60.0
    """Time in the air without a command after which the bridge lands a drone that reports `flying`, s. 0: never."""
    tells: ClassVar[tuple[str, ...]] = ("odom", "battery_state")
    """Topics of STANDARD_TOPICS that its telemetry fills."""
    image: ClassVar[str] = ""
    """Type of its images: rgb8 or jpeg. Empty: none."""
    topics: ClassVar[Mapping[str, str]] = {}
    """Own topics of the bridge: package/Type by name. `Telemetry.extra` has their messages."""
    requests: ClassVar[Mapping[str, bytes]] = {}
    """Packets sent by services of the bridge, by the services' names. The page supports takeoff and land.

    All but land and emergency are refused while the robot is not connected, or silent. These two are sent again if they
    are called again before their answer.
    """
    stop: ClassVar[str] = ""
    """Name of the request that ends a motion which another of `requests` began, and which a zero command does not end,
    such as that of a robot which drives to its dock. Once another request but land and emergency was sent, this one is
    sent before the next command, on hold, and with the last words. It is accepted on hold. Empty: no request moves it.
    """
    answer_s: ClassVar[float] = 0.0
    """Timeout of the Answer of a request, returned by `decode`. 0: requests are not answered."""

    # The client's end.

    def split(self, data: bytes) -> int:
        """Return the size of the first packet. 0: incomplete. Negative: number of bytes to skip.

        Any of DECODE_ERRORS ends a stream. A datagram has whole packets only; by default, one.
        """
        return len(data)

    def handshake(self) -> Iterator[Step]:
        """Yield the steps on a new connection, before the first command. A step without its answer is sent again.

        The greeting also has to succeed with a robot that a killed client left in the middle of a conversation.
        """
        yield from ()

    def encode_command(self, velocity: BodyVelocity) -> bytes:
        """Return the packets for a velocity within `fastest`. BodyVelocity() is neutral. A datagram is one packet.

        For any of DECODE_ERRORS, neutral is sent instead.
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

    def decode(self, packet: bytes) -> Telemetry | Answer | None:
        """Decode a packet of the robot. None: no report.

        Any of DECODE_ERRORS rejects the packet. A stream is then closed and reconnected.
        Without reports, the bridge can't detect that a robot has stopped reading, and commands wait for it.
        """
        return None

    def decode_state(self, packet: bytes) -> Telemetry | None:
        """Decode a datagram to the state port. Any of DECODE_ERRORS rejects it."""
        raise ValueError("it has no state port")

    # The robot's end.

    def parse_command(self, packet: bytes) -> Command | Request | bytes | None:
        """Decode a client's packet: to a command, to a request, or to the packet that answers it. None: neither.

        Any of DECODE_ERRORS rejects the packet. A stream is then closed.
        """
        raise NotImplementedError(f"{type(self).__name__} has no parse_command().")

    def encode_answer(self, answer: Answer) -> bytes:
        """Return the packet that answers a request. Empty: none."""
        return b""

    def encode_state(self, telemetry: Telemetry) -> bytes | None:
        """Return the packet that reports telemetry. None before the client subscribes."""
        return None

    def __init_subclass__(cls, **options: Any) -> None:
        """Create its KIND. Raises ValueError for an inconsistent description."""
        super().__init_subclass__(**options)
        if not hasattr(cls, "name"):
            return
        if cls.drone:
            cls.model, cls.axes = "drone", tuple(AXES)
            if cls.encode_shares is Robot.encode_shares:
                raise ValueError(f"{cls.__name__} has a drone, and no encode_shares().")
        for attribute, allowed in (("axes", AXES), ("tells", STANDARD_TOPICS)):
            if unknown := [each for each in getattr(cls, attribute) if each not in allowed]:
                raise ValueError(f"{cls.__name__}.{attribute} has {unknown[0]!r}, and may have {', '.join(allowed)}.")
        for attribute, choices in (("transport", ("tcp", "udp")), ("image", ("", "rgb8", "jpeg"))):
            if getattr(cls, attribute) not in choices:
                raise ValueError(f"{cls.__name__}.{attribute} must be one of {', '.join(filter(None, choices))}.")
        if still := [axis for axis in cls.axes if getattr(cls.fastest, AXES[axis]) <= 0]:
            raise ValueError(f"{cls.__name__}.fastest has no {AXES[still[0]]}, and axes has {still[0]}.")
        if cls.stop and not cls.requests.get(cls.stop):
            raise ValueError(f"{cls.__name__}.stop is {cls.stop!r}, and requests has no packet of that name.")
        for name, (check, expected) in _RETURNS.items():
            if name in vars(cls):
                called = f"{cls.__name__}.{name}"
                check_of = partial(returned.steps, called) if name == "handshake" else check
                setattr(cls, name, returned.checked(called, vars(cls)[name], check_of, expected))
        for name, method in _misnamed(cls):
            raise ValueError(
                f"{cls.__name__}.{name} would never be called. Name it {method}, or _{name} if you call it."
            )
        cls.parts = load(PARTS)(cls)
        cls.KIND = cls.parts.kind(has_robots_end=cls.parse_command is not Robot.parse_command)


def _misnamed(robot: type[Robot]) -> Iterator[tuple[str, str]]:
    """Yield the methods of a robot whose name is an old or misspelled one of a method of Robot that it omits."""
    methods = [name for name, value in vars(Robot).items() if callable(value) and not name.startswith("_")]
    omitted = {name for name in methods if getattr(robot, name) is getattr(Robot, name)}
    for name in sorted(set(dir(robot)) - set(dir(Robot))):
        if callable(getattr(robot, name)):
            for method in omitted & {_RENAMED.get(name), *(each for each in methods if _is_misspelled(name, each))}:
                yield name, method


def _is_misspelled(name: str, method: str) -> bool:
    """Return whether names differ by case, underscores and at most one character, or two that are swapped."""
    one, other = (each.replace("_", "").lower() for each in (name, method))
    for _ in range(2):  # strip their common beginning, then their common end
        while one and other and one[0] == other[0]:
            one, other = one[1:], other[1:]
        one, other = one[::-1], other[::-1]
    return max(len(one), len(other)) <= 1 or (len(one) == 2 and one == other[::-1])


#: Methods by the names that they had before their first release.
_RENAMED = {
    "greet": "handshake",
    "drive": "encode_command",
    "leave": "encode_goodbye",
    "hear": "decode",
    "hear_state": "decode_state",
    "obey": "parse_command",
    "answer": "encode_answer",
    "tell": "encode_state",
}


#: Check of what each method returns, and its name.
_PACKETS = returned.packet, "bytes"
_RETURNS: dict[str, tuple[returned.Check, str]] = {
    "split": (returned.one_of(int), "a number of bytes"),
    "handshake": (iter, "an iterator of steps"),
    **dict.fromkeys(("encode_command", "encode_shares", "encode_goodbye", "encode_answer"), _PACKETS),
    "last_words": (returned.two_packets, "two packets: neutral, and the last bytes"),
    "decode": (returned.one_of(Telemetry, Answer, type(None)), "Telemetry, an Answer, or None"),
    "decode_state": (returned.one_of(Telemetry, type(None)), "Telemetry, or None"),
    "parse_command": (
        returned.one_of(BodyVelocity, Shares, Request, bytes, type(None)),
        "a command, a Request, bytes, or None",
    ),
    "encode_state": (returned.one_of(bytes, type(None)), "bytes, or None"),
}


def unstoppable(robot: type[Robot]) -> str:
    """Return why a robot could not be stopped, a sentence: after a motion, its neutral command is no packet. Or ""."""
    end = robot()
    try:
        encoded(end, sample_command(robot))
        if encoded(end, None):
            return ""
    except TypeError as error:  # a wrong result
        return f"{error}."
    except DECODE_ERRORS:
        return ""  # perhaps before its handshake
    method = "encode_shares" if robot.drone else "encode_command"
    return f"{robot.__name__}.{method}() returns no packet for the neutral command: the robot could not be stopped."


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
    except DECODE_ERRORS:
        return False


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


def finite_command(command: Command) -> Command:
    """Return a command with float components. Raises ValueError if one is not finite, TypeError if not a number."""
    if isinstance(command, BodyVelocity):
        return finite_velocity(command)
    shares = Shares(*map(float, command))
    if not all(map(math.isfinite, shares)):
        raise ValueError(f"{command} is not finite")
    return Shares(*(max(-1.0, min(1.0, share)) for share in shares))


def finite_velocity(velocity: BodyVelocity) -> BodyVelocity:
    """Return a velocity with float components. Raises ValueError if one is not finite, TypeError if not a number."""
    components = tuple(map(float, (*velocity.linear, *velocity.angular)))
    if not all(map(math.isfinite, components)):
        raise ValueError(f"{velocity} is not finite")
    return BodyVelocity(*components)


def finite_telemetry(telemetry: Telemetry) -> Telemetry:
    """Return telemetry with float numbers, and None for those that are not finite. Raises DECODE_ERRORS for others."""
    numbers = {name: value for name in _NUMBERS if (value := getattr(telemetry, name)) is not None}
    known: dict[str, Any] = {name: _finite(value) for name, value in numbers.items()}
    for name in _VECTORS:
        if (vector := getattr(telemetry, name)) is not None:
            x, y, z = map(_finite, vector)
            known[name] = None if x is None or y is None or z is None else (x, y, z)
    if telemetry.velocity is not None:
        try:
            known["velocity"] = finite_velocity(telemetry.velocity)
        except ValueError:
            known["velocity"] = None
    return replace(telemetry, **known)


_NUMBERS = ("yaw", "voltage", "charge", "height", "roll", "pitch", "climb", "time_s")
_VECTORS = ("position", "rates", "acceleration")


def _finite(number: float) -> float | None:
    return float(number) if math.isfinite(number) else None


def sample_command(robot: type[Robot]) -> Command:
    """Return a moving command for a robot, perhaps beyond its axes and maxima."""
    return Shares(0.3, 0.3, 0.3, 0.3) if robot.drone else BodyVelocity(**dict.fromkeys(AXES.values(), 0.3))


def clamped(robot: type[Robot], velocity: BodyVelocity) -> BodyVelocity:
    """Return a velocity limited to the robot's axes and maximum speeds."""
    axes = (AXES[axis] for axis in robot.axes)
    return BodyVelocity(
        **{
            axis: max(-most, min(most, getattr(velocity, axis)))
            for axis in axes
            if (most := getattr(robot.fastest, axis))
        }
    )
