# SPDX-License-Identifier: Apache-2.0
"""Wishes: wanted holds, each until a person releases the vehicle. Pure; ids are arguments.

Theory of operation: a wish has an id. A node that accepts it reports that id, with the id of its own run and a count of
releases (`~/hold_status`), every second. For each run of each node of a wanted vehicle the wish is

| state | begins | ends |
|---|---|---|
| unreached | with the wish; with the first report of the run | with a report of its id |
| reached | with that report, whose count is stored | as below |

It is reached by a node once it is by each run that has reported within RUN_S. Two runs are one after the other, or two
nodes of one name, such as on two machines.

It ends for the whole vehicle with `end`, when a person resumes it here, or with a report of that run with more releases
than before the wish, when a person resumed it elsewhere. The first report of another run does not end it, and neither
does an older one in transit. The end of a wish does not release the vehicle.

Nodes without such reports are unreached until `confirm`, and their wish ends only by `end`.

A wish for all applies to each vehicle, including later ones, until it ends. Resumed vehicles are excepted.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from drone_bridge.ros.hold.wish_file import EVERY_VEHICLE, FiledWish
from drone_bridge.session.duplicate_nodes import MAX_RUNS

#: What a person does who wants a hold.
PRESSED_STOP = "pressed STOP"
#: How long a run counts after its last report, s.
RUN_S = 3.0


class Report(NamedTuple):
    """Report of a node about its hold."""

    run: str
    """Id of its run."""
    wish: str
    """Id of the last accepted wish; empty without one."""
    releases_before_wish: int
    releases: int


@dataclass(slots=True)
class Wish:
    """Wanted hold of a vehicle."""

    id: str
    by: str
    """Name of the person."""
    since_s: float
    """Time by the wall clock."""
    pressed_s: float
    """Time when STOP was last pressed, by a clock that is never set."""
    act: str = PRESSED_STOP
    """What the person did."""
    nodes: frozenset[str] = frozenset()
    """Full names of the nodes that must accept it."""
    accepted: dict[tuple[str, str], Report] = field(default_factory=dict)
    """Reports of the runs that have accepted it, by node and run."""
    reached: set[str] = field(default_factory=set)
    """Nodes all of whose runs have accepted it."""
    problem: str = ""
    """Problem of a node that can't be held."""

    @property
    def reason(self) -> str:
        """Reason of the hold."""
        return f"{self.by} {self.act}"

    @property
    def is_reached(self) -> bool:
        """Whether all nodes have accepted it. False without nodes, as nothing can hold the vehicle."""
        return bool(self.nodes) and self.nodes <= self.reached


class Wishes:
    """All wishes, by vehicle."""

    def __init__(self) -> None:
        self._wishes: dict[str, Wish] = {}
        self._all: Wish | None = None
        self._resumed: set[str] = set()  # vehicles excepted from it
        self._reports: dict[str, dict[str, tuple[Report, float]]] = {}  # newest of each run of a node, and its time

    def __contains__(self, vehicle: object) -> bool:
        return vehicle in self._wishes

    def get(self, vehicle: str) -> Wish | None:
        """Return the wish of a vehicle."""
        return self._wishes.get(vehicle)

    def all(self) -> Mapping[str, Wish]:
        """Return the wishes by vehicle."""
        return self._wishes

    @property
    def all_by(self) -> str | None:
        """Name of the person who wants all vehicles held, including later ones; None without such a wish."""
        return self._all.by if self._all else None

    def filed(self) -> list[FiledWish]:
        """Return all wishes for the wish file."""
        filed = [FiledWish(vehicle, wish.id, wish.reason) for vehicle, wish in self._wishes.items()]
        if self._all:
            excepted = tuple(sorted(self._resumed | self._wishes.keys()))
            filed.append(FiledWish(EVERY_VEHICLE, self._all.id, self._all.reason, excepted))
        return filed

    def want(self, vehicle: str, nodes: Collection[str], wish: Wish) -> None:
        """Want a vehicle held, by a new id, so that a release in transit does not end it."""
        if before := self._wishes.get(vehicle):
            wish.since_s, wish.by, wish.act = before.since_s, before.by, before.act
        wish.nodes = frozenset(nodes)
        self._wishes[vehicle] = wish

    def want_all(self, wish: Wish) -> None:
        """Want all vehicles held, including later ones."""
        self._all = wish
        self._resumed.clear()

    def vehicle_appeared(self, vehicle: str, nodes: Collection[str]) -> None:
        """Record a present vehicle with its nodes; it may be new, or have come back."""
        if self._all and vehicle not in self._wishes and vehicle not in self._resumed:
            self._wishes[vehicle] = replace(self._all, accepted={}, reached=set())
        if wish := self._wishes.get(vehicle):
            wish.nodes = frozenset(nodes)
            for node in wish.nodes & self._reports.keys():
                self._follow(vehicle, node)

    def end(self, vehicle: str) -> Wish | None:
        """End the wish of a vehicle that a person resumes; return it."""
        self._resumed.add(vehicle)
        return self._wishes.pop(vehicle, None)

    def end_all(self) -> None:
        """End the wish for all, including later vehicles."""
        self._all = None

    def reported(self, node: str, report: Report, now_s: float) -> None:
        """Update the wishes by a report of a node, received now by a clock that is never set."""
        runs = {run: each for run, each in self._reports.get(node, {}).items() if now_s - each[1] <= RUN_S}
        self._reports[node] = {**dict(list(runs.items())[-MAX_RUNS:]), report.run: (report, now_s)}
        for vehicle in [vehicle for vehicle, wish in self._wishes.items() if node in wish.nodes]:
            self._follow(vehicle, node)

    def confirm(self, vehicle: str, wish: Wish, problem: str) -> None:
        """Record the response of ~/hold of a node without reports. Without a problem, the vehicle is held."""
        if self._wishes.get(vehicle) is wish:
            wish.problem = problem
            if not problem:
                wish.reached = set(wish.nodes)

    def _follow(self, vehicle: str, node: str) -> None:
        wish = self._wishes.get(vehicle)
        if wish is None:  # ended by the report of another node
            return
        runs = [report for report, _ in self._reports[node].values()]
        wish.accepted |= {(node, each.run): each for each in runs if each.wish == wish.id}
        accepted = [(each, wish.accepted[node, each.run]) for each in runs if (node, each.run) in wish.accepted]
        wish.reached -= {node}
        wish.reached |= {node} if len(accepted) == len(runs) else set()
        if any(report.releases > at.releases_before_wish for report, at in accepted):
            self.end(vehicle)
