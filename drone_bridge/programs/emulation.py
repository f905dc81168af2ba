# SPDX-License-Identifier: Apache-2.0
"""Emulation: an emulated vehicle that is stepped in real time, and receives meanwhile, in one thread."""

from __future__ import annotations

import argparse
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from drone_bridge.net.blocking import TURN_S
from drone_bridge.net.clock import elapsed_s
from drone_bridge.net.connector import Cancellation, LinkClosedError, LinkOutdatedError, LinkRefusedError, wait_readable
from drone_bridge.net.link_loop import Link
from drone_bridge.net.loop_thread import Wait
from drone_bridge.programs.program import TrajectoryFile, print_event, print_status

#: Longest stall that a vehicle catches up, s; after a longer one it continues from there.
LONGEST_CATCH_UP_S = 0.25
#: Period of status lines, s of the vehicle's time.
STATUS_PERIOD_S = 1.0
#: Maximum number of events read from a link before the other links, or the next step.
MAX_READ = 64


class Emulation(ABC):
    """Base class of an emulated vehicle: its links, its steps, and what it prints. For one thread.

    A fault in a step ends the program, and datagrams are not dropped after a stall: a vehicle executes them late.
    """

    #: Time between two steps, s.
    step_s: float

    @property
    @abstractmethod
    def time_s(self) -> float:
        """Time of the vehicle, which --duration limits, s."""

    @property
    def has_ended(self) -> bool:
        """Whether this step was the last one."""
        return False

    @abstractmethod
    def receive(self, link: Any, event: Any, now_s: float) -> None:
        """Handle an event of a link."""

    def handle_refusal(self, sentence: str) -> None:  # noqa: B027 - most ignore it
        """Handle the refusal of a sent datagram: the peer's port is closed."""

    @abstractmethod
    def step(self, now_s: float) -> None:
        """Advance the vehicle by a step, and send what is due."""

    def row(self) -> Sequence[float | str]:
        """Return the vehicle's state for the trajectory."""
        raise NotImplementedError

    def changes(self) -> Iterable[str]:
        """Return a line for each change since the last step."""
        return ()

    def describe(self) -> str:
        """Return the vehicle's state as a status line; empty for none."""
        return ""

    def run(
        self,
        links: Sequence[Link],
        options: argparse.Namespace,
        cancellation: Cancellation,
        trajectory: TrajectoryFile | None,
    ) -> None:
        """Step and receive in real time until cancelled, for --duration, or until it has ended. Raises LinkError."""
        for files, longest_s in self.turns(links, options, cancellation, trajectory):
            wait_readable([*files, cancellation], longest_s)

    def turns(
        self,
        links: Sequence[Link],
        options: argparse.Namespace,
        cancellation: Cancellation,
        trajectory: TrajectoryFile | None,
    ) -> Iterator[Wait]:
        """Yield the waits between the turns of `run`."""
        duration_s = math.inf if options.duration is None else options.duration
        due_s, status_s = elapsed_s(), STATUS_PERIOD_S
        while not (self.has_ended or cancellation.is_set) and self.time_s < duration_s:
            self.step(elapsed_s())
            if trajectory:
                trajectory.write(self.row())
            for line in self.changes():
                print_event(line)
            if self.time_s >= status_s and (line := self.describe()):
                status_s += STATUS_PERIOD_S
                print_status(line)
            due_s = max(due_s + self.step_s, elapsed_s() - LONGEST_CATCH_UP_S)
            while not cancellation.is_set:
                for link in links:
                    self._receive_from(link)
                if (left_s := due_s - elapsed_s()) <= 0.0:
                    break
                yield Wait([file for link in links for file in link.files()], min(left_s, TURN_S))

    def _receive_from(self, link: Link) -> None:
        for _ in range(MAX_READ):
            try:
                if not (event := link.receive()):
                    return
                self.receive(link, event, elapsed_s())
            except LinkRefusedError as error:
                self.handle_refusal(str(error))
            except (LinkClosedError, LinkOutdatedError) as error:
                print_event(str(error))
                link.open()
