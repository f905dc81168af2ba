# SPDX-License-Identifier: Apache-2.0
"""The `drone-bridge` command: one word for what to do, and the rest for that."""

import argparse
import importlib
import os
import signal
import sys
from collections.abc import Sequence

# Each command is a module with `main(argv) -> exit status`, imported only when it is asked for.
COMMANDS = {
    "demo": ("drone_bridge.tools.demo.command", "show what the package can do, without hardware"),
    "info": ("drone_bridge.tools.bags.info", "tell what a bag holds"),
    "launch": ("drone_bridge.tools.launch.command", "run an XML launch file without launch_ros"),
    "play": ("drone_bridge.tools.playing.command", "publish what a bag holds"),
    "report": ("drone_bridge.tools.reporting.command", "show a bag as one HTML page"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command named first in `argv` with the rest of it; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="drone-bridge",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="commands:\n" + "\n".join(f"  {name:10} {summary}" for name, (_, summary) in COMMANDS.items()),
    )
    parser.add_argument("command", choices=COMMANDS, metavar="command", help="'drone-bridge <command> --help' explains")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...", help="what the command takes")
    try:
        try:
            chosen = parser.parse_args(argv)
            module, _ = COMMANDS[chosen.command]
            status: int = importlib.import_module(module).main(chosen.arguments)
        finally:
            sys.stdout.flush()
    except KeyboardInterrupt:  # during the import, which takes a moment
        return 128 + signal.SIGINT
    except BrokenPipeError:  # | head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is flushed at the end
        return 128 + signal.SIGPIPE
    return status


if __name__ == "__main__":
    sys.exit(main())
