# SPDX-License-Identifier: Apache-2.0
"""Wishes: the holds that people want, each kept until its vehicle is released by a person. Pure, with ids handed in.

Theory of operation: a wish has an id. A node that takes it reports that id, with the id of its own run and a count of
releases (`~/hold_status`). Of the node of a wanted vehicle the wish is

| state | begins | ends |
|---|---|---|
| unreached | with the wish; with another run of the node, which may not know it | with a report of its id |
| reached | with that report, whose run and count are kept | with another run; or as below |

and it ends for the whole vehicle with `end`, when a person resumes it here, or with a report of that run that counts
more releases than before it took the wish, when a person resumed it elsewhere. A first report of another run ends
nothing, nor does one that was under way. The end of a wish releases nothing.

Nodes without such reports are unreached until `confirm`, and their wish ends by `end` alone or by `released`.

A wish for all is one for every vehicle, and for each that comes until it ends; a vehicle that was resumed is excepted.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple


class Report(NamedTuple):
    """What a node has reported of its hold."""

    run: str
    """The id of its run."""
    wish: str
    """The id of the wish that it took last; empty: none."""
    releases_before_wish: int
    releases: int


@dataclass(slots=True)
class Wish:
    """A vehicle that is wanted to be held."""

    id: str
    by: str
    """The name of the person."""
    since_s: float
    """By the clock on the wall."""
    pressed_s: float
    """When STOP was pressed last, by a clock that is never set."""
    nodes: frozenset[str] = frozenset()
    """The nodes that have to take it, by their full names."""
    reached: dict[str, Report] = field(default_factory=dict)
    """The nodes that have taken it, each with its report of that; without one an empty report."""
    problem: str = ""
    """What a node has answered that can't be held."""

    @property
    def is_reached(self) -> bool:
        """Whether all nodes have taken it. False without nodes: then nothing can hold the vehicle."""
        return bool(self.nodes) and self.nodes <= self.reached.keys()


class Wishes:
    """All wishes, by vehicle."""

    def __init__(self) -> None:
        self._wishes: dict[str, Wish] = {}
        self._all: Wish | None = None
        self._resumed: set[str] = set()  # excepted from it
        self._reports: dict[str, Report] = {}  # the newest of each node

    def __contains__(self, vehicle: str) -> bool:
        return vehicle in self._wishes

    def get(self, vehicle: str) -> Wish | None:
        """Return the wish of a vehicle."""
        return self._wishes.get(vehicle)

    def all(self) -> Mapping[str, Wish]:
        """Return the wishes by vehicle."""
        return self._wishes

    @property
    def all_by(self) -> str | None:
        """Who wants all vehicles held, and those that come; None without such a wish."""
        return self._all.by if self._all else None

    def want(self, vehicle: str, nodes: Collection[str], wish: Wish) -> None:
        """Want a vehicle held, by a new id: a release that is under way must not end it."""
        if before := self._wishes.get(vehicle):
            wish.since_s, wish.by = before.since_s, before.by
        wish.nodes = frozenset(nodes)
        self._wishes[vehicle] = wish

    def want_all(self, wish: Wish) -> None:
        """Want every vehicle held that comes from now on, too."""
        self._all = wish
        self._resumed.clear()

    def meet(self, vehicle: str, nodes: Collection[str]) -> None:
        """Note a vehicle that is there, with its nodes; it may be new, or have come back."""
        if self._all and vehicle not in self._wishes and vehicle not in self._resumed:
            self._wishes[vehicle] = replace(self._all, reached={})
        if wish := self._wishes.get(vehicle):
            wish.nodes = frozenset(nodes)
            for node in wish.nodes & self._reports.keys():
                self._follow(vehicle, node)

    def end(self, vehicle: str) -> Wish | None:
        """End the wish of a vehicle that a person resumes; return it."""
        self._resumed.add(vehicle)
        return self._wishes.pop(vehicle, None)

    def end_all(self) -> None:
        """End the wish for all, also for vehicles to come."""
        self._all = None

    def reported(self, node: str, report: Report) -> None:
        """Follow a report of a node."""
        self._reports[node] = report
        for vehicle in [vehicle for vehicle, wish in self._wishes.items() if node in wish.nodes]:
            self._follow(vehicle, node)

    def confirm(self, vehicle: str, wish: Wish, problem: str) -> None:
        """Follow the answer of ~/hold of a node without reports: an empty problem means that the vehicle is held."""
        if self._wishes.get(vehicle) is wish:
            wish.problem = problem
            if not problem:
                wish.reached = dict.fromkeys(wish.nodes, Report("", "", 0, 0))

    def released(self, vehicle: str) -> None:
        """End a wish that was reached, as a node without reports says that its vehicle is not held any more."""
        wish = self._wishes.get(vehicle)
        if wish and wish.is_reached:
            self.end(vehicle)

    def _follow(self, vehicle: str, node: str) -> None:
        wish, report = self._wishes.get(vehicle), self._reports[node]
        if wish is None:  # ended by the report of another node
            return
        at = wish.reached.get(node)
        if report.wish == wish.id:
            at = wish.reached[node] = report
        elif at is not None and report.run != at.run:
            del wish.reached[node]
        elif at is None:
            return
        if report.run == at.run and report.releases > at.releases_before_wish:
            self.end(vehicle)
