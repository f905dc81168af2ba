# SPDX-License-Identifier: Apache-2.0
"""`drone-bridge hold` and `drone-bridge resume`: hold or resume vehicles from a shell.

To hold, a wish is written to a file before ROS is imported, which takes longer than a bridge needs to read it.
"""

import os
import re
import sys
import time
import uuid
from collections.abc import Sequence

from drone_bridge.ros.hold.file_writer import FileWriter
from drone_bridge.ros.hold.wish_file import EVERY_NODE, FILE_TIMEOUT_S, FiledWish, WishFile
from drone_bridge.ros.process.environment import domain_of
from drone_bridge.stop_signals import handle_stop_signals, ignore_stop_signals
from drone_bridge.tools.command_parser import CommandParser
from drone_bridge.tools.hold import REASON

#: Shortest time from the wish to its end, s, however the command ends: a running bridge looks each 0.1 s.
KEPT_S = FILE_TIMEOUT_S + 0.3


def hold(argv: Sequence[str]) -> int:
    """Hold the vehicles named in `argv`, or all. Returns the exit status."""
    wanted = _parsed(argv, "hold", "Hold vehicles: they stay neutral and ignore commands until a person resumes them.")
    handle_stop_signals(_interrupt)
    file = FileWriter(WishFile(domain_of(os.environ)).keep, lambda sentence: print(sentence, file=sys.stderr))
    names = [f"/{each.strip('/')}" for each in wanted] or [EVERY_NODE]
    file.keep([FiledWish(name, uuid.uuid4().hex, REASON) for name in names])  # also for nodes that start meanwhile
    wished_s = time.monotonic()
    try:
        file.wait(FILE_TIMEOUT_S)
        return _set_all(wanted, is_held=True)
    finally:
        ignore_stop_signals()  # a second Ctrl-C, too, ends the wish no earlier
        time.sleep(max(0.0, wished_s + KEPT_S - time.monotonic()))
        file.keep([])
        file.wait(FILE_TIMEOUT_S)


def resume(argv: Sequence[str]) -> int:
    """Resume the vehicles named in `argv`, or all. Returns the exit status."""
    return _set_all(_parsed(argv, "resume", "End the hold of vehicles: they follow commands again."), is_held=False)


def _parsed(argv: Sequence[str], verb: str, description: str) -> list[str]:
    """Return the names of the wanted vehicles; none for all."""
    parser = CommandParser(prog=f"drone-bridge {verb}", description=description)
    parser.add_argument("vehicle", nargs="*", help="a namespace, such as /drone, or a node; all vehicles by default")
    parser.add_argument("--all", action="store_true", help="all vehicles, even if some are named")
    words = parser.parse_args(argv)
    wanted: list[str] = [] if words.all or "all" in words.vehicle else words.vehicle
    wrong = [each for each in wanted if not re.fullmatch(r"/?([A-Za-z_]\w*/)*([A-Za-z_]\w*)?", each, re.ASCII)]
    if wrong:
        sentence = f"{wrong[0]!r} is no vehicle's name: letters, digits, underscores and slashes, no digit first"
        if verb == "resume" or wrong == wanted:
            parser.error(sentence)
        print(f"{parser.prog}: {sentence}", file=sys.stderr)  # the others are held all the same
    return wanted


def _set_all(wanted: Sequence[str], *, is_held: bool) -> int:
    from drone_bridge.tools.hold.calls import set_all  # which imports ROS

    return set_all(wanted, is_held=is_held)


def _interrupt() -> None:
    raise KeyboardInterrupt
