# SPDX-License-Identifier: Apache-2.0
"""drone-bridge demo: demonstrations that need no hardware."""

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from drone_bridge.kind import load
from drone_bridge.tools.cli import REFUSED


@dataclass(frozen=True, slots=True)
class Demonstration:
    """A function in a module beside this one, imported only when it is asked for, and the options that it takes."""

    function: str
    summary: str
    arguments: Callable[[argparse.Namespace], tuple[Any, ...]]


SHOWN = {
    "testbed": Demonstration("flights:show_testbed", "one flight to a target, with a picture", lambda o: (o.folder,)),
    "worlds": Demonstration("series:show_worlds", "a table of many flights", lambda o: (o.worlds,)),
    "landing": Demonstration(
        "flights:show_landing", "one landing on a moving rover, with a picture", lambda o: (o.folder / "landing",)
    ),
    "landings": Demonstration(
        "series:show_landings", "a table of many landings", lambda o: (o.landings, o.at_once, o.use_camera)
    ),
    "fleet": Demonstration(
        "flights:show_fleet",
        "eight flights at once, bridged in one process, with a picture",
        lambda o: (o.folder / "fleet", o.drones),
    ),
    "any": Demonstration(
        "any_vehicle:show",
        "legacy operators steer vehicles of other protocols, and a table of how well",
        lambda o: (o.operators, o.vehicles, o.folder / "any"),
    ),
    "all": Demonstration(
        "all_bridges:show",
        "all bridges at once, and how often their topics are published",
        lambda o: (o.folder, o.duration),
    ),
}


def main(argv: Sequence[str]) -> int:
    """Run the demonstration named in `argv`; return the exit status."""
    parser = argparse.ArgumentParser(prog="drone-bridge demo", description=__doc__)
    parser.add_argument(
        "what", choices=SHOWN, help=", ".join(f"{name}: {shown.summary}" for name, shown in SHOWN.items())
    )
    parser.add_argument(
        "--folder", type=Path, default=Path("demo"), help="folder for bag and picture, which is emptied first (demo)"
    )
    parser.add_argument("--worlds", type=_at_least_one, default=20, help="how many worlds the table has (20)")
    parser.add_argument(
        "--landings", type=_at_least_one, default=20, help="how many landings per pattern the table has (20)"
    )
    parser.add_argument("--drones", type=_at_least_one, default=8, help="how many drones the fleet has (8)")
    parser.add_argument("--at-once", type=_at_least_one, default=3, help="how many patterns at a time (3)")
    parser.add_argument("--operators", nargs="+", metavar="NAME", help="which of them the table of any compares (all)")
    parser.add_argument("--vehicles", nargs="+", metavar="NAME", help="which of them the table of any compares (all)")
    parser.add_argument("--use-camera", action="store_true", help="land by the camera's images alone")
    parser.add_argument("--duration", type=float, default=60.0, help="how many seconds all are observed (60)")
    chosen = parser.parse_args(argv)
    shown = SHOWN[chosen.what]
    try:
        status: int = load(f"drone_bridge.tools.demo.{shown.function}")(*shown.arguments(chosen))
    except OSError as error:
        if error.filename is None:  # it is about no file
            raise
        print(f"drone-bridge demo: '{error.filename}': {error.strerror}.", file=sys.stderr)
        return REFUSED
    return status


def _at_least_one(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1, not {text}")
    return int(text)
