# SPDX-License-Identifier: Apache-2.0
"""A driver's conversation with a robot: what it wants of it, has of it, and may drive. No sockets, no clock."""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from drone_bridge.net.connector import LinkTimeoutError
from drone_bridge.robot import codec
from drone_bridge.robot.codec import STOPPED, Speeds
from drone_bridge.wire.layouts import printable


class Listener(Protocol):
    """Receives the events of a session."""

    def count_and_warn(self, count: str, sentence: str) -> None:
        """A problem occurred; `count` is its kind."""

    def inform(self, sentence: str) -> None:
        """An expected change occurred."""

    def subsystems_changed(self) -> None:
        """The list of subsystems, or the driver of one, has changed."""

    def sensors_listed(self, info: codec.SensorInfo) -> None:
        """The robot has listed its sensors."""

    def sensors_read(self, update: codec.SensorUpdate) -> None:
        """Readings were received."""

    def robot_logged(self, text: str) -> None:
        """The robot has sent a log line."""

    def firmware_identified(self, firmware: codec.FirmwareInfo) -> None:
        """The robot has identified its firmware."""

    def round_trip_measured(self, seconds: float) -> None:
        """A keep-alive was answered."""

    def settled(self) -> None:
        """Every bind was answered: the robot has proved useful."""


# The subsystems to bind: given by parameters, then changed by services.


FIRST, ALL, NONE = "first", "all", "none"


class DesiredSubsystems:
    """Remembers across connections which subsystems to bind. For the link's thread."""

    def __init__(self, skid_steer: Sequence[str], lights: Sequence[str]) -> None:
        """Each parameter is FIRST, ALL, NONE, names, or numbers in the list of subsystems."""
        self._asked = {codec.SubsystemType.SKID_STEER: skid_steer, codec.SubsystemType.LIGHTS: lights}
        # By number and name: another robot, or a robot with another list, is a new start.
        self._operator: dict[tuple[int, str], bool] = {}

    def note(self, number: int, subsystem: codec.Subsystem, is_wanted: bool) -> None:
        """Note that a service has asked to bind or unbind a subsystem."""
        self._operator[number, subsystem.name] = is_wanted

    def choose(self, subsystems: Sequence[codec.Subsystem]) -> tuple[set[int], list[str]]:
        """Return the numbers of those to bind, and a sentence for each choice that the robot lacks."""
        wanted: set[int] = set()
        missing = []
        for kind, asked in self._asked.items():
            numbers = [number for number, subsystem in enumerate(subsystems) if subsystem.type == kind]
            for choice in asked:
                chosen = list(_chosen(choice, numbers, subsystems))
                wanted.update(chosen)
                if not chosen and choice not in (FIRST, ALL, NONE):
                    what = kind.name.lower().replace("_", " ")
                    names = ", ".join(repr(printable(subsystems[number].name)) for number in numbers) or "none"
                    missing.append(f"The robot has no {what} {choice!r}; of this kind it has {names}.")
        for number, subsystem in enumerate(subsystems):
            if (is_wanted := self._operator.get((number, subsystem.name))) is not None:
                (wanted.add if is_wanted else wanted.discard)(number)
        return wanted, missing


def _chosen(choice: str, numbers: list[int], subsystems: Sequence[codec.Subsystem]) -> Iterable[int]:
    if choice == NONE:
        return []
    if choice == ALL:
        return numbers
    if choice == FIRST:
        return numbers[:1]
    named = [number for number in numbers if subsystems[number].name == choice]
    return named or [number for number in numbers if choice == str(number)]


# Which drivers hold subsystems that this driver wants, and whether they are still connected.


ROBOTD = "robotd"  # as 0x09 tells it
#: What robotd logs, to its drivers as well: the time, who it is about, and what.
_TIME = r"^(?:\[[^\]]*\] )?"
_GONE = re.compile(_TIME + r"\[(.*)\] (?:lost connection|#<IOError: closed stream>)$", re.DOTALL)
_SAFE_MODE = re.compile(_TIME + r"\{(.*)\} safe mode$", re.DOTALL)
_MAX_NAMES = 64  # of drivers who have gone, and of subsystems


class Obstruction(NamedTuple):
    """Why a desired subsystem is not available."""

    sentence: str
    is_error: bool  # it can't change by itself


