# SPDX-License-Identifier: Apache-2.0
"""faults: what is wrong with a Robot, as sentences that name its method, found without processes and sockets."""

from __future__ import annotations

import contextlib
import math
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import astuple, replace
from functools import partial
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

from drone_bridge.kind import Side
from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.motion.planar_pose import PlanarPose
from drone_bridge.motion.tilted_drone import Shares
from drone_bridge.robot_class.client_session import RobotClassOperatorSession
from drone_bridge.robot_class.connection import SAMPLE, Packet, RobotClassConnection, StatePacket, sample
from drone_bridge.robot_class.heard_reports import OperatorParameters
from drone_bridge.robot_class.returned import described
from drone_bridge.robot_class.robot import (
    AXES,
    DECODE_ERRORS,
    NEUTRALS,
    Command,
    Robot,
    Telemetry,
    as_commanded,
    encoded,
    first_link,
    framing_of,
    further_links,
    is_stream,
    maxima,
    misspelt,
    sample_command,
    step_bytes,
    unstoppable,
)
from drone_bridge.robot_class.transports import Framing, Packets
from drone_bridge.session.arbiter import Decision, Rank
from drone_bridge.session.session import Publish
from drone_bridge.wire import NEED_DATA, RemoteProtocolError

#: Share of a maximum that is commanded.
COMMANDED = 0.5
#: Numbers at the other end may differ by this share of a maximum speed or of a reported number, and the latter by more.
TOLERANCE, ROUNDED = 0.05, 0.1
#: Fastest of the commands that show the steps of the wire, in thousandths of a maximum.
SLOW = 100
REPORTED = "position", "yaw", "velocity", "voltage", "charge", "height", "roll", "pitch", "rates", "imu_yaw", "scan"
#: Reports with a broken byte, and good ones after each, some of which have to be read.
BROKEN, GOOD = 100, 50
HUGE = replace(SAMPLE, position=(1e300, -1e300, 1e300), velocity=BodyVelocity(1e300), voltage=1e300, height=1e300)
#: Pause between two reports, on which their meaning must not depend.
PAUSE_S = 0.05
#: Way that is driven: its parts, each with shares of the commanded speed and turn rate, and its length, m or rad.
WAY = ("ahead", 1, 0, 2.0), ("in a left turn", 0, 1, 1.0), ("in a left arc", 1, 1, 1.2), ("back", -1, 0, 15.0)
#: Longest way from one report to the next there, m or rad, and their greatest number on a part.
LONGEST_STEP, MOST_STEPS = 0.5, 2000
#: Tolerances there, m, rad, and m/s or rad/s, and what they grow by with a part's length or with the speed.
STRAYED = {"position": (0.2, 0.1), "yaw": (0.2, 0.0), "velocity": (0.05, 0.3)}


def faults(robot: type[Robot]) -> Iterator[str]:
    """Yield what is wrong with a robot. Its robot's end is needed."""
    yield from misspelt(robot)
    for check in (_commands, _reports, _way, _resync, _answers):
        try:
            yield from (f"{robot.__name__}{fault}" for fault in check(robot, _Talk(robot)))
        except _NoPacketError as error:
            yield f"{robot.__name__}.{error}"
            return
        except Exception as error:
            yield f"{robot.__name__} has raised an error: {described(error)}."
            return


class _NoPacketError(Exception):
    """Bytes of a method that are no packet of their link. The text is a sentence without the robot's name."""


class _Talk:
    """Both ends of a robot, after its handshake."""

    def __init__(self, robot: type[Robot]) -> None:
        self.client, self.vehicle = robot(), RobotClassConnection(robot, Side.VEHICLE)
        self.framing = framing_of(first_link(robot), to_robot=True)
        with contextlib.suppress(*DECODE_ERRORS):  # it may need the handshake, whose steps may have its bytes
            method = "encode_shares()" if robot.drone else "encode_command()"
            _split(self.framing, encoded(robot(), None), method, next(iter(robot.links)))
        for step in self.client.handshake():
            data, test = (step, None) if isinstance(step, bytes) else (step_bytes(step[0]), step[1])
            answers = [each for each in self.meanings(data, "handshake()") if isinstance(each, bytes)]
            if test and not any(map(test, answers)) and (report := self.report(sample(robot))):
                test(report)

    def meanings(self, data: bytes, method: str) -> list[Any]:
        """Return the meanings of bytes of a method to the robot at its end. Raises _NoPacketError."""
        found: list[Any] = []
        for packet in _split(self.framing, data, method, next(iter(type(self.client).links))):
            self.vehicle.receive_data(packet)
            while isinstance(event := self.vehicle.next_event(), Packet):
                found += event.meaning
        return found

    def command(self, data: bytes, method: str) -> Command | None:
        """Return the last command in bytes of a method to the robot, if any. Raises _NoPacketError."""
        found = (each for each in reversed(self.meanings(data, method)) if isinstance(each, Command))
        return next((as_commanded(type(self.client), each) for each in found), None)

    def report(self, telemetry: Telemetry) -> bytes:
        """Return a report, or the answers to a neutral command of a client that polls."""
        report = self.vehicle.robot.encode_report(telemetry)
        if report is None and type(self.client).answered:
            neutral = self.meanings(encoded(self.client, None), "encode_command()")
            report = b"".join(each for each in neutral if isinstance(each, bytes))
        return report or b""


