# SPDX-License-Identifier: Apache-2.0
"""Tables of how the five vehicles follow velocities, and stop; and the testbed's drone by attitude layout.

The emulated vehicles are steered by the control laws and translations of their bridges, without sockets. The tables are
in README.md.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).resolve().parent.parent / "test" / "support"))
import testbed_velocity_flights as testbed
from steered import Robot, Submarine, TestbedDrone, drive
from velocity_flights import Fly, GuiDrone, LandingDrone, fly, stop

from drone_bridge.motion.body_velocity import STILL

SEEDS = range(9000, 9010)
SPEEDS = (0.5, 1.5, 2.0)  # m/s; the last one is the default limit, and briefly needs the AR.Drone's maximum tilt
GUSTS = (0.0, 0.3)  # m/s
#: Constructor, by gusts and a seed; flight function; gusts, m/s; and speeds, m/s.
VEHICLES: dict[str, tuple[Callable[[float, int], Any], Fly, tuple[float, ...], tuple[float, ...]]] = {
    "AR.Drone": (GuiDrone, fly, GUSTS, SPEEDS),
    "landing drone": (LandingDrone, fly, GUSTS, SPEEDS),
    "testbed's drone": (TestbedDrone, drive, GUSTS, SPEEDS),
    "submarine": (lambda gusts, seed: Submarine(), drive, (0.0,), SPEEDS),
    "tracked robot": (lambda gusts, seed: Robot(), drive, (0.0,), (0.5, 1.0)),  # which is its maximum
}


def table_of_vehicles() -> None:
    """Print the flown speeds, and the distance of each vehicle to its stop after a zero: the worst of the flights."""
    print("| vehicle | gusts | `cmd_vel` | speed | stopping distance | drift in 10 s |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, (make, flier, winds, speeds) in VEHICLES.items():
        for gusts in winds:
            stops = [[stop(make(gusts, seed), speed, flier) for seed in SEEDS] for speed in speeds]
            asked = ", ".join(f"{speed:g}" for speed in speeds)
            flown = ", ".join(f"{min(e.speed for e in each):.2f} to {max(e.speed for e in each):.2f}" for each in stops)
            ways = ", ".join(f"{max(e.way for e in each):.2f}" for each in stops)
            drift = max(e.drift for each in stops for e in each)
            print(f"| {name} | {gusts:g} m/s | {asked} m/s | {flown} m/s | {ways} m | {drift:.2f} m |", flush=True)


def table_of_layouts() -> None:
    """Print the result of the same legs for each attitude layout of the testbed."""
    print("| layout | wind | largest velocity error | drift in 10 s | height after 60 s |")
    print("| --- | --- | --- | --- | --- |")
    legs = [(testbed.LEG_S, leg) for velocity in testbed.LEGS for leg in (velocity, STILL)]
    standing = round(10 / testbed.STEP_S)
    for layout in testbed.LAYOUTS:
        for name, (wind, gusts) in testbed.WINDS.items():
            flight = testbed.fly(layout, [*legs, (10.0, STILL)], wind, gusts)
            error = testbed.speed_error(flight[:-standing])
            way = float(np.linalg.norm(flight[-1].state.position - flight[-standing].state.position))
            height = testbed.fly(layout, [(60.0, STILL)], wind, gusts)[-1].state.position[1]
            print(f"| `{layout}` | {name} | {error:.2f} m/s | {way:.2f} m | {height:+.2f} m |")


if __name__ == "__main__":
    table_of_vehicles()
    print()
    table_of_layouts()
