# SPDX-License-Identifier: Apache-2.0
"""`drone-bridge fleet`: many vehicles behind bridges in one process."""

import argparse
import os
import signal
import sys
from collections.abc import Collection, Sequence
from itertools import pairwise
from pathlib import Path

from drone_bridge.ros.program import run_work
from drone_bridge.tools.cli import REFUSED
from drone_bridge.tools.fleet.fleet import Fleet
from drone_bridge.tools.fleet.plan import FleetFileError, Overrides, Vehicle, load
from drone_bridge.tools.launch import parameters
from drone_bridge.tools.launch.substitutions import SubstitutionError


def main(argv: Sequence[str] | None = None) -> int:
    """Run the fleet that `argv` names until a signal; returns the exit status, 2 when the file is refused."""
    words = list(sys.argv[1:] if argv is None else argv)
    # What follows --ros-args is rclpy's, which reads the command line by itself.
    options = _parse(words[: words.index("--ros-args")] if "--ros-args" in words else words)
    overrides = Overrides(options.namespace, options.frame_prefix, options.host, options.emulate, options.control)
    try:
        vehicles = load(options.file, overrides)
        _check_parameter_files(words, vehicles)
    except (FleetFileError, SubstitutionError, OSError) as error:
        problem = f"{options.file} can't be read: {error.strerror}." if isinstance(error, OSError) else error
        print(f"drone-bridge fleet: {problem}", file=sys.stderr)
        if options.refusal_ends_launch:
            _end_launch()
        return REFUSED
    if options.dry_run:
        print("\n".join(map(_line, vehicles)))
        return 0
    return run_work(lambda stopping: Fleet(vehicles, stopping, models=options.models))


def _check_parameter_files(words: Sequence[str], vehicles: Sequence[Vehicle]) -> None:
    """Refuse a --params-file that is not YAML, and name what no vehicle takes. Raises SubstitutionError and OSError."""
    nodes: dict[str, Collection[str] | None] = {}
    for vehicle in vehicles:
        nodes[f"{vehicle.namespace}/{vehicle.protocol}_bridge"] = vehicle.kind.bridge.declarations
        if vehicle.control is not None:
            name = vehicle.kind.controller.node.partition(":")[0].rpartition(".")[2]
            nodes[f"{vehicle.namespace}/{name}"] = vehicle.kind.controller.declarations
    for word, file in pairwise(words):
        if word == "--params-file":
            parameters.check_file(Path(file))
            for sentence in parameters.unused(Path(file), nodes):
                print(f"drone-bridge fleet: {sentence}", file=sys.stderr)


def _parse(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="drone-bridge fleet",
        description="Bridge many vehicles in one process, described by a YAML file. ROS arguments follow --ros-args.",
    )
    parser.add_argument("file", type=Path, help="the vehicles, see docs/fleet.md")
    parser.add_argument("-p", "--dry-run", action="store_true", help="show the vehicles without starting them")
    parser.add_argument("--namespace", default="", help="prefix for that of each vehicle")
    parser.add_argument("--frame-prefix", default="", help="prefix for that of each vehicle")
    parser.add_argument("--host", default="127.0.0.1", help="for vehicles without one in the file (%(default)s)")
    for name, what in (
        ("--emulate", "emulate every vehicle"),
        ("--control", "give every vehicle a controller"),
        ("--models", "publish what every vehicle looks like, for rviz and the web page"),
    ):
        parser.add_argument(name, type=_truth, nargs="?", const=True, default=False, metavar="true", help=what)
    parser.add_argument(
        "--refusal-ends-launch",
        action="store_true",
        help="for launch files: stop the whole launch if the file is refused, instead of being started again",
    )
    return parser.parse_args(words)


def _end_launch() -> None:
    """Interrupt the launch that started this program, as Ctrl-C would."""
    if os.getppid() > 1:
        os.kill(os.getppid(), signal.SIGINT)


def _truth(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise argparse.ArgumentTypeError(f"must be true or false, not {text!r}")
    return text.lower() == "true"


def _line(vehicle: Vehicle) -> str:
    port = vehicle.parameters.get("port", vehicle.kind.bridge.declarations["port"].default)
    extras = [name for name in ("emulate", "control") if getattr(vehicle, name) is not None]
    words = [f"{vehicle.name}:", vehicle.protocol, vehicle.namespace, f"{vehicle.parameters['host']}:{port}", *extras]
    return " ".join(words)


if __name__ == "__main__":
    sys.exit(main())
