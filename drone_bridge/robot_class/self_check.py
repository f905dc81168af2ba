# SPDX-License-Identifier: Apache-2.0
"""faults: what is wrong with a Robot, as sentences that name its method, found without processes and sockets."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from dataclasses import astuple, replace
from typing import Any

from drone_bridge.kind import Side
from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.motion.tilted_drone import Shares
from drone_bridge.robot_class.connection import SAMPLE, Packet, RobotClassConnection, StatePacket, packets
from drone_bridge.robot_class.robot import (
    AXES,
    DECODE_ERRORS,
    NEUTRALS,
    Command,
    Robot,
    Telemetry,
    encoded,
    first_link,
    framing_of,
    further_links,
    is_stream,
    step_bytes,
    unstoppable,
)
from drone_bridge.wire import NEED_DATA, RemoteProtocolError

#: Share of a maximum by which a command may differ at the other end, and share that is commanded.
TOLERANCE, COMMANDED = 0.05, 0.5
#: Same of a report, beside this difference.
REPORTED, ROUNDED = 0.05, 0.1
#: Reports with a broken byte, and good ones after each, some of which have to be read.
BROKEN, GOOD = 100, 50
HUGE = 1e300


def faults(robot: type[Robot]) -> Iterator[str]:
    """Yield what is wrong with a robot. Its robot's end is needed."""
    for check in (_stopping, _requests, _commands, _reports, _resync, _huge):
        try:
            yield from check(robot)
        except Exception as error:
            trace = error.__traceback__
            while trace and trace.tb_next:
                trace = trace.tb_next
            where = f" in {trace.tb_frame.f_code.co_name}(), line {trace.tb_lineno}" if trace else ""
            yield f"{robot.__name__} has raised {type(error).__name__}{where}: {error}"
            return


class _Talk:
    """Both ends of a robot, after its handshake."""

    def __init__(self, robot: type[Robot]) -> None:
        self.client = robot()
        self.vehicle = RobotClassConnection(robot, Side.VEHICLE)
        self._framing = framing_of(first_link(robot), to_robot=True)
        for step in self.client.handshake():
            data, test = (step, None) if isinstance(step, bytes) else (step_bytes(step[0]), step[1])
            answers = [each for each in self.meanings(data) if isinstance(each, bytes)]
            if test and not any(map(test, answers)) and (report := self.report(SAMPLE)):
                test(report)

    def meanings(self, data: bytes) -> list[Any]:
        """Return the meanings of bytes to the robot at its end."""
        found: list[Any] = []
        for packet in packets(self._framing, data):
            self.vehicle.receive_data(packet)
            while isinstance(event := self.vehicle.next_event(), Packet):
                found += event.meanings
        return found

    def command(self, data: bytes) -> Command | None:
        """Return the last command in bytes to the robot."""
        return next((each for each in reversed(self.meanings(data)) if isinstance(each, Command)), None)

    def report(self, telemetry: Telemetry) -> bytes | None:
        return self.vehicle.robot.encode_report(telemetry)


def _stopping(robot: type[Robot]) -> Iterator[str]:
    if reason := unstoppable(robot):
        yield reason
        return
    talk, name = _Talk(robot), robot.__name__
    method = "encode_shares" if robot.drone else "encode_command"
    talk.meanings(encoded(talk.client, _commanded(robot, robot.axes[0], COMMANDED)))
    if (stopped := talk.command(encoded(talk.client, None))) not in NEUTRALS:
        yield f"{name}.{method}({NEUTRALS[robot.drone is not None]}) is read as {stopped}: it moves on."
    neutral, last = talk.client.last_words()
    if (stopped := talk.command(neutral)) not in NEUTRALS:
        yield f"{name}.last_words() begins with a packet that is read as {stopped}: it moves on."
    for what, data in (("encode_goodbye", talk.client.encode_goodbye()), ("last_words", last)):
        if (moved := talk.command(data)) not in (None, *NEUTRALS):
            yield f"{name}.{what}() ends with a packet that is read as {moved}: it moves the robot."


def _requests(robot: type[Robot]) -> Iterator[str]:
    """Expect that each request is one packet."""
    framing = framing_of(first_link(robot), to_robot=True)
    for name, request in robot.all_requests.items():
        if framing(request.packet) != len(request.packet):
            what = f"no packet by the framing of {next(iter(robot.links))}"
            yield f"{robot.__name__}.requests has {request.packet!r:.60} for {name}, {what}."


