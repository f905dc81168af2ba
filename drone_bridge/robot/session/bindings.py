# SPDX-License-Identifier: Apache-2.0
"""Bindings: the driver of each subsystem, and the binds of this driver."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from drone_bridge.robot import codec
from drone_bridge.robot.codec import STOPPED
from drone_bridge.robot.session.desired import DesiredSubsystems
from drone_bridge.robot.session.other_drivers import Obstruction, OtherDrivers
from drone_bridge.session.session import Action, Note, Outcome, Request
from drone_bridge.wire.counters import ProblemCounter, problems
from drone_bridge.wire.printable import printable

# Counters.
UNEXPECTED = ProblemCounter("unexpected_packets")
REFUSED_BINDS, UNANSWERED_BINDS = problems("refused_binds", "unanswered_binds")
LOST_SUBSYSTEMS, MISSING_SUBSYSTEMS = problems("lost_subsystems", "missing_subsystems")

BIND_PAUSE_S = 1.0  # between attempts to bind the same subsystem
#: Retry period while nothing is listed, or others hold a desired subsystem, since a release need not be announced.
QUERY_PERIOD_S = 3.0
NOT_LISTED = "The robot has not listed its subsystems yet."


@dataclass(slots=True)
class _Attempt:
    """Unanswered bind with the requests that wait for it."""

    until_s: float
    requests: list[Request] = field(default_factory=list)


class Bindings:
    """Binds the desired subsystems, and rebinds them after a loss. Times are seconds of a monotonic clock.

    Packets to send are added to `outbox`; notes for counters and log, and outcomes of requests, to `out`.
    """

    def __init__(
        self,
        outbox: list[codec.FromDriver],
        out: list[Action],
        desired: DesiredSubsystems,
        others: OtherDrivers,
        *,
        answer_timeout_s: float,
        on_granted: Callable[[int], None],
        now_s: float,
    ) -> None:
        """`others` also has this driver's name. `on_granted` is called with the number of each granted subsystem."""
        #: The robot's list with the current drivers. None before it has listed its subsystems.
        self.info: codec.SubsystemInfo | None = None
        self.bound: set[int] = set()
        self._outbox = outbox
        self._out = out
        self._desired = desired
        self._others = others
        self._answer_timeout_s = answer_timeout_s
        self._on_granted = on_granted
        self._wanted: set[int] = set()
        self._refused: set[int] = set()
        self._attempts: dict[int, _Attempt] = {}
        self._attempted_s: dict[int, float] = {}
        self._to_bind: dict[int, float] = {}  # by number: earliest time of the bind
        self._query_due_s = now_s + QUERY_PERIOD_S

    def subsystem(self, number: int) -> codec.Subsystem | None:
        """Return a subsystem with its current driver. None if the number is not listed."""
        if self.info is None or number >= len(self.info.subsystems):
            return None
        return self.info.subsystems[number]

    def bound_of(self, kind: codec.SubsystemType) -> list[int]:
        """Return the bound subsystems of a type."""
        return [number for number in sorted(self.bound) if self._listed(number).type == kind]

    @property
    def bound_names(self) -> set[str]:
        """Names of the bound subsystems."""
        return {self._listed(number).name for number in self.bound}

    @property
    def is_settled(self) -> bool:
        """Whether the robot has listed its subsystems and answered every bind."""
        return self.info is not None and not self._attempts

    @property
    def closing_sentence(self) -> str | None:
        """Reason for the robot to close the connection now, if a bind explains it."""
        if not self._attempts:
            return None
        being_bound = ", ".join(map(self._label, self._attempts))
        why = self._others.closing_explanation
        return f"The robot closed the connection while {being_bound} was being bound: {why}."

    @property
    def obstruction(self) -> Obstruction | None:
        """Most severe reason why a desired subsystem is not available. None if all are bound or being bound."""
        found = []
        for number in sorted(self._refused & self._wanted - self.bound):
            subsystem = self._listed(number)
            found.append(self._others.obstruction(self._label(number), subsystem.type, subsystem.driver))
        return max(found, key=lambda obstruction: obstruction.is_error, default=None)

    def _listed(self, number: int) -> codec.Subsystem:
        """Return a subsystem that is in the list."""
        assert self.info
        return self.info.subsystems[number]

    def _label(self, number: int) -> str:
        subsystem = self.subsystem(number)
        name = subsystem.name if subsystem else ""
        return f"subsystem {number} ({printable(name)})" if name else f"subsystem {number}"

    def _warn(self, counter: str, sentence: str) -> None:
        self._out.append(Note(counter, sentence))

    # Time.

    @property
    def due_s(self) -> float:
        """Time of the next `tick`."""
        due = [attempt.until_s for attempt in self._attempts.values()]
        due += self._to_bind.values()
        if self._is_incomplete:
            due.append(self._query_due_s)
        return min(due, default=math.inf)

    @property
    def _is_incomplete(self) -> bool:
        """Whether nothing is listed yet, or a desired subsystem is neither bound nor scheduled."""
        return self.info is None or bool(self._wanted - self.bound - self._attempts.keys() - self._to_bind.keys())

    def tick(self, now_s: float) -> None:
        """Check timeouts, and send due requests."""
        if self._is_incomplete and now_s >= self._query_due_s:
            self._query_due_s = now_s + QUERY_PERIOD_S
            self._outbox.append(codec.QuerySubsystems())
        for number in [number for number, attempt in self._attempts.items() if now_s >= attempt.until_s]:
            sentence = f"The robot has not answered the bind of {self._label(number)}."
            if number in self._wanted:
                sentence += " It is still requested."
            self._warn(UNANSWERED_BINDS, sentence)
            self._end_attempt(number, False, sentence)
            self._bind_later(number, now_s)
        for number in [number for number, due_s in self._to_bind.items() if now_s >= due_s]:
            del self._to_bind[number]
            if number in self._wanted and number not in self.bound and not self._listed(number).driver:
                self._bind(number, now_s)

    def resume(self, now_s: float) -> None:
        """Restart the timeouts of binds after a stall."""
        for attempt in self._attempts.values():
            attempt.until_s = now_s + self._answer_timeout_s

    # Packets of the robot.

    def handle_list(self, info: codec.SubsystemInfo, now_s: float) -> None:
        """Update the bindings by the robot's list of subsystems."""
        before, self.info = self.info, info
        is_other = before is not None and self._forget_others(before, info)
        if self._others.is_robotd:  # which announces no release
            for number in sorted(self.bound):
                if not self._listed(number).driver:
                    self._lose(number)
        self._wanted, missing = self._desired.choose(info.subsystems)
        for sentence in missing:
            self._warn(MISSING_SUBSYSTEMS, sentence)
        for number in sorted(self._wanted - self.bound - self._attempts.keys()):
            if before is None:  # even if it is held: only a refusal shows that it can't be bound
                self._bind(number, now_s)
            elif is_other or not self._listed(number).driver:
                self._bind_later(number, now_s)

    def _forget_others(self, before: codec.SubsystemInfo, after: codec.SubsystemInfo) -> bool:
        """If the list has changed, drop what was granted before. Return whether it has."""
        old, new = ([(each.type, each.name) for each in info.subsystems] for info in (before, after))
        if old == new:
            return False
        self._warn(UNEXPECTED, "The robot's subsystems have changed.")
        # Other subsystems in the same place are not granted. NXT adapters extend the list at any time.
        self.bound = {number for number in self.bound if old[number : number + 1] == new[number : number + 1]}
        self._to_bind.clear()
        self._refused.clear()
        return True

    def handle_success(self, number: int) -> None:
        """Mark a subsystem as bound, or unbind it if it is no longer wanted."""
        if number not in self._attempted_s:
            self._warn(UNEXPECTED, f"The robot granted {self._label(number)}, which was not requested.")
            return
        if number not in self._wanted:  # no longer desired, and perhaps granted after the timeout
            self._outbox.append(codec.UnbindSubsystem(number))
            self._end_attempt(number, False, f"{self._label(number)} is no longer desired.")
            return
        if number in self.bound:
            return
        self.bound.add(number)
        self._refused.discard(number)
        self._to_bind.pop(number, None)
        self._set_driver(number, self._others.driver_name)
        self._on_granted(number)
        sentence = f"The robot has granted {self._label(number)}."
        self._out.append(Note("", sentence, is_expected=True))
        self._end_attempt(number, True, sentence)

    def handle_failure(self, number: int) -> None:
        """End an attempt that the robot refused, and note the reason."""
        if number not in self._attempts:
            self._warn(UNEXPECTED, f"The robot refused {self._label(number)}, which was not requested.")
            return
        subsystem = self.subsystem(number)
        holder = printable(subsystem.driver) if subsystem and subsystem.driver else "no known driver"
        sentence = f"The robot refused {self._label(number)}: it is bound by {holder}."
        self._refused.add(number)
        self._warn(REFUSED_BINDS, f"{sentence} Retrying when it is released.")
        self._end_attempt(number, False, sentence)

    def handle_bound(self, packet: codec.SubsystemBound, now_s: float) -> None:
        """Record a subsystem's new driver, which may end our binding."""
        number, driver = packet.id, packet.driver
        if self.subsystem(number) is None:
            self._warn(UNEXPECTED, f"The robot announced a driver of {self._label(number)}, which is not listed.")
            return
        self._set_driver(number, driver)
        self._others.note_driver(driver)
        if number in self.bound and driver != self._others.driver_name:
            self._lose(number)
        if not driver and number in self._wanted and number not in self._attempts:
            self._bind_later(number, now_s)

    def _set_driver(self, number: int, driver: str) -> None:
        assert self.info
        before, after = self.info.subsystems[:number], self.info.subsystems[number + 1 :]
        self.info = replace(self.info, subsystems=(*before, replace(self._listed(number), driver=driver), *after))

    def _lose(self, number: int) -> None:
        self.bound.discard(number)
        driver = self._listed(number).driver
        change = f"given it to {printable(driver)}" if driver else "released it"
        self._warn(LOST_SUBSYSTEMS, f"{self._label(number)}: the robot has {change}.")

    def _bind_later(self, number: int, now_s: float) -> None:
        """Bind after the pause since the last attempt."""
        self._to_bind[number] = max(now_s, self._attempted_s.get(number, -BIND_PAUSE_S) + BIND_PAUSE_S)

    def _bind(self, number: int, now_s: float) -> _Attempt:
        self._outbox.append(codec.BindSubsystem(number))
        self._attempted_s[number] = now_s
        self._attempts[number] = _Attempt(now_s + self._answer_timeout_s)
        return self._attempts[number]

    def _end_attempt(self, number: int, success: bool, sentence: str) -> None:
        if attempt := self._attempts.pop(number, None):
            self._out += [Outcome(request, success, sentence) for request in attempt.requests]

    # Requests.

    def _refusal(self, number: int) -> str | None:
        if self.info is None:
            return NOT_LISTED
        if self.subsystem(number) is None:
            return f"Subsystem {number} does not exist: the robot has {len(self.info.subsystems)}, counted from 0."
        return None

    def bind(self, request: Request, number: int, now_s: float) -> None:
        """Bind a subsystem, and rebind it after a loss. The outcome follows now or later."""
        if refusal := self._refusal(number):
            self._out.append(Outcome(request, False, refusal))
            return
        self._desired.note(number, self._listed(number), is_wanted=True)
        self._wanted.add(number)
        if number in self.bound:
            self._out.append(Outcome(request, True, f"{self._label(number)} is already bound."))
            return
        self._to_bind.pop(number, None)
        (self._attempts.get(number) or self._bind(number, now_s)).requests.append(request)

    def unbind(self, request: Request, number: int) -> None:
        """Stop and unbind a subsystem, and remove it from the desired ones."""
        if refusal := self._refusal(number):
            self._out.append(Outcome(request, False, refusal))
            return
        self._desired.note(number, self._listed(number), is_wanted=False)
        self._wanted.discard(number)
        self._refused.discard(number)
        sentence = f"{self._label(number)} was not bound. It is no longer desired."
        if number in self.bound:
            self._outbox += self._release(number)
            sentence = f"{self._label(number)} is released."
        self._out.append(Outcome(request, True, sentence))

    def _release(self, number: int) -> list[codec.FromDriver]:
        """Unbind a subsystem. Return the packets that stop and unbind it."""
        self.bound.discard(number)
        self._set_driver(number, "")
        unbind = codec.UnbindSubsystem(number)
        if self._listed(number).type != codec.SubsystemType.SKID_STEER:
            return [unbind]
        return [codec.SkidSteerUpdate(number, *STOPPED), unbind]

    # End of the connection.

    def releases(self) -> tuple[list[codec.FromDriver], list[codec.FromDriver]]:
        """Return the packets that stop, and those that unbind, all bound subsystems."""
        steers = sorted(self.bound_of(codec.SubsystemType.SKID_STEER))
        stops: list[codec.FromDriver] = [codec.SkidSteerUpdate(number, *STOPPED) for number in steers]
        return stops, [codec.UnbindSubsystem(number) for number in sorted(self.bound)]

    def release_all(self) -> list[codec.FromDriver]:
        """Unbind all subsystems. Return the packets that stop all of them, and then unbind them."""
        stops, unbinds = self.releases()
        for number in tuple(self.bound):
            self._release(number)
        return [*stops, *unbinds]

    def end(self, sentence: str) -> None:
        """Fail pending binds, and forget the drivers of all subsystems."""
        if self.info:
            self.info = replace(self.info, subsystems=tuple(replace(each, driver="") for each in self.info.subsystems))
        for number in tuple(self._attempts):
            self._end_attempt(number, False, sentence)