def _commands(robot: type[Robot], talk: _Talk) -> Iterator[str]:
    """Compare what is encoded with what the robot's end reads: a command of each axis, then what stops it."""
    if reason := unstoppable(robot):
        yield reason.removeprefix(robot.__name__)
        return
    client, neutral = talk.client, NEUTRALS[robot.drone is not None]
    method = "encode_shares" if robot.drone else "encode_command"
    moving = [_commanded(robot, axis, share) for axis in robot.axes for share in (COMMANDED, -COMMANDED)]
    rows: list[tuple[str, Callable[[], bytes], Command, bool]] = [
        *((f"{method}({each})", partial(encoded, client, each), each, True) for each in (*moving, neutral)),
        ("last_words()[0]", lambda: client.last_words()[0], neutral, True),
        ("encode_goodbye()", client.encode_goodbye, neutral, False),
        ("last_words()[1]", lambda: client.last_words()[1], neutral, False),
    ]
    most = {} if robot.drone else {AXES[axis]: speed for axis, speed in robot.max_speeds.items()}
    names = Shares._fields if robot.drone else tuple(AXES.values())
    for what, encode, sent, is_command in rows:
        read = talk.command(encode(), what)
        numbers = [(axis, name, getattr(read, name, math.inf)) for axis, name in zip(AXES, names, strict=True)]
        if sent == neutral and read:
            is_right = all(not there or abs(there) <= _half_step(robot, talk, *number) for *number, there in numbers)
        else:
            pairs = ((getattr(sent, name), there, most.get(name, 1.0)) for _, name, there in numbers)
            is_right = all(abs(here - there) <= TOLERANCE * size for here, there, size in pairs)
        if not is_right and (is_command or read):
            yield f".{what} is read by decode_command as {read or 'no command'}. One has a wrong sign or unit."
            return
    if not robot.drone:  # all axes at once, which some robots can't: only signs count
        arc = BodyVelocity(**{name: COMMANDED / 2 * speed for name, speed in most.items()})
        read = talk.command(encoded(client, arc), method)
        if read and any(getattr(read, name) < 0 for name in most):
            yield f".{method}({arc}) is read by decode_command as {read}. One has a wrong sign."
            return
    for name, request in robot.all_requests.items():
        try:
            meanings = talk.meanings(request.encoded(client), f"requests[{name!r}]")
            if callable(request.packet) and request not in meanings:
                yield f".decode_command() does not return all_requests[{name!r}] for its packet."
        except _NoPacketError as error:
            yield f".{error}"


def _half_step(robot: type[Robot], talk: _Talk, axis: str, name: str) -> float:
    """Return half a step of an axis on the wire, from the numbers that are read after slow commands. 0: not an axis."""
    if axis not in robot.axes:
        return 0.0
    commands = (_commanded(robot, axis, number / 1000) for number in range(-SLOW, SLOW + 1))
    found = sorted({getattr(talk.command(encoded(talk.client, each), str(each)), name, 0.0) for each in commands})
    return 0.501 * min((b - a for a, b in pairwise(found) if not math.isclose(a, b)), default=0.0)


def _commanded(robot: type[Robot], axis: str, share: float) -> Command:
    if robot.drone:
        return Shares(*(share if each == axis else 0.0 for each in AXES))
    return BodyVelocity(**{AXES[axis]: share * robot.max_speeds[axis]})


