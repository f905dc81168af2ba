# SPDX-License-Identifier: Apache-2.0
"""The `drone-bridge` command and its subcommands."""

import argparse
import errno
import importlib
import io
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec

from drone_bridge.programs.missing_package import explain_missing
from drone_bridge.programs.options import known
from drone_bridge.ros.process.environment import complete_environment
from drone_bridge.standard_files import open_closed_files
from drone_bridge.tools.command_parser import CommandParser

#: Exit status if a command can't be run, the same as that of argparse.
REFUSED = 2


@dataclass(frozen=True, slots=True)
class Subcommand:
    """A module of `drone_bridge.tools` with `main(argv) -> exit status`, or module:function, imported on first use."""

    module: str
    summary: str
    needs_ros: bool = True


COMMANDS = {
    "emulate": Subcommand("emulate.command:emulate", "emulate a vehicle, for trials without hardware", False),
    "operate": Subcommand("emulate.command:operate", "steer a vehicle as a legacy operator program", needs_ros=False),
    "launch": Subcommand("launch.command", "run an XML launch file without launch_ros"),
    "demo": Subcommand("demo.command", "fly without hardware, record it, and write a report"),
    "info": Subcommand("info.command", "summarize the contents of a bag, or name the module of a robot", False),
    "record": Subcommand("record.command", "record topics into a bag"),
    "play": Subcommand("play.command", "play back a bag"),
    "report": Subcommand("report.command", "write a report of a bag as one HTML page", False),
    "recover": Subcommand("recover.command", "complete an .mcap file of a killed recorder", False),
    "run": Subcommand("run.command", "run one node, as ros2 run drone_bridge does"),
    "node": Subcommand("shell.nodes", "list nodes, as ros2 node does"),
    "topic": Subcommand("shell.topic", "list, print, time or publish topics, as ros2 topic does"),
    "service": Subcommand("shell.service", "list or call services, as ros2 service does"),
    "param": Subcommand("shell.param", "list, get or set parameters, as ros2 param does"),
    "picture": Subcommand("shell.picture", "save the next image of a camera"),
    "hold": Subcommand("hold.command:hold", "hold one vehicle, or all: neutral until they are resumed"),
    "resume": Subcommand("hold.command:resume", "resume one vehicle, or all: they follow commands again"),
    "doctor": Subcommand("doctor.command", "report what is installed and running, and whether it works", False),
    "check": Subcommand("check.command", "test the bridge and server of a protocol"),
    "new": Subcommand("new.command", "write the package of a new robot, described in one class", False),
    "wire": Subcommand("wire.show", "show wire logs", False),
    "view": Subcommand("view.command", "view and steer the running vehicles in a browser"),
}
WITHOUT_ROS = """
ROS 2 is not available here. Besides the commands above, Python programs can use drone_bridge.protocols (the six wire
protocols) and drone_bridge.net (sockets that reconnect). ROS 2 would add the bridges, controllers, recorder and
launch files: on Debian or Ubuntu, 'make setup' in the sources brings it from PyPI; elsewhere, build with colcon.
"""
#: Commands whose first argument selects the imported module.
WITH_SUBCOMMANDS = ("emulate", "operate", "demo")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command named first in `argv` with the rest of it; returns its exit status."""
    open_closed_files()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # as standard error, for a locale without all letters
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        try:
            return _run(_parse(words))
        finally:
            sys.stdout.flush()
    except KeyboardInterrupt:  # during the import, which takes a moment
        return 128 + signal.SIGINT
    except OSError as error:
        if error.errno not in (errno.EPIPE, errno.ENOSPC):
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the flush at interpreter exit
        if error.errno == errno.EPIPE:  # | head
            return 128 + signal.SIGPIPE
        print(f"drone-bridge: the output can't be written: {error.strerror}.", file=sys.stderr)
        return 1


def _parse(words: Sequence[str]) -> argparse.Namespace:
    has_ros = _has_ros()
    here = {name: command for name, command in COMMANDS.items() if has_ros or not command.needs_ros}
    lines = [f"  {name:10} {command.summary}" for name, command in here.items()]
    if not has_ros:
        missing = [name for name in COMMANDS if name not in here]
        lines += ["", f"commands that need ROS 2: {', '.join(missing)}", WITHOUT_ROS.rstrip()]
    parser = CommandParser(
        prog="drone-bridge",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="\n".join(["commands:", *lines]),
    )
    parser.add_argument("--version", action=_PrintVersion, nargs=0, help="show the version and exit")
    parser.add_argument("command", type=known(COMMANDS), help="'drone-bridge <command> --help' explains")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...", help="arguments of the command")
    if words[:1] == ["stop"]:  # the word that comes to mind first
        words = ["hold", *words[1:]]
    return parser.parse_args(words or ["--help"])


class _PrintVersion(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        print(f"drone-bridge {version('drone_bridge')}")
        parser.exit()


def _run(chosen: argparse.Namespace) -> int:
    command = COMMANDS[chosen.command]
    if command.needs_ros and not _has_ros():
        print(
            f"drone-bridge {chosen.command}: this command needs ROS 2, which is not available here.\n{WITHOUT_ROS}",
            file=sys.stderr,
        )
        return REFUSED
    if command.needs_ros:
        complete_environment()
    try:
        module, _, function = command.module.partition(":")
        status: int = getattr(importlib.import_module(f"drone_bridge.tools.{module}"), function or "main")(
            chosen.arguments
        )
    except ModuleNotFoundError as error:
        words = ["drone-bridge", chosen.command]
        if chosen.command in WITH_SUBCOMMANDS:
            words += chosen.arguments[:1]
        print(explain_missing(" ".join(words), error), file=sys.stderr)
        return REFUSED
    return status


def _has_ros() -> bool:
    return find_spec("rclpy") is not None


if __name__ == "__main__":
    sys.exit(main())