class OtherDrivers:
    """What is known of drivers that are gone, across connections. For the link's thread.

    robotd 1.2 never forgets a driver. Once one has disconnected, the next bind fails after ownership was recorded: the
    new driver's connection ends, and it owns the subsystem until robotd is restarted.
    """

    def __init__(self, driver_name: str) -> None:
        self.driver_name = driver_name
        self.is_robotd = False
        self._gone: dict[str, None] = {}  # in order of their going
        self._left_behind: dict[
            str, None
        ] = {}  # names of subsystems that earlier connections had, or were binding, at their end
        self._connections = 0

    def begin(self) -> None:
        """Start over for a new connection, as the robot may have been restarted."""
        self._gone.clear()
        self._connections += 1

    def note_firmware(self, kind: str) -> None:
        self.is_robotd = kind == ROBOTD

    def note_log(self, text: str) -> str | None:
        """Note drivers that are gone according to the robot's log; return the subsystem in safe mode, if any."""
        if found := _GONE.search(text):
            _remember(self._gone, found[1])
        found = _SAFE_MODE.search(text)
        return found[1] if found else None

    def note_driver(self, name: str) -> None:
        """Note that a driver was granted a subsystem, and so is connected."""
        self._gone.pop(name, None)

    def note_end(self, subsystem_names: list[str]) -> None:
        """Note what was bound or being bound when the connection ended."""
        for name in subsystem_names:
            _remember(self._left_behind, name)

    def note_granted(self, subsystem_name: str) -> None:
        """Note that this driver was granted a subsystem after all."""
        self._left_behind.pop(subsystem_name, None)
        self._gone.pop(self.driver_name, None)

    @property
    def closing_explanation(self) -> str:
        """Why a robot closes a connection on which a subsystem is being bound."""
        who = "another driver" if self._connections <= 1 else "a driver, perhaps this bridge's earlier connection,"
        if self.is_robotd:
            return f"{who} had disconnected, after which robotd lets nobody drive until it is restarted"
        return f"as robotd does after {who} has disconnected"

    def obstruction(self, label: str, subsystem_name: str, kind: int, holder: str) -> Obstruction:
        """Return why the robot refused a subsystem; `holder` is empty if nobody holds it."""
        label = label[:1].upper() + label[1:]
        is_error = self.is_robotd and kind == codec.SubsystemType.SKID_STEER
        # robotd leaves them as they were when their driver vanished, up to full speed.
        running = " Its motors may be running." if is_error else ""
        if not holder:
            advice = ": restart robotd." if self.is_robotd else "."
            return Obstruction(f"{label} was refused, although nobody holds it{advice}{running}", is_error)
        who = f"{label} is held by '{printable(holder)}'"
        if not self.is_robotd:
            return Obstruction(f"{who}.", is_error)
        is_own_name = holder == self.driver_name
        is_ours = is_own_name and subsystem_name in self._left_behind
        if is_ours or holder in self._gone:
            earlier = " That was an earlier connection of this bridge." if is_ours else ""
            return Obstruction(f"{who}, which is gone: restart robotd.{earlier}{running}", is_error)
        if is_own_name:
            return Obstruction(
                f"{who}, which is this driver's own name. Unless another driver uses it, restart robotd: it was left "
                f"behind by an earlier connection.{running}",
                is_error,
            )
        advice = "If that driver is gone, restart robotd, which does not notice by itself."
        return Obstruction(f"{who}. {advice}{running}", is_error)


def _remember(names: dict[str, None], name: str) -> None:
    while len(names) >= _MAX_NAMES:
        del names[next(iter(names))]
    names[name] = None


# Who drives which subsystem, and what this driver binds.


BIND_PAUSE_S = 1.0  # between attempts to bind the same subsystem
#: While others hold a desired subsystem, as a robot need not announce its release.
QUERY_PERIOD_S = 3.0

#: Gets whether something worked, and a sentence.
Answer = Callable[[bool, str], None]


@dataclass(slots=True)
class _Attempt:
    """A bind that has not been answered."""

    until_s: float
    answers: list[Answer] = field(default_factory=list)