def _reports(robot: type[Robot], talk: _Talk) -> Iterator[str]:
    """Compare a report with what the client reads, at once and later. A huge one is encoded, or refused."""
    if not (report := talk.report(told := sample(robot))):
        return
    link = next(iter(further_links(robot)), next(iter(robot.links)))
    _split(framing_of(robot.links[link], to_robot=False), report, "encode_report()", link)
    refused: list[str] = []
    heard = _heard(robot, report, refused=refused)
    yield from (f".encode_report() returns {report!r:.60}. {sentence}" for sentence in refused)
    if not heard and not refused:
        yield f".encode_report() returns {report!r:.60}, which decode_report reads as no Telemetry."
    if refused or not heard:
        return
    for name in REPORTED:
        here, *others = (_numbers(getattr(each, name)) for each in (told, *heard))
        there = next(filter(None, others), ())
        if any(other and not _are_close(one, other) for one, other in zip(here, there, strict=False)):
            wrong = "a sign or unit of one of both is wrong"
            yield f".encode_report() of {name} {here!s:.60} is read as {there!s:.60}: {wrong}."
    reports = report, talk.report(replace(SAMPLE, position=(1.5, -1.0, 0.0)))
    if _heard(robot, *reports) != _heard(robot, *reports, pause_s=PAUSE_S):
        yield ".decode_report() depends on the time between two reports. Use a time of the robot, or leave that out."
    with contextlib.suppress(*DECODE_ERRORS):
        _heard(robot, talk.report(HUGE))


