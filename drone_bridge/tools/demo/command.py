# SPDX-License-Identifier: Apache-2.0
"""drone-bridge demo: demonstrations that need no hardware."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Final

SHOWN: Final = {
    "testbed": "one flight to a target, with a picture",
    "worlds": "a table of many flights",
    "landing": "one landing on a moving rover, with a picture",
    "landings": "a table of many landings",
    "fleet": "eight flights at once, bridged in one process, with a picture",
    "any": "legacy operators steer vehicles of other protocols, and a table of how well",
    "all": "all bridges at once, and how often their topics come",
}


def main(argv: Sequence[str]) -> int:
    """Run the demonstration named in `argv`; return the exit status."""
    parser = argparse.ArgumentParser(prog="drone-bridge demo", description=__doc__)
    parser.add_argument("what", choices=SHOWN, help=", ".join(f"{name}: {what}" for name, what in SHOWN.items()))
    parser.add_argument("--folder", type=Path, default=Path("demo"), help="replaced by bag and picture (demo)")
    parser.add_argument("--worlds", type=int, default=20, help="how many worlds the table has (20)")
    parser.add_argument("--landings", type=int, default=20, help="how many landings per pattern the table has (20)")
    parser.add_argument("--drones", type=int, default=8, help="how many drones the fleet has (8)")
    parser.add_argument("--at-once", type=int, default=3, help="how many of them go on at the same time (3)")
    parser.add_argument("--operators", nargs="+", metavar="NAME", help="of the table's rows, those of any (all)")
    parser.add_argument("--vehicles", nargs="+", metavar="NAME", help="of the table's rows, those of any (all)")
    parser.add_argument("--use-camera", action="store_true", help="land by the camera's images alone")
    parser.add_argument("--duration", type=float, default=60.0, help="for how many seconds all are watched (60)")
    chosen = parser.parse_args(argv)
    if chosen.what == "worlds":
        from drone_bridge.tools.demo import worlds

        return worlds.show(chosen.worlds)
    if chosen.what == "landing":
        from drone_bridge.tools.demo import landing

        return landing.show(chosen.folder / "landing")
    if chosen.what == "landings":
        from drone_bridge.tools.demo import landings

        return landings.show(chosen.landings, chosen.at_once, chosen.use_camera)
    if chosen.what == "fleet":
        from drone_bridge.tools.demo import fleet

        return fleet.show(chosen.folder / "fleet", chosen.drones)
    if chosen.what == "any":
        from drone_bridge.tools.demo import any_vehicle

        return any_vehicle.show(chosen.operators, chosen.vehicles, chosen.folder / "any")
    if chosen.what == "all":
        from drone_bridge.tools.demo import all_bridges

        return all_bridges.show(chosen.folder, chosen.duration)
    from drone_bridge.tools.demo import testbed

    return testbed.show(chosen.folder)