class Bindings:
    """Binds the desired subsystems, and again whatever was lost. Times are of a monotonic clock, in s.

    Packets to be sent are added to `outbox`.
    """

    def __init__(
        self,
        outbox: list[codec.FromDriver],
        desired: DesiredSubsystems,
        holders: OtherDrivers,
        listener: Listener,
        *,
        answer_timeout_s: float,
        on_granted: Callable[[int], None],
        now_s: float,
    ) -> None:
        """`holders` also has this driver's name; `on_granted` gets the number of each subsystem that becomes bound."""
        self.info: codec.SubsystemInfo | None = None
        self.bound: set[int] = set()
        self._outbox = outbox
        self._desired = desired
        self._others = holders
        self._answer_timeout_s = answer_timeout_s
        self._listener = listener
        self._count_and_warn = listener.count_and_warn
        self._on_granted = on_granted
        self._drivers: dict[int, str] = {}
        self._wanted: set[int] = set()
        self._refused: set[int] = set()
        self._attempts: dict[int, _Attempt] = {}
        self._attempted_s: dict[int, float] = {}
        self._to_bind: dict[int, float] = {}  # and when, at the earliest
        self._query_due_s = now_s + QUERY_PERIOD_S
        self._is_settled = False
        self._released: list[str] = []  # names of what was given back in the end

    def subsystem_type(self, number: int) -> int | None:
        """Return the type of a subsystem, None if there is no such number."""
        if self.info is None or number >= len(self.info.subsystems):
            return None
        return self.info.subsystems[number].type

    def bound_of(self, kind: codec.SubsystemType) -> list[int]:
        """Return the bound subsystems of a type."""
        return [number for number in sorted(self.bound) if self.subsystem_type(number) == kind]

    def driver(self, number: int) -> str:
        """Return the driver of a subsystem, empty if none."""
        return self._drivers.get(number, "")

    @property
    def attempts(self) -> str:
        """The subsystems being bound, as text; empty if none."""
        return ", ".join(map(self._label, self._attempts))

    @property
    def obstruction(self) -> Obstruction | None:
        """The worst reason why a desired subsystem is not available; None if all are bound or being bound."""
        found = [
            self._others.obstruction(
                self._label(number), self._name(number), self.subsystem_type(number) or 0, self.driver(number)
            )
            for number in sorted(self._refused & self._wanted - self.bound)
        ]
        return max(found, key=lambda obstruction: obstruction.is_error, default=None)

    @property
    def bound_names(self) -> set[str]:
        """The names of the bound subsystems."""
        return {self._name(number) for number in self.bound}

    def _name(self, number: int) -> str:
        return "" if self.subsystem_type(number) is None or not self.info else self.info.subsystems[number].name

    def _label(self, number: int) -> str:
        name = self._name(number)
        return f"subsystem {number} ({printable(name)})" if name else f"subsystem {number}"

    # Time.

    @property
    def due_s(self) -> float:
        """When `tick` is due."""
        due = [attempt.until_s for attempt in self._attempts.values()]
        due += self._to_bind.values()
        if self.info and self._is_incomplete:
            due.append(self._query_due_s)
        return min(due, default=math.inf)

    @property
    def _is_incomplete(self) -> bool:
        """Whether a desired subsystem is neither bound nor about to be."""
        return bool(self._wanted - self.bound - self._attempts.keys() - self._to_bind.keys())

    def tick(self, now_s: float) -> None:
        """Do what is due."""
        if self.info and self._is_incomplete and now_s >= self._query_due_s:
            self._query_due_s = now_s + QUERY_PERIOD_S
            self._outbox.append(codec.QuerySubsystems())
        for number in [number for number, attempt in self._attempts.items() if now_s >= attempt.until_s]:
            sentence = f"The robot has not answered the bind of {self._label(number)}."
            self._count_and_warn("unanswered binds", sentence)
            self._end_attempt(number, False, sentence)
            self._bind_later(number, now_s)
        for number in [number for number, due_s in self._to_bind.items() if now_s >= due_s]:
            del self._to_bind[number]
            if number in self._wanted and number not in self.bound and not self.driver(number):
                self._bind(number, now_s)

    def resume(self, now_s: float) -> None:
        """Wait anew for answers, as nobody listened until now."""
        for attempt in self._attempts.values():
            attempt.until_s = now_s + self._answer_timeout_s

    # Packets of the robot.

    def handle_list(self, info: codec.SubsystemInfo, now_s: float) -> None:
        """Take the list of subsystems."""
        before, self.info = self.info, info
        is_first, is_other = before is None, before is not None and self._forget_others(before, info)
        self._drivers = {number: subsystem.driver for number, subsystem in enumerate(info.subsystems)}
        if self._others.is_robotd:  # which announces no release
            for number in sorted(self.bound):
                if not self.driver(number):
                    self._lose(number)
        self._wanted, missing = self._desired.choose(info.subsystems)
        for sentence in missing:
            self._count_and_warn("missing subsystems", sentence)
        for number in sorted(self._wanted - self.bound - self._attempts.keys()):
            if is_first:  # whoever has it: a refusal is what tells that it can't be had
                self._bind(number, now_s)
            elif is_other or not self.driver(number):
                self._bind_later(number, now_s)
        self._listener.subsystems_changed()
        self._check_settled()

    def _forget_others(self, before: codec.SubsystemInfo, after: codec.SubsystemInfo) -> bool:
        """Forget what was granted of a list that has changed; return whether it has."""
        old, new = ([(each.type, each.name) for each in info.subsystems] for info in (before, after))
        if old == new:
            return False
        self._count_and_warn("unexpected packets", "The robot's subsystems have changed.")
        # What was granted says nothing about others in the same place. NXT adapters add to the list at any time.
        self.bound = {number for number in self.bound if old[number : number + 1] == new[number : number + 1]}
        self._to_bind.clear()
        self._refused.clear()
        return True

    def handle_success(self, number: int) -> None:
        """Take a subsystem that was granted."""
        was_asked = number in self._attempts
        if number not in self._wanted:
            if was_asked:  # but no longer desired
                self._outbox.append(codec.UnbindSubsystem(number))
                self._end_attempt(number, False, f"{self._label(number)} is no longer wanted.")
            else:
                self._count_and_warn(
                    "unexpected packets", f"The robot granted {self._label(number)}, which was not requested."
                )
            return
        if number in self.bound:
            return
        self.bound.add(number)
        self._refused.discard(number)
        self._others.note_granted(self._name(number))
        self._to_bind.pop(number, None)
        self._drivers[number] = self._others.driver_name
        self._on_granted(number)
        sentence = f"The robot has granted {self._label(number)}."
        self._listener.inform(sentence)
        self._end_attempt(number, True, sentence)
        self._listener.subsystems_changed()

    def handle_failure(self, number: int) -> None:
        """Note that a subsystem was refused."""
        if number not in self._attempts:
            self._count_and_warn(
                "unexpected packets", f"The robot refused {self._label(number)}, which was not requested."
            )
            return
        who = printable(self.driver(number)) or "nobody, as far as is known,"
        sentence = f"The robot refused {self._label(number)}: {who} has it."
        self._refused.add(number)
        self._count_and_warn("refused binds", f"{sentence} It is requested again when it is released.")
        self._end_attempt(number, False, sentence)

    def handle_bound(self, packet: codec.SubsystemBound, now_s: float) -> None:
        """Note who drives a subsystem."""
        number, driver = packet.id, packet.driver
        if self.subsystem_type(number) is None:
            self._count_and_warn(
                "unexpected packets",
                f"The robot announced a driver of {self._label(number)}, which it had not listed.",
            )
            return
        self._drivers[number] = driver
        self._others.note_driver(driver)
        if number in self.bound and driver != self._others.driver_name:
            self._lose(number)
        if not driver and number in self._wanted and number not in self._attempts:
            self._bind_later(number, now_s)
        self._listener.subsystems_changed()

    def _lose(self, number: int) -> None:
        self.bound.discard(number)
        driver = self.driver(number)
        who = f"given it to {printable(driver)}" if driver else "taken it away"
        self._count_and_warn("lost subsystems", f"{self._label(number)}: the robot has {who}.")

    def _bind_later(self, number: int, now_s: float) -> None:
        """Bind once the last attempt is long enough ago."""
        self._to_bind[number] = max(now_s, self._attempted_s.get(number, -BIND_PAUSE_S) + BIND_PAUSE_S)

    def _bind(self, number: int, now_s: float) -> _Attempt:
        self._outbox.append(codec.BindSubsystem(number))
        self._attempted_s[number] = now_s
        self._attempts[number] = _Attempt(now_s + self._answer_timeout_s)
        return self._attempts[number]

    def _end_attempt(self, number: int, success: bool, sentence: str) -> None:
        if attempt := self._attempts.pop(number, None):
            for answer in attempt.answers:
                answer(success, sentence)
        self._check_settled()

    def _check_settled(self) -> None:
        if self.info and not self._attempts and not self._is_settled:
            self._is_settled = True
            self._listener.settled()

    # The operator.

    def _refusal(self, number: int) -> str | None:
        if self.info is None:
            return "The robot has not listed its subsystems yet."
        if self.subsystem_type(number) is None:
            return f"There is no subsystem {number}: the robot has {len(self.info.subsystems)}, counted from 0."
        return None

    def bind(self, number: int, now_s: float, answer: Answer) -> None:
        """Bind a subsystem, and keep it bound; `answer` is called once, now or later."""
        if refusal := self._refusal(number):
            answer(False, refusal)
            return
        assert self.info
        self._desired.note(number, self.info.subsystems[number], is_wanted=True)
        self._wanted.add(number)
        if number in self.bound:
            answer(True, f"{self._label(number)} is bound already.")
            return
        self._to_bind.pop(number, None)
        (self._attempts.get(number) or self._bind(number, now_s)).answers.append(answer)

    def unbind(self, number: int, answer: Answer) -> None:
        """Stop and unbind a subsystem, and no longer desire it; `answer` is called at once."""
        if refusal := self._refusal(number):
            answer(False, refusal)
            return
        assert self.info
        self._desired.note(number, self.info.subsystems[number], is_wanted=False)
        self._wanted.discard(number)
        self._refused.discard(number)
        if number not in self.bound:
            answer(True, f"{self._label(number)} was not bound, and is no longer desired.")
            return
        self._outbox += self._release(number)
        self.bound.discard(number)
        self._drivers[number] = ""
        self._listener.subsystems_changed()
        answer(True, f"{self._label(number)} is released.")

    def _release(self, number: int) -> list[codec.FromDriver]:
        is_skid_steer = self.subsystem_type(number) == codec.SubsystemType.SKID_STEER
        return [*([codec.SkidSteerUpdate(number, *STOPPED)] if is_skid_steer else []), codec.UnbindSubsystem(number)]

    # The end.

    def release_all(self) -> list[codec.FromDriver]:
        """Return the packets that stop and unbind everything."""
        packets = [packet for number in sorted(self.bound) for packet in self._release(number)]
        self._drivers.update(dict.fromkeys(self.bound, ""))
        self._released = [self._name(number) for number in self.bound]
        self.bound.clear()
        return packets

    def end(self, sentence: str) -> None:
        """Fail pending binds, and remember what the robot may still regard as ours."""
        self._drivers.clear()  # unknown from now on
        self._others.note_end([*self._released, *map(self._name, self._attempts)])
        for number in tuple(self._attempts):
            self._end_attempt(number, False, sentence)


