# SPDX-License-Identifier: Apache-2.0
"""Robot: base class of a robot that is described in one class, and what its methods take and return.

    class Pioneer(Robot):
        name, summary, port = "pioneer", "a Pioneer 3 robot", 8101
        axes, fastest, watchdog_s = ("x", "yaw"), BodyVelocity(forward=2.2, turn=8.7), 2.0

        def split(self, data): ...       # the size of the first packet of a stream
        def greet(self): ...             # what is sent on a new connection, and what answers it
        def drive(self, velocity): ...   # the packets of a velocity
        def hear(self, packet): ...      # Telemetry(...), or None

The bridge follows from these. `obey` and `tell`, the robot's end of the same packets, add the emulator, the server for
the robot's old programs, and the tests that send each packet there and back. An entry point makes it known:

    [project.entry-points."drone_bridge.protocols"]
    pioneer = "pioneer:Pioneer"

One instance is one end of one connection, so it may keep state. Methods are called by one thread, and may raise
ValueError, LookupError, TypeError, AttributeError, ArithmeticError or struct.error about bytes that make no sense.
Velocities and positions are SI units in the axes of REP 103: x forward, y left, z up, yaw to the left.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from drone_bridge.kind import ProtocolKind, load
from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.motion.observed_motion import Triple

#: Bridge, server, programs and the rest of a Robot; named, as in every KIND, because they import this module.
PARTS = "drone_bridge.robot_class.parts:Parts"
#: Errors of a description about bytes that make no sense.
SENSELESS = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, struct.error)
#: The field of BodyVelocity that each axis moves.
AXES = {"x": "forward", "y": "left", "z": "up", "yaw": "turn"}
STANDARD_TOPICS = ("odom", "battery_state", "height")


@dataclass(frozen=True, slots=True)
class Picture:
    """An image as pixels: red, green and blue, a byte each, row by row."""

    width: int
    height: int
    rgb8: bytes


@dataclass(frozen=True, slots=True)
class Telemetry:
    """What a robot reports. None is what it does not; an empty one is a sign of life.

    A number that is not finite counts as not reported.
    """

    position: Triple | None = None
    """In the frame odom, m."""
    yaw: float | None = None
    """Of the body in odom, rad."""
    velocity: BodyVelocity | None = None
    voltage: float | None = None
    """Of the battery, V."""
    charge: float | None = None
    """Of the battery, 0 to 1."""
    height: float | None = None
    """Above the ground, m."""
    image: bytes | Picture | None = None
    """A JPEG, or pixels."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Messages of own `topics`, by name. Their stamps are set, and their frames where they are empty."""


@dataclass(frozen=True, slots=True)
class Request:
    """One of `requests`, as the robot's end receives it."""

    name: str


@dataclass(frozen=True, slots=True)
class Answer:
    """The outcome of one of `requests`."""

    name: str
    """Empty where the robot does not say it: of the request that has waited longest."""
    is_success: bool = True
    reason: str = ""


#: What is sent first: bytes, or bytes and the test of the packet that answers them.
Step = bytes | tuple[bytes, Callable[[bytes], bool]]


