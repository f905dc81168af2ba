# SPDX-License-Identifier: Apache-2.0
"""Bindings: the driver of each subsystem, and the binds of this driver.

While a desired subsystem is not bound, the list is queried every QUERY_PERIOD_S, and what it shows as free is bound.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import NamedTuple

from drone_bridge.robot import codec
from drone_bridge.robot.codec import STOPPED
from drone_bridge.robot.session.desired import DesiredSubsystems
from drone_bridge.session.session import Action, Note, Outcome, Request
from drone_bridge.wire.counters import problems
from drone_bridge.wire.printable import printable

# Counters.
REFUSED_BINDS, LOST_SUBSYSTEMS, MISSING_SUBSYSTEMS = problems("refused_binds", "lost_subsystems", "missing_subsystems")

QUERY_PERIOD_S = 1.0
NOT_LISTED = "The robot has not listed its subsystems yet."
ROBOTD = "robotd"  # as in its firmware packet


class Obstruction(NamedTuple):
    """Reason why a desired subsystem is not available."""

    sentence: str
    is_error: bool  # permanent without help


class Bindings:
    """Binds the desired subsystems, and rebinds them after a loss.

    Packets to send are added to `outbox`; notes for counters and log, and outcomes of requests, to `out`.

    robotd 1.2 never removes a driver. Once one has disconnected, the next bind fails after its ownership was recorded:
    the new driver's connection ends, and it owns the subsystem until robotd is restarted.
    """

    def __init__(
        self,
        driver_name: str,
        desired: DesiredSubsystems,
        outbox: list[codec.FromDriver],
        out: list[Action],
        on_granted: Callable[[int], None],
        *,
        now_s: float,
    ) -> None:
        """`on_granted` is called with the number of each granted subsystem."""
        #: The robot's list with the current drivers. None before it has listed its subsystems.
        self.info: codec.SubsystemInfo | None = None
        self.bound: set[int] = set()
        self.is_robotd = False
        self._driver_name, self._desired = driver_name, desired
        self._outbox, self._out, self._on_granted = outbox, out, on_granted
        self._wanted: set[int] = set()
        self._refused: dict[int, Obstruction] = {}  # as it was when the robot refused the bind
        self._attempts: dict[int, list[Request]] = {}  # unanswered binds, with the requests that wait for them
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
        return (
            f"The robot closed the connection while {being_bound} was being bound. robotd does so once a driver has "
            "disconnected: restart it."
        )

    @property
    def obstruction(self) -> Obstruction | None:
        """Most severe reason why a desired subsystem is not available. None if all are bound or being bound."""
        found = [self._refused[number] for number in sorted(self._refused.keys() & self._wanted - self.bound)]
        return max(found, key=lambda obstruction: obstruction.is_error, default=None)

    def _obstruction(self, number: int) -> Obstruction:
        subsystem, label = self._listed(number), self._label(number)
        holder = f"held by '{printable(subsystem.driver)}'" if subsystem.driver else "refused, although it is free"
        sentence = f"{label[:1].upper()}{label[1:]} is {holder}."
        if not self.is_robotd:
            return Obstruction(sentence, is_error=False)
        sentence += " Unless that driver is connected, restart robotd: it serves no driver after one has disconnected."
        if is_error := subsystem.type == codec.SubsystemType.SKID_STEER:
            sentence += " Its motors may be running."  # as that driver left them, up to full speed
        return Obstruction(sentence, is_error)

    def _listed(self, number: int) -> codec.Subsystem:
        """Return a subsystem that is in the list."""
        assert self.info
        return self.info.subsystems[number]

    def _label(self, number: int) -> str:
        subsystem = self.subsystem(number)
        name = subsystem.name if subsystem else ""
        return f"subsystem {number} ({printable(name)})" if name else f"subsystem {number}"

    # Time.

    @property
    def due_s(self) -> float:
        """Time of the next `tick`."""
        is_complete = self.info is not None and self._wanted <= self.bound | self._attempts.keys()
        return math.inf if is_complete else self._query_due_s

    def tick(self, now_s: float) -> None:
        """Query the list if that is due."""
        if now_s >= self.due_s:
            self._query_due_s = now_s + QUERY_PERIOD_S
            self._outbox.append(codec.QuerySubsystems())

    # Packets of the robot.

    def handle_list(self, info: codec.SubsystemInfo) -> None:
        """Update the bindings by the robot's list of subsystems."""
        before, self.info, is_other = self.info, info, False
        if before:  # NXT adapters change the list at any time; other subsystems in the same place are not granted
            old, new = ([(each.type, each.name) for each in listed.subsystems] for listed in (before, info))
            self.bound = {number for number in self.bound if old[number : number + 1] == new[number : number + 1]}
            is_other = old != new
        self._wanted, missing = self._desired.choose(info.subsystems)
        self._out += [Note(MISSING_SUBSYSTEMS, sentence, is_ongoing=True) for sentence in missing]
        for number in sorted(self._wanted - self.bound - self._attempts.keys()):
            # In a new list, only a refusal shows that it can't be: it may name this driver, whose motors may run.
            if before is None or is_other or not self._listed(number).driver:
                self._bind(number)

    def handle_success(self, number: int) -> None:
        """Mark a subsystem as bound, or unbind it if it is no longer desired. Ignore what was not requested."""
        if (requests := self._attempts.pop(number, None)) is None:
            return
        if number not in self._wanted:
            self._outbox.append(codec.UnbindSubsystem(number))
            self._answer(requests, False, f"{self._label(number)} is no longer desired.")
            return
        self.bound.add(number)
        self._refused.pop(number, None)
        self._set_driver(number, self._driver_name)
        self._on_granted(number)
        sentence = f"The robot has granted {self._label(number)}."
        self._out.append(Note("", sentence, is_expected=True))
        self._answer(requests, True, sentence)

    def handle_failure(self, number: int) -> None:
        """Note that the robot has refused a bind, and why."""
        if (requests := self._attempts.pop(number, None)) is None:
            return
        subsystem = self.subsystem(number)
        holder = printable(subsystem.driver) if subsystem and subsystem.driver else "no known driver"
        sentence = f"The robot refused {self._label(number)}: it is bound by {holder}."
        if subsystem:
            self._refused[number] = self._obstruction(number)
        self._out.append(Note(REFUSED_BINDS, f"{sentence} Retrying when it is released.", is_ongoing=True))
        self._answer(requests, False, sentence)

    def handle_bound(self, packet: codec.SubsystemBound) -> None:
        """Record a subsystem's new driver, which may end our binding."""
        number, driver = packet.id, packet.driver
        if self.subsystem(number) is None:
            return
        self._set_driver(number, driver)
        if number in self.bound and driver != self._driver_name:
            self.bound.discard(number)
            self._outbox += self._stops([number])  # ignored, if that driver has it
            change = f"given it to {printable(driver)}" if driver else "released it"
            self._out.append(Note(LOST_SUBSYSTEMS, f"{self._label(number)}: the robot has {change}."))

    def _set_driver(self, number: int, driver: str) -> None:
        assert self.info
        before, after = self.info.subsystems[:number], self.info.subsystems[number + 1 :]
        self.info = replace(self.info, subsystems=(*before, replace(self._listed(number), driver=driver), *after))

    def _bind(self, number: int) -> list[Request]:
        """Request a subsystem. Return the list of requests that wait for it."""
        self._outbox.append(codec.BindSubsystem(number))
        return self._attempts.setdefault(number, [])

    def _answer(self, requests: list[Request], success: bool, sentence: str) -> None:
        self._out += [Outcome(request, success, sentence) for request in requests]

    # Requests.

    def _refusal(self, number: int) -> str | None:
        if self.info is None:
            return NOT_LISTED
        if self.subsystem(number) is None:
            return f"Subsystem {number} does not exist: the robot has {len(self.info.subsystems)}, counted from 0."
        return None

    def bind(self, request: Request, number: int) -> None:
        """Bind a subsystem, and rebind it after a loss. The outcome follows now or later."""
        if refusal := self._refusal(number):
            self._answer([request], False, refusal)
            return
        self._desired.note(number, self._listed(number), is_wanted=True)
        self._wanted.add(number)
        if number in self.bound:
            self._answer([request], True, f"{self._label(number)} is already bound.")
        elif number in self._attempts:
            self._attempts[number].append(request)
        else:
            self._bind(number).append(request)

    def unbind(self, request: Request, number: int) -> None:
        """Stop and unbind a subsystem, and remove it from the desired ones."""
        if refusal := self._refusal(number):
            self._answer([request], False, refusal)
            return
        self._desired.note(number, self._listed(number), is_wanted=False)
        self._wanted.discard(number)
        self._refused.pop(number, None)
        sentence = f"{self._label(number)} was not bound. It is no longer desired."
        if number in self.bound:
            self._outbox += self._release(number)
            sentence = f"{self._label(number)} is released."
        self._answer([request], True, sentence)

    def _release(self, number: int) -> list[codec.FromDriver]:
        """Unbind a subsystem. Return the packets that stop and unbind it."""
        self.bound.discard(number)
        self._set_driver(number, "")
        return [*self._stops([number]), codec.UnbindSubsystem(number)]

    def _stops(self, numbers: Iterable[int]) -> list[codec.FromDriver]:
        steers = (each for each in numbers if self._listed(each).type == codec.SubsystemType.SKID_STEER)
        return [codec.SkidSteerUpdate(each, *STOPPED) for each in steers]

    # End of the connection.

    def releases(self) -> tuple[list[codec.FromDriver], list[codec.FromDriver]]:
        """Return the packets that stop, and those that unbind, all bound subsystems."""
        numbers = sorted(self.bound)
        return self._stops(numbers), [codec.UnbindSubsystem(number) for number in numbers]

    def end(self, sentence: str) -> list[codec.FromDriver]:
        """Fail pending binds, and forget all drivers. Return the packets that stop and unbind all subsystems."""
        stops, unbinds = self.releases()
        self.bound.clear()
        if self.info:
            self.info = replace(self.info, subsystems=tuple(replace(each, driver="") for each in self.info.subsystems))
        for requests in self._attempts.values():
            self._answer(requests, False, sentence)
        return [*stops, *unbinds]