# Keep-alives, and whether their answers allow driving.


KEEP_ALIVE_PERIOD_S = 0.1  # as the protocol's own driver
#: robotd puts its motors in safe mode for a keep-alive that is older by its own clock.
OLDEST_KEEP_ALIVE_S = 2.0
SLOW_ROUND_TRIP_S = 1.0
#: robotd reports it at each late keep-alive. It is over when there was no such report for so long.
SAFE_MODE_LASTS_S = 1.5
#: An answer that is later than usual by so much shows that the robot has not dealt yet with what it was sent.
LATE_S = 0.1
_MAX_IN_FLIGHT = 1000


@dataclass(slots=True)
class _Times:
    """Of a keep-alive without an answer."""

    begun_s: float
    sent_s: float = math.inf  # its last byte


class KeepAlives:
    """Makes keep-alives, and checks whether they come back, or reach the robot, in time to drive."""

    def __init__(self, now_s: float) -> None:
        self.begun_s = -math.inf  # the newest one
        self._in_flight: dict[int, _Times] = {}  # by their time in ms
        self._answered_s = now_s  # when the newest one that was answered was begun
        self._fastest_s = math.inf  # of all round trips
        self._safe_mode_s = -math.inf  # when the robot last said that it is in safe mode
        self._resumed_s = -math.inf  # when this program last went on after it stood still

    def make(self, now_s: float, clock_ms: int) -> codec.KeepAlive:
        """Return the next keep-alive. `clock_ms` is the time of day."""
        self.begun_s = now_s
        while len(self._in_flight) >= _MAX_IN_FLIGHT:
            del self._in_flight[next(iter(self._in_flight))]
        self._in_flight[clock_ms] = _Times(now_s)
        return codec.KeepAlive(clock_ms)

    def note_sent(self, packet: codec.KeepAlive, now_s: float) -> None:
        """Note that the last byte of a keep-alive was sent."""
        if times := self._in_flight.get(packet.time_ms):
            times.sent_s = now_s

    def answered(self, packet: codec.KeepAlive, now_s: float) -> float | None:
        """Return the round trip, in s, or None if no such keep-alive is pending."""
        times = self._in_flight.pop(packet.time_ms, None)
        if times is None:
            return None
        self._answered_s = max(self._answered_s, times.begun_s)
        round_trip_s = now_s - max(min(times.sent_s, now_s), self._resumed_s)
        if times.sent_s >= self._resumed_s:  # else it may have waited here already
            self._fastest_s = min(self._fastest_s, round_trip_s)
        return round_trip_s

    def resume(self, now_s: float) -> None:
        """Ask at once, and judge from now on: this program stood still, and neither asked nor listened."""
        self._resumed_s, self.begun_s = now_s, -math.inf

    def are_answered_since(self, time_s: float) -> bool:
        """Return whether one that was begun at this time or later was answered, and so all that went before it."""
        return self._answered_s >= time_s

    @property
    def usual_s(self) -> float:
        """How long an answer takes when nothing holds it up; 0 while that is unknown."""
        return self._fastest_s if math.isfinite(self._fastest_s) else 0.0

    def are_late(self, now_s: float) -> bool:
        """Return whether an answer is late, so that whatever is sent now will wait at the robot as well."""
        return any(now_s - times.sent_s > self.usual_s + LATE_S for times in self._in_flight.values())

    def note_safe_mode(self, now_s: float) -> None:
        """Note that the robot has stopped its motors."""
        self._safe_mode_s = now_s

    def standstill_reason(self, now_s: float) -> str | None:
        """Return why the motors must not be driven now, or None.

        A robot that stops for late keep-alives would start again with the next update.
        """
        if now_s - self._safe_mode_s < SAFE_MODE_LASTS_S:
            return (
                "The robot is in safe mode, as keep-alives are too old by its clock when they arrive: compare the "
                "clocks of both machines, and look at the network's delay."
            )
        if now_s - max(self._answered_s, self._resumed_s) > OLDEST_KEEP_ALIVE_S:
            return f"The robot has answered no keep-alive of the last {OLDEST_KEEP_ALIVE_S:g} s."
        return None


