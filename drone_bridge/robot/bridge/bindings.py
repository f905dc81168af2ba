# SPDX-License-Identifier: Apache-2.0
"""What a driver wants of a robot, what it has of it, and who else does: the subsystems of one connection. No clock."""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from drone_bridge.robot.codec import (
    BindSubsystem,
    FirmwareInfo,
    FromDriver,
    QuerySubsystems,
    SensorInfo,
    SensorUpdate,
    SkidSteerUpdate,
    Subsystem,
    SubsystemBound,
    SubsystemInfo,
    SubsystemType,
    UnbindSubsystem,
)
from drone_bridge.robot.topics import STOPPED
from drone_bridge.wire.layouts import printable


class Listener(Protocol):
    """Receives the events of a session."""

    def count_and_warn(self, count: str, sentence: str) -> None:
        """A problem occurred; `count` is its kind."""

    def inform(self, sentence: str) -> None:
        """An expected change occurred."""

    def subsystems_changed(self) -> None:
        """The list of subsystems, or the driver of one, has changed."""

    def sensors_listed(self, info: SensorInfo) -> None:
        """The robot has listed its sensors."""

    def sensors_read(self, update: SensorUpdate) -> None:
        """Readings were received."""

    def robot_logged(self, text: str) -> None:
        """The robot has sent a log line."""

    def firmware_identified(self, firmware: FirmwareInfo) -> None:
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
        self._asked = {SubsystemType.SKID_STEER: skid_steer, SubsystemType.LIGHTS: lights}
        # By number and name: another robot, or a robot with another list, is a new start.
        self._operator: dict[tuple[int, str], bool] = {}

    def note(self, number: int, subsystem: Subsystem, is_wanted: bool) -> None:
        """Note that a service has asked to bind or unbind a subsystem."""
        self._operator[number, subsystem.name] = is_wanted

    def choose(self, subsystems: Sequence[Subsystem]) -> tuple[set[int], list[str]]:
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


def _chosen(choice: str, numbers: list[int], subsystems: Sequence[Subsystem]) -> Iterable[int]:
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
        is_error = self.is_robotd and kind == SubsystemType.SKID_STEER
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
        outbox: list[FromDriver],
        desired: DesiredSubsystems,
        holders: OtherDrivers,
        listener: Listener,
        *,
        answer_timeout_s: float,
        on_granted: Callable[[int], None],
        now_s: float,
    ) -> None:
        """`holders` also has this driver's name; `on_granted` gets the number of each subsystem that becomes bound."""
        self.info: SubsystemInfo | None = None
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

    def bound_of(self, kind: SubsystemType) -> list[int]:
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
            self._outbox.append(QuerySubsystems())
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

    def handle_list(self, info: SubsystemInfo, now_s: float) -> None:
        """Take the list of subsystems."""
        before = [(s.type, s.name) for s in self.info.subsystems] if self.info else []
        listed = [(s.type, s.name) for s in info.subsystems]
        is_other = self.info is not None and before != listed
        if is_other:
            self._count_and_warn("unexpected packets", "The robot's subsystems have changed.")
            # What was granted says nothing about others in the same place. NXT adapters add to the list at any time.
            self.bound = {number for number in self.bound if before[number : number + 1] == listed[number : number + 1]}
            self._to_bind.clear()
            self._refused.clear()
        is_first, self.info = self.info is None, info
        self._drivers = {number: subsystem.driver for number, subsystem in enumerate(info.subsystems)}
        for number in sorted(self.bound):
            if self._others.is_robotd and not self.driver(number):
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

    def handle_success(self, number: int) -> None:
        """Take a subsystem that was granted."""
        was_asked = number in self._attempts
        if number not in self._wanted:
            if was_asked:  # but no longer desired
                self._outbox.append(UnbindSubsystem(number))
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

    def handle_bound(self, packet: SubsystemBound, now_s: float) -> None:
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
        self._outbox.append(BindSubsystem(number))
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

    def _release(self, number: int) -> list[FromDriver]:
        is_skid_steer = self.subsystem_type(number) == SubsystemType.SKID_STEER
        return [*([SkidSteerUpdate(number, *STOPPED)] if is_skid_steer else []), UnbindSubsystem(number)]

    # The end.

    def release_all(self) -> list[FromDriver]:
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
