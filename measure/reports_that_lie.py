# SPDX-License-Identifier: Apache-2.0
"""Reports of drones that lie, or only seem to: how far and fast a drone flies by them, and what is doubted.

In virtual time, without sockets or ROS. The flights are in `test/support/lying_flights.py` and `lying_testbed.py`. With
names of lies or conditions as arguments, `python measure/reports_that_lie.py NAME ...` flies only these.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from multiprocessing import Pool
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent.parent / "test" / "support"))
import lying_flights as flights
import lying_testbed as testbed
from lying_flights import FENCE_M, Calm, Effect, Flown, bounds_of, violations
from step import Verdict

MOVING, STANDING = ("0.3 m/s", "STOP", "climb"), ("zero", "none")
#: Name before those of the testbed's positions.
PLACE = "position "
#: Conditions under which doubts are allowed: largest share of the time, and largest error, m/s. Under others: none.
DOUBTED = {
    "gusts 3 m/s": (0.25, 5.0),
    "wind 5 m/s at once": (0.1, 4.5),
    "slope of 40 %": (0.05, 2.0),
    "carried": (0.35, 2.0),
}
WALL_TILT, WALL_SAID_S, WALL_FASTER = 0.4, 6.5, 0.6
REFUSED = 0.01  # share of commands that a fence refuses, in addition to doubts
GAPS = ("70%", "pauses")  # reports are missing: these refuse more
TESTBED_WAY, TESTBED_SPEED = 25.0, 5.0


Jobs = dict[tuple[Any, ...], tuple[Callable[..., Any], tuple[Any, ...]]]
Flights = dict[tuple[Any, ...], Any]


class Selection:
    """Flights to fly: all of them, a short form of them, or only those whose lie or condition begins with a name."""

    def __init__(self, short: bool, names: Sequence[str]) -> None:
        self.is_short, self._names = short, tuple(names)
        self.begins = flights.BEGINS[:1] if short else flights.BEGINS
        self.testbed_begins = testbed.TESTBED_BEGINS[:1] if short else testbed.TESTBED_BEGINS
        self.moving: Sequence[str] = MOVING[:2] if short else MOVING
        self.standing: Sequence[str] = STANDING[:1] if short else STANDING
        self.lies, self.honest = self._of(flights.LIES), self._of(flights.HONEST)
        self.place_lies = self._of(PLACE + name for name in testbed.PLACE_LIES)
        self.places = self._of(PLACE + name for name in testbed.TESTBED_HONEST)
        self.has_walls = bool(self._of(["wall"]))

    def _of(self, known: Iterable[str]) -> list[str]:
        return [name for name in known if not self._names or name.startswith(self._names)]

    def jobs(self) -> Jobs:
        """Return functions and arguments of the flights."""
        jobs: Jobs = {}
        for drone in flights.TILTED:
            jobs.update(self._tilted(drone))
        for lie in self.place_lies:
            for command in ("0.3 m/s", "1 m/s", "zero"):
                for begin_s in self.testbed_begins:
                    jobs[lie, command, begin_s] = _testbed_effect, (lie.removeprefix(PLACE), command, begin_s)
        for name in self.places:
            for command in ("zero", "legs"):
                jobs[name, command] = testbed.testbed_honest, (name.removeprefix(PLACE), command)
        return jobs

    def _tilted(self, drone: str) -> Jobs:
        jobs: Jobs = {}
        for lie in self.lies:
            for command in (*self.moving, *self.standing):
                for begin_s in self.begins:
                    jobs[drone, lie, command, begin_s] = _effect, (drone, lie, command, begin_s, 0.0)
                    if command == MOVING[0] and not self.is_short:
                        jobs[drone, lie, "fence", begin_s] = _effect, (drone, lie, command, begin_s, 30.0)
            jobs[drone, lie, FENCE_M] = flights.farthest_in_fence, (drone, lie, FENCE_M)
        for name in self.honest:
            for command in ("square",) if name == "full stick" else ("zero", "square"):
                for seed in (1, 2) if name.startswith("gusts") and not self.is_short else (1,):
                    jobs[drone, name, command, seed] = flights.honest, (drone, name, command, seed)
            jobs[drone, name, FENCE_M] = flights.honest, (drone, name, "square", 1, 30.0)
        for speed in (0.3, 1.0) if self.has_walls else ():
            for wait_s in (0.0, 5.0):
                jobs[drone, "wall", speed, wait_s] = flights.at_wall, (drone, speed, wait_s)
        return jobs


def main(short: bool, names: Sequence[str] = ()) -> int:
    """Fly everything, or with `names` only these lies and conditions, and print tables."""
    verdict, selection = Verdict(), Selection(short, names)
    jobs = selection.jobs()
    with Pool(int(os.environ.get("MEASURE_JOBS", os.cpu_count() or 1))) as pool:
        flown = dict(zip(jobs, pool.map(_do, jobs.values(), chunksize=1), strict=True))
    for drone in flights.TILTED:
        _print_lies(drone, selection, flown, verdict)
    for drone in flights.TILTED:
        _print_honest(drone, selection, flown, verdict)
    if selection.has_walls:
        _print_walls(flown, verdict)
    _print_testbed(selection, flown, verdict)
    lies = [each for each in flown.values() if isinstance(each, Effect)]
    endless = sum(each.back_s is None for each in lies)
    verdict.figure(f"{len(flown)} flights, {endless} of {len(lies)} lies still have an effect 14 s after their end")
    return verdict.status


def _print_lies(drone: str, selection: Selection, flown: Flights, verdict: Verdict) -> None:
    print(f"\n| {drone} | moving, STOP: m off, m/s, said, back | standing: m off, m/s | fence of {FENCE_M:g} m |")
    print("|---|---|---|---|")
    for lie in selection.lies:

        def effects(commands: Sequence[str], lie: str = lie) -> Effect:
            return _worst([flown[drone, lie, each, at] for each in commands for at in selection.begins])

        # After STOP, a velocity of zero is right, so that nothing may be said.
        moved, stood = effects(selection.moving), effects(selection.standing)
        moved = moved._replace(said_s=effects(MOVING[:1]).said_s)
        far, fenced = flown[drone, lie, FENCE_M], [flown.get((drone, lie, "fence", each)) for each in selection.begins]
        print(f"| {lie} | {_effects(moved)} | {stood.way:.1f}, {stood.speed:.1f} | {far:.1f} |", flush=True)
        bounds = bounds_of(lie)
        broken = violations(moved, bounds)
        if stood.speed > bounds.drift:
            broken.append(f"{stood.speed:.1f} m/s while it stands (bound {bounds.drift:g})")
        if far > bounds.in_fence:
            broken.append(f"{far:.1f} m in a fence of {FENCE_M:g} m (bound {bounds.in_fence:g})")
        if any(each is not None and each.back_s is None for each in fenced):
            broken.append("never back with a fence")
        verdict.stopped(not broken, f"{drone}, {lie}: {'; '.join(broken)}")


def _print_honest(drone: str, selection: Selection, flown: Flights, verdict: Verdict) -> None:
    print(f"\n| {drone}, honest | zero: doubts/min, time, error | square | refused in a fence |\n|---|---|---|---|")
    for name in selection.honest:
        cells, (most, error) = [], next((DOUBTED[key] for key in DOUBTED if name.startswith(key)), (0.0, 2.5))
        for command in ("zero", "square"):
            each = [calm for key, calm in flown.items() if key[:3] == (drone, name, command)]
            cells.append(_calm(each) if each else "")
            share = max((calm.doubted_share for calm in each), default=0.0)
            fastest = max((calm.error for calm in each), default=0.0) if name != "full stick" else 0.0
            verdict.stopped(share <= most, f"{drone}, {name}, {command}: doubted for {share:.0%} (bound {most:.0%})")
            verdict.stopped(fastest <= error, f"{drone}, {name}, {command}: {fastest:.1f} m/s off (bound {error:g})")
        refused = flown[drone, name, FENCE_M].refused_share
        print(f"| {name} | {' | '.join(cells)} | {refused:.0%} |", flush=True)
        if not name.startswith(GAPS):
            verdict.stopped(refused <= most + REFUSED, f"{drone}, {name}: {refused:.0%} refused in a fence")


def _print_walls(flown: Flights, verdict: Verdict) -> None:
    print("\n| wall | tilt from 3 s on | said | m/s afterwards | too far after 5 s |\n|---|---|---|---|---|")
    for (drone, _, speed, wait_s), wall in ((key, each) for key, each in flown.items() if key[1] == "wall"):
        name = f"{drone} at {speed:g} m/s after {wait_s:g} s"
        print(f"| {name} | {wall.tilt:.0%} | {_s(wall.said_s)} | {wall.speed:.1f} | {wall.too_far:.1f} m |", flush=True)
        is_slow = wall.tilt <= WALL_TILT and wall.speed <= speed + WALL_FASTER
        verdict.stopped(is_slow, f"{name}: tilt {wall.tilt:.0%}, later {wall.speed:.1f} m/s")
        verdict.stopped((wall.said_s or 99.0) <= WALL_SAID_S, f"{name}: said after {_s(wall.said_s)}")


def _print_testbed(selection: Selection, flown: Flights, verdict: Verdict) -> None:
    if selection.place_lies:
        print("\n| testbed | 0.3, 1 m/s: m off, m/s, said, back | zero: m off, m/s |\n|---|---|---|")
    for lie in selection.place_lies:

        def effects(*commands: str, lie: str = lie) -> Effect:
            return _worst([flown[lie, each, at] for each in commands for at in selection.testbed_begins])

        moved, stood = effects("0.3 m/s", "1 m/s"), effects("zero")
        print(f"| {lie} | {_effects(moved)} | {stood.way:.1f}, {stood.speed:.1f}{_height(stood)} |", flush=True)
        way, speed = max(moved.way, stood.way), max(moved.speed, stood.speed)
        is_near = way <= TESTBED_WAY and speed <= TESTBED_SPEED
        verdict.stopped(is_near, f"testbed, {lie}: {way:.1f} m off, {speed:.1f} m/s")
    if selection.places:
        print("\n| testbed, honest | zero: doubts/min, time, error | legs |\n|---|---|---|")
    for name in selection.places:
        print(f"| {name} | {_calm([flown[name, 'zero']])} | {_calm([flown[name, 'legs']])} |", flush=True)


def _worst(effects: Sequence[Effect]) -> Effect:
    """Return the largest values of several effects."""
    said = [each.said_s for each in effects]
    back = [each.back_s for each in effects]
    return Effect(
        max(each.way for each in effects),
        max(each.speed for each in effects),
        max(each.height for each in effects),
        None if None in said else max(each for each in said if each is not None),
        None if None in back else max(each for each in back if each is not None),
    )


def _effect(drone: str, lie: str, command: str, begin_s: float, fence_radius: float) -> Effect:
    return flights.effect(flights.lied_to(drone, lie, command, begin_s, fence_radius), _true(drone, command, begin_s))


def _testbed_effect(lie: str, command: str, begin_s: float) -> Effect:
    return flights.effect(testbed.testbed_lied_to(lie, command, begin_s), _testbed_true(command, begin_s))


@cache
def _true(drone: str, command: str, begin_s: float) -> Flown:
    return flights.lied_to(drone, None, command, begin_s)


@cache
def _testbed_true(command: str, begin_s: float) -> Flown:
    return testbed.testbed_lied_to(None, command, begin_s)


def _do(job: tuple[Callable[..., Any], tuple[Any, ...]]) -> Any:
    function, arguments = job
    return function(*arguments)


def _s(seconds: float | None) -> str:
    return "never" if seconds is None else f"{seconds:.1f} s"


def _effects(effect: Effect) -> str:
    return f"{effect.way:.1f}, {effect.speed:.1f}, {_s(effect.said_s)}, {_s(effect.back_s)}{_height(effect)}"


def _height(effect: Effect) -> str:
    return f", height {effect.height:.1f}" if effect.height > 0.3 else ""


def _calm(each: Sequence[Calm]) -> str:
    doubts = sum(calm.doubts_per_minute for calm in each) / len(each)
    share = sum(calm.doubted_share for calm in each) / len(each)
    return f"{doubts:.1f}, {share:.0%}, {max(calm.error for calm in each):.1f}"


if __name__ == "__main__":
    arguments = [argument for argument in sys.argv[1:] if argument != "--short"]
    sys.exit(main("--short" in sys.argv[1:], arguments))