# Anomalies of packets that could be decoded and are still useful.


def anomalies(packet: codec.FromRobot) -> Iterator[tuple[str, str]]:
    """Yield each as the name of a count and a sentence."""
    if isinstance(packet, codec.UnknownPacket):
        size = len(packet.payload)
        yield "unknown packets", f"The robot sent {size} bytes of the unknown type 0x{packet.type:02x}."
    elif "\ufffd" in str(packet):
        yield "malformed strings", f"The robot sent a string that is not UTF-8: {printable(str(packet))}"
    if isinstance(packet, (codec.SubsystemInfo, codec.SensorInfo)) and (packet.opaque or packet.missing):
        what = "subsystem" if isinstance(packet, codec.SubsystemInfo) else "sensor"
        yield (
            "unknown types",
            f"The robot has a {what} of an unknown type; it and {packet.missing} more after it, "
            f"{len(packet.opaque)} bytes, can't be read.",
        )
    if isinstance(packet, codec.FirmwareInfo) and packet.protocol_version != codec.PROTOCOL_VERSION:
        yield (
            "other protocol versions",
            f"The robot speaks version {packet.protocol_version} of the protocol, not {codec.PROTOCOL_VERSION}.",
        )


# The conversation.


#: Between the bytes of a keep-alive that goes slowly.
BYTE_PERIOD_S = 0.01
#: When a stop has had no answer for so long, nobody knows whether the robot still moves.
STOP_ANSWER_S = 0.3
#: How long robotd may be silent at least: whoever gives it up is never let in again, until it is restarted.
ROBOTD_PATIENCE_S = 10.0
MAY_MOVE = "The robot has not answered since it was sent a stop: it may still be moving."


