# SPDX-License-Identifier: Apache-2.0
"""drone-bridge demo: demonstrations that need no hardware."""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from drone_bridge.kind import ProtocolKind, kinds, load
from drone_bridge.programs.demonstration import Flights
from drone_bridge.tools.cli import REFUSED


def main(argv: Sequence[str]) -> int:
    """Run the demonstration named in `argv`; return the exit status."""
    flying = {kind.name: (kind, flights) for kind in kinds().values() if (flights := _flights_of(kind))}
    shown = {
        **{kind.emulator.name: f"one of the {kind.name}'s flights, with a picture" for kind, _ in flying.values()},
        **{flights.series: f"a table of many {flights.series}" for _, flights in flying.values()},
        "fleet": "flights at once, bridged in one process, with a picture",
        "any": "legacy operators steer vehicles of other protocols, and a table of how well",
        "all": "all bridges at once, and how often their topics are published",
    }
    parser = argparse.ArgumentParser(prog="drone-bridge demo", description=__doc__)
    parser.add_argument("what", choices=shown, help=", ".join(f"{name}: {what}" for name, what in shown.items()))
    parser.add_argument(
        "--folder", type=Path, default=Path("demo"), help="folder for bag and picture, which is emptied first (demo)"
    )
    for _, flights in flying.values():
        of = f"how many {flights.series} per condition the table has (20)"
        parser.add_argument(f"--{flights.series}", type=_at_least_one, default=20, help=of)
    parser.add_argument("--drones", type=_at_least_one, default=8, help="how many drones the fleet has (8)")
    parser.add_argument("--at-once", type=_at_least_one, help="how many conditions of a table are flown at a time")
    parser.add_argument("--operators", nargs="+", metavar="NAME", help="which of them the table of any compares (all)")
    parser.add_argument("--vehicles", nargs="+", metavar="NAME", help="which of them the table of any compares (all)")
    parser.add_argument("--use-camera", action="store_true", help="land by the camera's images alone")
    parser.add_argument("--duration", type=float, default=60.0, help="how many seconds all are observed (60)")
    chosen = parser.parse_args(argv)
    try:
        return _show(chosen, list(flying.values()))
    except OSError as error:
        if error.filename is None:  # it is about no file
            raise
        print(f"drone-bridge demo: '{error.filename}': {error.strerror}.", file=sys.stderr)
        return REFUSED


def _show(chosen: argparse.Namespace, flying: Sequence[tuple[ProtocolKind, Flights]]) -> int:
    """Import what shows it, only now, and show it."""
    what, folder = chosen.what, chosen.folder
    if what == "any":
        return _call("any_vehicle:show", chosen.operators, chosen.vehicles, folder / what)
    if what == "all":
        return _call("all_bridges:show", folder, chosen.duration)
    if what == "fleet":
        kind = next(kind for kind, flights in flying if flights.fleet)
        return _call("flights:show_fleet", kind, folder / what, chosen.drones)
    for number, (kind, flights) in enumerate(flying):
        if what == kind.emulator.name:  # the first one's bag is the one that the documents play
            return _call("flights:show_flight", kind, folder / what if number else folder)
        if what == flights.series:
            arguments = {"use_camera": True} if chosen.use_camera else {}
            return _call("series:show_series", kind, getattr(chosen, what), chosen.at_once, arguments)
    raise AssertionError(what)


def _call(function: str, *arguments: object) -> int:
    show: Callable[..., int] = load(f"drone_bridge.tools.demo.{function}")
    return show(*arguments)


def _flights_of(kind: ProtocolKind) -> Flights | None:
    flights: Flights | None = load(kind.demonstration).flights if kind.demonstration else None
    return flights


def _at_least_one(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1, not {text}")
    return int(text)
