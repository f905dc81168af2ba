# SPDX-License-Identifier: Apache-2.0
"""Interrupt or terminate each bridge at random moments, from its start on, and check how it exits.

Once a bridge has printed anything it has to exit with 0 within 15 s, whatever it was doing, with neutral as its last
command, without a traceback, and without leaving files in /dev/shm. Before that, while modules are imported, the signal
itself may end it; before its first line runs, Python prints a traceback. The exit status is 1 if any of this fails.
"""

import random
import re
import signal
import sys
import time
from typing import Final

import campaign
from campaign import Tally
from pairs import Pair
from programs import Program, is_port, left_behind

END_S: Final = 15.0
EARLY_S: Final = 2.0  # moments from the start of the process on
LATE_S: Final = 0.5  # moments after the vehicle is driven
SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


def set_up(pair: Pair) -> None:
    """Start the vehicle, which stays."""
    pair.start_emulator()


def interrupt(pair: Pair, chance: random.Random, tally: Tally) -> None:
    """Do one round."""
    name = pair.kind.name
    started_s = time.monotonic()
    bridge = pair.start_bridge()
    is_early = chance.random() < 0.4
    if is_early:
        time.sleep(chance.uniform(0.0, EARLY_S))
    elif pair.is_driven(started_s) is None:
        tally.fail(name, f"was not driven: {bridge.output[-500:]}")
    else:
        time.sleep(chance.uniform(0.0, LATE_S))
    numbers = [chance.choice(SIGNALS) for _ in range(2 if chance.random() < 0.3 else 1)]
    shared = bridge.shared_memory()
    has_spoken = bool(bridge.output)
    signalled_s = time.monotonic()
    for number in numbers:
        bridge.send(number)
        time.sleep(chance.uniform(0.0, 0.02))
    what = f"{'early' if is_early else 'driven'}, {' and '.join(number.name for number in numbers)}"
    status = bridge.wait(END_S)
    took_s = time.monotonic() - signalled_s
    if status is None:
        tally.fail(name, f"{what}: still running after {END_S:g} s: {_stacks(bridge)} {bridge.output[-1500:]}")
        bridge.end()
    is_pythons = not has_spoken and is_from_pythons_start(bridge.output)
    is_well = status == 0 or (not has_spoken and (_is_by(status) or is_pythons))
    if status is not None and not is_well:
        tally.fail(name, f"{what}: ended with {status}: {bridge.output[-1500:]}")
    if "Traceback" in bridge.output and not is_pythons:
        tally.fail(name, f"{what}: a traceback: {bridge.output[-1500:]}")
    said = pair.commands.since(started_s)
    if said and not said[-1][1]:
        tally.fail(name, f"{what}: its last command was not neutral; status {status}")
    if left := [file for file in left_behind(shared) if not is_port(file)]:
        tally.fail(name, f"{what}: left {', '.join(left)}")
    outcome = "as Python started" if is_pythons else "by the signal" if is_well and status != 0 else str(status)
    tally.add(name, "early" if is_early else "driven", outcome, took_s)


def is_from_pythons_start(output: str) -> bool:
    """Return whether the interrupt came before the program's first line: its modules are not in the traceback then."""
    is_interrupted = output.rstrip().endswith(("KeyboardInterrupt", "initialized")) or "init_import_site" in output
    return is_interrupted and not re.search(r"drone_bridge/\w+/[\w/]+\.py", output)


def _is_by(status: int | None) -> bool:
    return status is not None and -status in SIGNALS


def _stacks(bridge: Program) -> str:
    """Return its number of threads and its signal masks."""
    return f"{bridge.threads()} threads, signals {bridge.signals()}"


if __name__ == "__main__":
    sys.exit(campaign.main(__doc__, "signals", set_up, interrupt, "ended after"))