class RobotSession:
    """One connection, from registration on. Times are of a monotonic clock, in s.

    Packets to be sent gather in `outbox`. Only what the robot has granted on this connection is ever updated.

    A stop is known to be in force when a keep-alive after it was answered. Until then, and while an answer is late,
    keep-alives go slowly, byte by byte. The LEGO NXT adapters handle one packet per socket read: what has gathered
    there, as the adapter stood still or two packets came at once, would never get less, and a stop would wait at the
    end of it. Each byte on its own is a read in which such an adapter handles one more packet that it has.
    """

    def __init__(
        self,
        desired: DesiredSubsystems,
        holders: OtherDrivers,
        link_timeout_s: float,
        listener: Listener,
        now_s: float,
    ) -> None:
        """`holders` also has this driver's name."""
        self.outbox: list[codec.FromDriver] = [codec.RegisterDriver(holders.driver_name), codec.QuerySubsystems()]
        holders.begin()
        self.bindings = Bindings(
            self.outbox,
            desired,
            holders,
            listener,
            answer_timeout_s=link_timeout_s,
            on_granted=self._begin_stopped,
            now_s=now_s,
        )
        self._others = holders
        self._link_timeout_s = link_timeout_s
        self._listener = listener
        self._count_and_warn = listener.count_and_warn
        self._keep_alives = KeepAlives(now_s)
        self._started_s = self._heard_s = now_s
        self._sent_speeds: dict[int, Speeds] = {}
        self._sent_lights: dict[int, bool] = {}
        self._unreadable: set[int] = set()  # types of lists
        #: The speeds that were commanded last and did not have to wait.
        self.driven = STOPPED
        #: How the robot moves as far as its answers tell: a stop counts once it is known to be in force.
        self.moving = STOPPED
        self._stopped_s: float | None = None  # when a stop was sent that is not known to be in force
        self._slow: codec.KeepAlive | None = None  # the one that goes slowly
        #: The rest of it, without which nothing else may be sent.
        self.unsent = b""
        self._byte_due_s = now_s

    def standstill_reason(self, now_s: float) -> str | None:
        """Return why the motors must not be driven now, or None."""
        return self._keep_alives.standstill_reason(now_s)

    def has_backlog(self, now_s: float) -> bool:
        """Return whether the robot has not dealt yet with what it was sent: changes of speed wait, a stop does not."""
        return self._keep_alives.are_late(now_s)

    def may_move(self, now_s: float) -> bool:
        """Return whether nobody knows if the robot still moves, as the answer after a stop is overdue."""
        return self._stopped_s is not None and now_s - self._stopped_s > self._keep_alives.usual_s + STOP_ANSWER_S

    # Time.

    @property
    def due_s(self) -> float:
        """When `tick` and `flush` are due."""
        due_s = min(self._keep_alive_due_s, self._heard_s + self._patience_s, self.bindings.due_s)
        if self.unsent:
            due_s = min(due_s, self._byte_due_s)
        return due_s if self.bindings.info else min(due_s, self._started_s + self._patience_s)

    @property
    def _patience_s(self) -> float:
        return max(self._link_timeout_s, ROBOTD_PATIENCE_S) if self._others.is_robotd else self._link_timeout_s

    @property
    def _keep_alive_due_s(self) -> float:
        """When the next one is due: without a pause after a stop, until it is known to be in force."""
        if self.unsent:
            return math.inf
        return self._keep_alives.begun_s + (KEEP_ALIVE_PERIOD_S if self._stopped_s is None else BYTE_PERIOD_S)

    def resume(self, now_s: float) -> None:
        """Go on after this program stood still: it has not listened, so that nobody was silent, and speaks first."""
        self._heard_s = self._started_s = now_s
        self._keep_alives.resume(now_s)
        self.bindings.resume(now_s)

    def tick(self, now_s: float, clock_ms: int) -> None:
        """Do what is due. `clock_ms` is the time of day, for keep-alives. Raises LinkTimeoutError."""
        allowed_s = self._patience_s
        if now_s - self._heard_s >= allowed_s:
            raise LinkTimeoutError(f"The robot has been silent for {allowed_s:g} s.")
        if self.bindings.info is None and now_s - self._started_s >= allowed_s:
            raise LinkTimeoutError(f"The robot has not listed its subsystems within {allowed_s:g} s.")
        if now_s >= self._keep_alive_due_s:
            # Speeds are not repeated with it: a robot that has stopped by itself has its reasons.
            self.outbox.append(self._keep_alives.make(now_s, clock_ms))
        self.bindings.tick(now_s)

    def flush(self, encode: Callable[[codec.FromDriver], bytes], send: Callable[[bytes], None], now_s: float) -> None:
        """Send what is in `outbox`, and what is due of a keep-alive that goes slowly.

        `send` gets whole packets, or single bytes of a keep-alive. What it raises leaves the rest in `unsent`.
        """
        packets = tuple(self.outbox)
        self.outbox.clear()
        is_behind = self._is_behind(now_s)
        if not is_behind:
            self._complete(send, now_s)
        for packet in packets:
            self._complete(send, now_s)
            if isinstance(packet, codec.KeepAlive) and is_behind:
                self._slow, self.unsent = packet, encode(packet)
                continue
            send(encode(packet))
            if isinstance(packet, codec.KeepAlive):
                self._keep_alives.note_sent(packet, now_s)
            elif isinstance(packet, codec.SkidSteerUpdate):
                self._stopped_s = now_s if (packet.left, packet.right) == STOPPED else None
        if self.unsent and now_s >= self._byte_due_s:
            self._send_byte(send, now_s)
            self._byte_due_s = now_s + BYTE_PERIOD_S
        if self._stopped_s is None and not self.bindings.bound_of(codec.SubsystemType.SKID_STEER):
            self.moving = STOPPED  # others drive it, if anybody does

    def _is_behind(self, now_s: float) -> bool:
        """Return whether a keep-alive has to go slowly. The first one after a stop need not, if it comes at once."""
        is_unanswered = self._stopped_s is not None and now_s >= self._stopped_s + BYTE_PERIOD_S
        return is_unanswered or self.has_backlog(now_s)

    def _complete(self, send: Callable[[bytes], None], now_s: float) -> None:
        while self.unsent:
            self._send_byte(send, now_s)

    def _send_byte(self, send: Callable[[bytes], None], now_s: float) -> None:
        send(self.unsent[:1])
        self.unsent = self.unsent[1:]
        if self._slow and not self.unsent:
            self._keep_alives.note_sent(self._slow, now_s)

    # Packets of the robot.

    def handle(self, packet: codec.FromRobot, now_s: float) -> None:
        """Handle a packet."""
        for count, sentence in anomalies(packet):
            self._count_and_warn(count, sentence)
        if isinstance(packet, codec.UnknownPacket):
            return  # which may mean anything, so it is no sign of life
        self._heard_s = now_s
        if isinstance(packet, codec.KeepAlive):
            self._handle_keep_alive(packet, now_s)
        elif isinstance(packet, codec.SubsystemInfo):
            self.bindings.handle_list(packet, now_s)
        elif isinstance(packet, codec.BindSuccess):
            self.bindings.handle_success(packet.id)
        elif isinstance(packet, codec.BindFailure):
            self.bindings.handle_failure(packet.id)
        elif isinstance(packet, codec.SubsystemBound):
            self.bindings.handle_bound(packet, now_s)
        elif isinstance(packet, codec.SensorInfo):
            self._listener.sensors_listed(packet)
        elif isinstance(packet, codec.SensorUpdate):
            self._listener.sensors_read(packet)
        elif isinstance(packet, codec.LogMessage):
            self._handle_log(packet.text, now_s)
        elif isinstance(packet, codec.UnreadableList):
            self._handle_unreadable(packet)
        else:
            self._others.note_firmware(packet.type)
            self._listener.firmware_identified(packet)

    def _handle_keep_alive(self, packet: codec.KeepAlive, now_s: float) -> None:
        round_trip_s = self._keep_alives.answered(packet, now_s)
        if self._stopped_s is not None and self._keep_alives.are_answered_since(self._stopped_s):
            self._stopped_s, self.moving = None, STOPPED
        if round_trip_s is None:
            self._count_and_warn(
                "unexpected packets", f"The robot answered keep-alive {packet.time_ms}, which was not sent."
            )
            return
        self._listener.round_trip_measured(round_trip_s)
        if round_trip_s >= SLOW_ROUND_TRIP_S:
            sentence = f"A keep-alive took {round_trip_s:.1f} s to the robot and back. Robots stop for one that is over"
            self._count_and_warn("slow keep-alives", f"{sentence} {OLDEST_KEEP_ALIVE_S:g} s old.")

    def _handle_unreadable(self, packet: codec.UnreadableList) -> None:
        """Tell it once: it may come four times a second, and the robot can be driven all the same."""
        if packet.type not in self._unreadable:
            self._unreadable.add(packet.type)
            self._count_and_warn(
                "unreadable lists",
                f"The robot sent a packet of type 0x{packet.type:02x} in an unknown layout: {packet.problem}. It and "
                "others like it are left aside.",
            )

    def _handle_log(self, text: str, now_s: float) -> None:
        stopped = self._others.note_log(text)
        if stopped is not None and stopped in self.bindings.bound_names:
            self._keep_alives.note_safe_mode(now_s)
        self._listener.robot_logged(text)

    # Driving.

    def drive(self, speeds: Speeds, now_s: float) -> None:
        """Send changed speeds to every bound skid steer.

        They are STOPPED while keep-alives are late; a stop goes before, and instead of, whatever is queued, and other
        changes wait while the robot has a backlog.
        """
        if self.standstill_reason(now_s):
            speeds = STOPPED
        elif speeds != STOPPED and self.has_backlog(now_s):
            speeds = self.driven
        numbers = self.bindings.bound_of(codec.SubsystemType.SKID_STEER)
        changed = [number for number in numbers if self._sent_speeds.get(number) != speeds]
        self._sent_speeds.update(dict.fromkeys(changed, speeds))
        updates = [codec.SkidSteerUpdate(number, *speeds) for number in changed]
        if speeds == STOPPED:
            others = (p for p in self.outbox if not (isinstance(p, codec.SkidSteerUpdate) and p.id in changed))
            self.outbox[:] = [*updates, *others]
        else:
            self.outbox += updates
        self.driven = speeds
        if numbers and speeds != STOPPED:
            self.moving = speeds

    def light(self, is_on: bool) -> None:
        """Switch every bound light, if its state has changed."""
        for number in self.bindings.bound_of(codec.SubsystemType.LIGHTS):
            if self._sent_lights.get(number) != is_on:
                self._sent_lights[number] = is_on
                self.outbox.append(codec.LightUpdate(number, is_on))

    def _begin_stopped(self, number: int) -> None:
        """Stop motors that were just granted, before anything else: they may run on as another driver left them."""
        self._sent_lights.pop(number, None)
        if self.bindings.subsystem_type(number) == codec.SubsystemType.SKID_STEER:
            self._sent_speeds[number] = STOPPED
            self.outbox.append(codec.SkidSteerUpdate(number, *STOPPED))

    # The end.

    def farewell(self) -> list[codec.FromDriver]:
        """Return the last packets, which stop and unbind everything."""
        return self.bindings.release_all()

    def end(self, sentence: str) -> None:
        """Fail pending binds, and remember what the robot may still regard as ours."""
        self.bindings.end(sentence)
