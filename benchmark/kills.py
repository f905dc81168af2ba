# SPDX-License-Identifier: Apache-2.0
"""Kill a bridge or its emulator with SIGKILL at random moments, and check that the other side recovers.

A bridge whose vehicle was killed has to drive the next one, and to leave it neutral when commands end. After a bridge
was killed, the next one has to send neutral before it gets commands, and then to drive; a simulator's vehicle, which
may be shared with other clients, only must not be moved before that. The exit status is 1 if any of this fails.
"""

import random
import signal
import sys
import time
from pathlib import Path
from typing import Final

import campaign
from campaign import Tally
from pairs import COMMAND_TIMEOUT_S, START_TIMEOUT_S, Pair
from programs import left_behind

NEUTRAL_S: Final = COMMAND_TIMEOUT_S + 2.0  # the rest allows for a busy machine
MOMENT_S: Final = 1.0  # after it is driven, at most


def set_up(pair: Pair) -> None:
    """Start both programs."""
    pair.start_emulator()
    pair.start_bridge()


def kill(pair: Pair, chance: random.Random, tally: Tally) -> None:
    """Do one round."""
    name = pair.kind.name
    if not pair.commands.is_moving and pair.is_driven(time.monotonic()) is None:
        tally.fail(name, "was not driven before the kill")
    time.sleep(chance.uniform(0.0, MOMENT_S))
    if chance.random() < 0.5:
        _kill_emulator(pair, chance, tally)
    else:
        _kill_bridge(pair, tally)


def _kill_emulator(pair: Pair, chance: random.Random, tally: Tally) -> None:
    name = pair.kind.name
    assert pair.emulator
    pair.emulator.send(signal.SIGKILL)
    pair.emulator.wait()
    time.sleep(chance.uniform(0.0, 1.0))
    started_s = time.monotonic()
    pair.start_emulator()
    driven_s = pair.is_driven(started_s)
    if driven_s is None:
        tally.fail(name, f"a new vehicle was not driven within {START_TIMEOUT_S:g} s")
    pair.is_commanded = False
    if pair.becomes_neutral(time.monotonic(), NEUTRAL_S) is None:
        tally.fail(name, f"a new vehicle was not neutral {NEUTRAL_S:g} s after the last command")
    _resume(pair)
    outcome = "recovered" if driven_s else "NOT RECOVERED"
    tally.add(name, "emulator killed", outcome, driven_s - started_s if driven_s else None)


def _kill_bridge(pair: Pair, tally: Tally) -> None:
    name = pair.kind.name
    assert pair.bridge
    shared = pair.bridge.shared_memory()
    pair.is_commanded = False
    pair.bridge.send(signal.SIGKILL)
    pair.bridge.wait()
    _free(shared)
    started_s = time.monotonic()
    bridge = pair.start_bridge()
    neutral_s = _first_word_s(pair, started_s)
    if neutral_s is None:
        tally.fail(
            name, f"the next bridge sent no neutral command within {START_TIMEOUT_S:g} s: {bridge.output[-500:]}"
        )
    elif any(not is_neutral for _, is_neutral in pair.commands.since(started_s)):
        tally.fail(name, "the next bridge moved the vehicle without a command")
    is_driven = _resume(pair)
    if not is_driven:
        tally.fail(name, f"the next bridge did not drive within {START_TIMEOUT_S:g} s: {bridge.output[-500:]}")
    outcome = "recovered" if neutral_s and is_driven else "NOT RECOVERED"
    tally.add(name, "bridge killed", outcome, neutral_s - started_s if neutral_s else None)


def _resume(pair: Pair) -> bool:
    """Command again, and return whether the vehicle is driven."""
    resumed_s = time.monotonic()
    pair.is_commanded = True
    return pair.is_driven(resumed_s) is not None


def _first_word_s(pair: Pair, started_s: float) -> float | None:
    """Wait for the next bridge's first neutral command, or until it is connected if none is due."""
    if pair.kind.name != "simulator":
        return pair.commands.wait(True, started_s, START_TIMEOUT_S)
    assert pair.bridge
    while time.monotonic() < started_s + START_TIMEOUT_S:
        if "Connected to" in pair.bridge.output:
            return time.monotonic()
        time.sleep(0.05)
    return None


def _free(files: set[str]) -> None:
    """Remove the shared memory of the killed process, which it could not remove itself."""
    for file in left_behind(files):
        Path(file).unlink(missing_ok=True)


if __name__ == "__main__":
    sys.exit(campaign.main(__doc__, "kills", set_up, kill, "driven again, or neutral by the next bridge, after"))
