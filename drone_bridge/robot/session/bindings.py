# SPDX-License-Identifier: Apache-2.0
"""Bindings: who drives which subsystem, and what this driver binds."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from drone_bridge.robot import codec
from drone_bridge.robot.codec import STOPPED
from drone_bridge.robot.session.desired import DesiredSubsystems
from drone_bridge.robot.session.listener import Listener
from drone_bridge.robot.session.other_drivers import Obstruction, OtherDrivers
from drone_bridge.wire.printable import printable

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
            self._count_and_warn("unanswered_binds", sentence)
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
            self._count_and_warn("missing_subsystems", sentence)
        for number in sorted(self._wanted - self.bound - self._attempts.keys()):
            if is_first:  # whether or not it is held: only a refusal shows that it can't be had
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
        self._count_and_warn("unexpected_packets", "The robot's subsystems have changed.")
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
                    "unexpected_packets", f"The robot granted {self._label(number)}, which was not requested."
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
                "unexpected_packets", f"The robot refused {self._label(number)}, which was not requested."
            )
            return
        who = printable(self.driver(number)) or "nobody, as far as is known,"
        sentence = f"The robot refused {self._label(number)}: {who} has it."
        self._refused.add(number)
        self._count_and_warn("refused_binds", f"{sentence} It is requested again when it is released.")
        self._end_attempt(number, False, sentence)

    def handle_bound(self, packet: codec.SubsystemBound, now_s: float) -> None:
        """Note who drives a subsystem."""
        number, driver = packet.id, packet.driver
        if self.subsystem_type(number) is None:
            self._count_and_warn(
                "unexpected_packets",
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
        self._count_and_warn("lost_subsystems", f"{self._label(number)}: the robot has {who}.")

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