class Robot:
    """Base class of a robot. What a subclass leaves out, the robot does not do."""

    KIND: ClassVar[ProtocolKind]
    """What the registry has of it; made for each subclass with a name."""
    parts: ClassVar[Any]
    """What KIND names: its robot_class.parts.Parts."""

    name: ClassVar[str]
    summary: ClassVar[str] = ""
    port: ClassVar[int]
    """Where the robot listens. 0 for a robot with a serial line only."""
    transport: ClassVar[str] = "tcp"
    """tcp: a stream, framed by `split`, also over a serial line; udp: each datagram is a packet."""
    state_port: ClassVar[int] = 0
    """Of a udp robot that sends its state to a port of its own at the client; see `hear_state`."""
    baud: ClassVar[int] = 115200
    """Of the serial line, where that is used instead."""
    longest: ClassVar[int] = 65536
    """Bytes of the longest packet of a stream; a longer one ends the connection."""
    model: ClassVar[str] = "rover"
    """What it looks like, and whether it flies: rover, drone or submarine."""
    axes: ClassVar[tuple[str, ...]] = ("x", "yaw")
    """Of cmd_vel, that it follows: x, y, z, yaw."""
    fastest: ClassVar[BodyVelocity] = BodyVelocity(1.0, 1.0, 1.0, turn=1.0)
    """Of each axis; faster commands are clamped."""
    rate: ClassVar[float] = 20.0
    """How often it is driven, Hz."""
    silence_s: ClassVar[float] = 3.0
    """Without telemetry for so long it is greeted anew, over a new connection. Not for a robot without `hear`."""
    watchdog_s: ClassVar[float | None] = 0.5
    """After so long without a command the robot stops by itself; None: never."""
    tells: ClassVar[tuple[str, ...]] = ("odom", "battery_state")
    """Which of STANDARD_TOPICS its telemetry fills."""
    image: ClassVar[str] = ""
    """What its images are: rgb8 or jpeg; empty: it has none."""
    topics: ClassVar[Mapping[str, str]] = {}
    """Own topics of the bridge: package/Type by name. `Telemetry.extra` has their messages."""
    requests: ClassVar[Mapping[str, bytes]] = {}
    """Packets that services of the bridge send, by the services' names; takeoff and land are known to a page."""
    answer_s: ClassVar[float] = 0.0
    """Within so long `hear` returns the Answer of a request; 0: it is not answered."""

    # How it is driven.

    def split(self, data: bytes) -> int:
        """Return the size of the first packet: 0 for more to come, negative to skip so many bytes."""
        return len(data)

    def greet(self) -> Iterator[Step]:
        """Yield what is sent on a new connection, before the first command."""
        yield from ()

    def drive(self, velocity: BodyVelocity) -> bytes:
        """Return the packets of a velocity within `fastest`, BodyVelocity() for neutral; a datagram is one packet."""
        raise NotImplementedError(f"{type(self).__name__} has no drive().")

    def leave(self) -> bytes:
        """Return what is sent last, after the neutral command."""
        return b""

    def hear(self, packet: bytes) -> Telemetry | Answer | None:
        """Return what a packet of the robot reports, None for nothing."""
        return None

    def hear_state(self, packet: bytes) -> Telemetry | None:
        """Return what a datagram to the state port reports."""
        raise ValueError("it has no state port")

    # The robot's end.

    def obey(self, packet: bytes) -> BodyVelocity | Request | bytes | None:
        """Return the velocity that a client's packet commands, the request that it is, or the packet that answers."""
        raise NotImplementedError(f"{type(self).__name__} has no obey().")

    def answer(self, answer: Answer) -> bytes:
        """Return the packet that answers a request; empty for none."""
        return b""

    def tell(self, telemetry: Telemetry) -> bytes | None:
        """Return the packet that reports; None before the client wants one."""
        return None

    def __init_subclass__(cls, **options: Any) -> None:
        """Make its KIND. Raises ValueError for a description that contradicts itself."""
        super().__init_subclass__(**options)
        if not hasattr(cls, "name"):
            return
        for attribute, allowed in (("axes", AXES), ("tells", STANDARD_TOPICS)):
            if unknown := [each for each in getattr(cls, attribute) if each not in allowed]:
                raise ValueError(f"{cls.__name__}.{attribute} has {unknown[0]!r}, and can have {', '.join(allowed)}.")
        for attribute, choices in (("transport", ("tcp", "udp")), ("image", ("", "rgb8", "jpeg"))):
            if getattr(cls, attribute) not in choices:
                raise ValueError(f"{cls.__name__}.{attribute} has to be one of {', '.join(filter(None, choices))}.")
        if still := [axis for axis in cls.axes if getattr(cls.fastest, AXES[axis]) <= 0]:
            raise ValueError(f"{cls.__name__}.fastest has no {AXES[still[0]]}, and axes has {still[0]}.")
        cls.parts = load(PARTS)(cls)
        cls.KIND = cls.parts.kind(has_robots_end=cls.obey is not Robot.obey)


def finite_velocity(velocity: BodyVelocity) -> BodyVelocity:
    """Return a velocity with float components. Raises ValueError if one is not finite, TypeError if it is no number."""
    components = tuple(map(float, (*velocity.linear, *velocity.angular)))
    if not all(map(math.isfinite, components)):
        raise ValueError(f"{velocity} is not finite")
    return BodyVelocity(*components)


def finite_telemetry(telemetry: Telemetry) -> Telemetry:
    """Return telemetry with float numbers, and None for those that are not finite. Raises SENSELESS if no numbers."""
    numbers = {name: getattr(telemetry, name) for name in ("yaw", "voltage", "charge", "height")}
    known: dict[str, Any] = {name: _finite(value) for name, value in numbers.items() if value is not None}
    if telemetry.position is not None:
        x, y, z = map(_finite, telemetry.position)
        known["position"] = None if x is None or y is None or z is None else (x, y, z)
    if telemetry.velocity is not None:
        try:
            known["velocity"] = finite_velocity(telemetry.velocity)
        except ValueError:
            known["velocity"] = None
    return replace(telemetry, **known)


def _finite(number: float) -> float | None:
    return float(number) if math.isfinite(number) else None


def clamped(robot: type[Robot], velocity: BodyVelocity) -> BodyVelocity:
    """Return the part of a velocity that a robot can follow."""
    axes = (AXES[axis] for axis in robot.axes)
    return BodyVelocity(
        **{
            axis: max(-most, min(most, getattr(velocity, axis)))
            for axis in axes
            if (most := getattr(robot.fastest, axis))
        }
    )