def _commands(robot: type[Robot]) -> Iterator[str]:
    """Compare a command of each axis with what the robot's end reads."""
    talk, method = _Talk(robot), "encode_shares" if robot.drone else "encode_command"
    for axis in robot.axes:
        for share in (COMMANDED, -COMMANDED):
            command = _commanded(robot, axis, share)
            read = talk.command(encoded(talk.client, command))
            if read is None or not _are_alike(robot, command, read):
                sentence = f"{robot.__name__}.{method}({command}) is read by decode_command as {read}."
                yield f"{sentence} Its sign or unit, or those of decode_command, are wrong."
                return


def _commanded(robot: type[Robot], axis: str, share: float) -> Command:
    if robot.drone:
        return Shares(*(share if each == axis else 0.0 for each in AXES))
    return BodyVelocity(**{AXES[axis]: share * robot.max_speeds[axis]})


def _are_alike(robot: type[Robot], sent: Command, read: Command) -> bool:
    if type(sent) is not type(read):
        return False
    most = {} if robot.drone else {AXES[axis]: speed for axis, speed in robot.max_speeds.items()}
    names = Shares._fields if robot.drone else AXES.values()
    return all(abs(getattr(sent, name) - getattr(read, name)) <= TOLERANCE * most.get(name, 1.0) for name in names)


def _reports(robot: type[Robot]) -> Iterator[str]:
    """Compare a report with what the client reads."""
    talk = _Talk(robot)
    if not (report := talk.report(SAMPLE)):
        return
    read = _read(robot, report)
    if not isinstance(read, StatePacket):
        yield f"{robot.__name__}.encode_report() returns {report!r:.60}, which decode_report reads as no Telemetry."
        return
    for name in ("position", "yaw", "velocity", "voltage", "charge", "height", "roll", "pitch", "rates"):
        told, heard = (_numbers(getattr(each, name)) for each in (SAMPLE, read.meaning))
        for one, other in zip(told, heard, strict=False):
            if other and abs(one - other) > REPORTED * abs(one) + ROUNDED:
                yield (
                    f"{robot.__name__}.encode_report() of {name} {told} is read as {heard}: "
                    f"its sign or unit, or those of decode_report, are wrong."
                )
                break


def _numbers(value: Any) -> tuple[float, ...]:
    if isinstance(value, BodyVelocity):
        return astuple(value)
    return value if isinstance(value, tuple) else () if value is None else (value,)


def _read(robot: type[Robot], report: bytes) -> Packet | RemoteProtocolError | None:
    """Return what a new client reads."""
    client = RobotClassConnection(robot, Side.OPERATOR, is_line=is_stream(robot))
    client.receive_data(report, next(iter(further_links(robot)), ""))
    with contextlib.suppress(RemoteProtocolError):
        while isinstance(event := client.next_event(), Packet):
            if isinstance(event, StatePacket):
                return event
    return None


def _resync(robot: type[Robot]) -> Iterator[str]:
    """Break a byte of a report, and expect that later ones are read, as on a serial line."""
    if not is_stream(robot) or further_links(robot):
        return
    talk, chosen = _Talk(robot), random.Random(1)
    for number in range(BROKEN):
        x, y, yaw = chosen.uniform(-30.0, 30.0), chosen.uniform(-30.0, 30.0), chosen.uniform(-3.0, 3.0)
        report = talk.report(replace(SAMPLE, position=(x, y, 0.0), yaw=yaw, velocity=BodyVelocity()))
        if not report:
            return
        broken = bytearray(report)
        broken[number % len(broken)] ^= chosen.randrange(1, 256)
        client, heard = RobotClassConnection(robot, Side.OPERATOR, is_line=True), 0
        for piece in (bytes(broken), *[report] * GOOD):
            client.receive_data(piece, "")
            heard += sum(1 for _ in _heard(client))
        if not heard:
            yield (
                f"{robot.__name__}.{next(iter(robot.links))}: after {bytes(broken)!r:.80}, a report with one broken "
                f"byte, none of {GOOD} good ones is read. Its framing does not find the next packet."
            )
            return


def _heard(client: RobotClassConnection) -> Iterator[StatePacket]:
    while True:
        try:
            event = client.next_event()
        except RemoteProtocolError:
            continue
        if event is NEED_DATA:
            return
        if isinstance(event, StatePacket):
            yield event


def _huge(robot: type[Robot]) -> Iterator[str]:
    """A huge number is encoded, or refused as one out of range."""
    talk = _Talk(robot)
    vector = (HUGE, -HUGE, HUGE)
    telemetry = replace(SAMPLE, position=vector, velocity=BodyVelocity(HUGE), voltage=HUGE, height=HUGE)
    with contextlib.suppress(*DECODE_ERRORS):
        if report := talk.report(telemetry):
            _read(robot, report)
    yield from ()