def _way(robot: type[Robot], talk: _Talk) -> Iterator[str]:
    """Drive a way at the robot's end, in virtual time, and compare it with what a new client reads."""
    told = replace(SAMPLE, position=(0.0, 0.0, 0.0), yaw=0.0, velocity=BodyVelocity(), roll=0.0, pitch=0.0, time_s=0.0)
    pieces, heard, step_s = [talk.report(told)], list[Telemetry](), 1 / robot.report_rate
    for what, *shares, length in WAY:
        most = (min(COMMANDED * most, LONGEST_STEP / step_s) for most in maxima(robot))
        speed, turn = (fastest * share for fastest, share in zip(most, shares, strict=True))
        steps = math.ceil(length / step_s / (abs(speed) or turn or math.inf))
        for _ in range(min(MOST_STEPS, steps)):
            told = _moved(told, speed, turn, step_s)
            pieces.append(talk.report(told))
        heard, before = _heard(robot, *pieces), len(heard)
        for name, (tolerance, growing) in STRAYED.items():
            expected, read = _numbers(getattr(told, name)), _read(heard, (before + len(heard)) // 2, name)
            allowed = tolerance + growing * (max(map(abs, expected)) if name == "velocity" else length)
            pairs = [(here, there) for here, there in zip(expected, read, strict=False) if there or name != "velocity"]
            strayed = (
                math.remainder(there - here, math.tau) if name == "yaw" else there - here for here, there in pairs
            )
            if any(abs(each) > allowed for each in strayed):
                here, there = (", ".join(f"{each:.2f}" for each in numbers) for numbers in (expected, read))
                yield f".decode_report() reads {name} {there} for {here}, driven {what}: a sign, unit or wrap is wrong."
                return


def _moved(told: Telemetry, speed: float, turn: float, step_s: float) -> Telemetry:
    x, y, _ = told.position or (0.0, 0.0, 0.0)
    pose = PlanarPose(x, y, told.yaw or 0.0).moved(step_s, speed, turn)
    velocity, now_s = BodyVelocity(speed, turn=turn), (told.time_s or 0.0) + step_s
    return replace(told, position=(pose.x, pose.y, 0.0), yaw=pose.yaw, velocity=velocity, time_s=now_s)


def _read(heard: list[Telemetry], begin: int, name: str) -> tuple[float, ...]:
    """Return the mean velocity since a report, or a pose minus the first one. Empty if it is not reported."""
    is_mean = name == "velocity"
    values = (getattr(each, name) for each in heard[begin if is_mean else 0 :])
    rows = [_numbers(each) for each in values if each is not None]
    if is_mean:
        return tuple(sum(column) / len(rows) for column in zip(*rows, strict=True))
    return tuple(last - first for first, last in zip(rows[0], rows[-1], strict=True)) if rows else ()


def _are_close(one: float, other: float) -> bool:
    return one == other or abs(one - other) <= TOLERANCE * min(abs(one), abs(other)) + ROUNDED


def _numbers(value: Any) -> tuple[float, ...]:
    if isinstance(value, BodyVelocity):
        return astuple(value)
    return value if isinstance(value, tuple) else () if value is None else (value,)


def _split(framing: Framing, data: bytes, method: str, link: str) -> list[bytes]:
    """Return the packets in bytes of a method. Raises _NoPacketError with the reason."""
    found, rest = [], data
    while rest:
        size = framing(rest)
        if not 0 < size <= len(rest):
            reason = framing.fault(rest) if isinstance(framing, Packets) else f"the framing returns {size} for it"
            raise _NoPacketError(f"{method} has {rest!r:.60}, no packet by the framing of {link}: {reason}.")
        found.append(rest[:size])
        rest = rest[size:]
    return found


def _heard(
    robot: type[Robot], *pieces: bytes, pause_s: float = 0.0, refused: list[str] | None = None
) -> list[Telemetry]:
    """Return the telemetry that a new client reads, without messages. Add sentences about what it drops."""
    client, heard = RobotClassConnection(robot, Side.OPERATOR, is_line=is_stream(robot)), []
    dropped = [] if refused is None else refused
    for piece in pieces:
        time.sleep(pause_s)
        client.receive_data(piece, next(iter(further_links(robot)), ""))
        event: Any = None
        while event is not NEED_DATA:
            try:
                event = client.next_event()
                if isinstance(event, StatePacket):
                    heard.append(replace(event.meaning, extra={}))
                    dropped += (f"{each}." for each in event.left_out)
            except RemoteProtocolError as error:
                dropped.append(str(error))
    return heard


def _answers(robot: type[Robot], talk: _Talk) -> Iterator[str]:
    """Compare what is declared about answers with whether a command is answered: an undeclared one is executed late."""
    meanings = talk.meanings(encoded(talk.client, sample_command(robot)), "encode_command()")
    is_answered = any(isinstance(each, bytes) for each in meanings)
    if robot.answered and not is_answered:
        yield ".answered is True, but decode_command returns no answer to a command."
    elif is_answered and robot.answered is None:
        yield " answers commands, and may execute them late: declare answered = True if it answers each packet."


def _session(robot: type[Robot]) -> Any:
    """Return a session that sends neutral."""
    plan = SimpleNamespace(start=lambda now_s: None, decide=lambda now_s: Decision(Rank.NEUTRAL))
    parameters = OperatorParameters(rate=robot.rate, link_timeout=math.inf, command_timeout=math.inf)
    return RobotClassOperatorSession(robot, plan, parameters, "")


def reports(robot: type[Robot], seconds: int) -> Iterator[tuple[StatePacket, float]]:
    """Yield what a bridge publishes of a report each second, with its time, s."""
    session, talk, link = _session(robot), _Talk(robot), next(iter(further_links(robot)), "")
    session.connected("" if is_stream(robot) else None, 0.0)
    for now_s in range(seconds):
        actions = list(session.receive(talk.report(sample(robot)), link, now_s))
        for each in talk.meanings(encoded(talk.client, None), "") if link and robot.answered else ():  # beside it
            actions += session.receive(each, "", now_s) if isinstance(each, bytes) else ()
        yield from ((each.message, now_s) for each in actions if isinstance(each, Publish))


def samples(robot: type[Robot]) -> Iterator[StatePacket]:
    """Yield a report as a client reads it, over a further link if there is one."""
    return (StatePacket(b"", each) for each in _heard(robot, _Talk(robot).report(sample(robot))))


def _resync(robot: type[Robot], talk: _Talk) -> Iterator[str]:
    """Break a byte of a report, and expect that later ones are read, as on a serial line."""
    if not is_stream(robot) or further_links(robot):
        return
    chosen = random.Random(1)
    for number in range(BROKEN):
        x, y, yaw = chosen.uniform(-30.0, 30.0), chosen.uniform(-30.0, 30.0), chosen.uniform(-3.0, 3.0)
        report = talk.report(replace(SAMPLE, position=(x, y, 0.0), yaw=yaw, velocity=BodyVelocity()))
        broken = bytearray(report)
        if report:
            broken[number % len(broken)] ^= chosen.randrange(1, 256)
        if report and not _heard(robot, bytes(broken), *[report] * GOOD):
            link, what = next(iter(robot.links)), f"{bytes(broken)!r:.80}, a report with one broken byte"
            yield f".{link}: after {what}, none of {GOOD} good ones is read: its framing does not find the next packet."
            return
