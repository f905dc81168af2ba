# SPDX-License-Identifier: Apache-2.0
"""Stop each bridge with SIGSTOP for some seconds while it is commanded at 20 Hz, and let it go on.

The commands end while it is stopped, so what it finds in its queues then is somebody's last word, and old: nothing may
move the vehicle before commands come again, which it has to follow. The exit status is 1 if any of this fails.
"""

import random
import signal
import sys
import time
from typing import Final

import campaign
from campaign import Tally
from pairs import COMMAND_TIMEOUT_S, START_TIMEOUT_S, Pair

SHORTEST_S: Final = 2.0
LONGEST_S: Final = 6.0
WATCHED_S: Final = 3.5  # afterwards: Fast DDS sends again within 3 s what was lost


def set_up(pair: Pair) -> None:
    """Start both programs."""
    pair.start_emulator()
    pair.start_bridge()


def stall(pair: Pair, chance: random.Random, tally: Tally) -> None:
    """Do one round."""
    name = pair.kind.name
    assert pair.bridge
    pair.is_commanded = True
    if not pair.commands.is_moving and pair.is_driven(time.monotonic()) is None:
        tally.fail(name, f"was not driven within {START_TIMEOUT_S:g} s: {pair.bridge.output[-500:]}")
    time.sleep(chance.uniform(0.0, 0.5))
    moved_s = moved_after_stop(pair, chance.uniform(SHORTEST_S, LONGEST_S))
    if moved_s:
        tally.fail(name, f"old commands moved the vehicle {moved_s[0]:.3f} to {moved_s[-1]:.3f} s after the stop")
    commanded_s = time.monotonic()
    pair.is_commanded = True
    driven_s = pair.is_driven(commanded_s)
    if driven_s is None:
        tally.fail(name, f"was not driven again within {START_TIMEOUT_S:g} s: {pair.bridge.output[-500:]}")
    tally.add(name, "stopped", "MOVED" if moved_s else "neutral", driven_s and driven_s - commanded_s)


def moved_after_stop(pair: Pair, stopped_s: float) -> list[float]:
    """Stop a commanded bridge; return how long after it went on each command came that moved the vehicle."""
    assert pair.bridge
    pair.bridge.send(signal.SIGSTOP)
    try:
        time.sleep(stopped_s - COMMAND_TIMEOUT_S)
        pair.is_commanded = False
        time.sleep(COMMAND_TIMEOUT_S)
        resumed_s = time.monotonic()
    finally:
        pair.bridge.send(signal.SIGCONT)
    time.sleep(WATCHED_S)
    return [when - resumed_s for when, is_neutral in pair.commands.since(resumed_s) if not is_neutral]


if __name__ == "__main__":
    sys.exit(campaign.main(__doc__, "stalls", set_up, stall, "driven by the next commands after"))
