# SPDX-License-Identifier: Apache-2.0
"""Disturb bridges and their emulated vehicles, each with a relay in between, and check that they recover.

    soak     the vehicle's side turns into a broken peer (garbage, floods, silence, ...), or ends; commands pause
    kills    SIGKILL at random moments, of a bridge or its vehicle
    signals  SIGINT and SIGTERM to a bridge at random moments, from its start on
    stalls   SIGSTOP of a bridge that is commanded; the commands end meanwhile

After each round the vehicle has to be driven by the next commands, and to be neutral without. In the end no bridge may
have logged a traceback, counted an internal error, sent what its vehicle can't read, or grown. The exit status is 1 if
any of this fails. Ctrl-C or SIGTERM ends it at once, with the table so far.
"""

import argparse
import contextlib
import random
import re
import signal
import sys
import tempfile
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

from children import heed_signals
from commander import Commander
from domains import DOMAINS
from pairs import COMMAND_TIMEOUT_S, START_TIMEOUT_S, Pair
from programs import is_port, left_behind

from drone_bridge.kind import kinds

MAX_SHOWN = 20  # problems; the others are only counted
NEUTRAL_S = COMMAND_TIMEOUT_S + 2.0  # the rest allows for a busy machine
END_S = 15.0  # from a signal to the exit
WATCHED_S = 3.5  # after a stall: Fast DDS sends again within 3 s what was lost
SAMPLE_PERIOD_S = 2.0
SETTLE_S = 30.0  # within which descriptors and threads are back where they were
GROWTH_KIB = 8 * 1024  # from the largest of the first third to the end
INTERRUPTED = 130  # the exit status, as shells have it


class NotRecoveredError(Exception):
    """What is wrong after a round, as a sentence."""


class Tally:
    """The results of the rounds, by pair and kind of round."""

    def __init__(self) -> None:
        self.took_s: dict[tuple[str, str, str], list[float]] = {}
        """How long each took to be right again, by pair, what was done and its outcome"""
        self.failures: list[str] = []
        self.is_interrupted = False  # what fails from now on is no news
        self.begun = 0
        self._changing = threading.Lock()

    @property
    def count(self) -> int:
        return sum(map(len, self.took_s.values()))

    def begin(self, count: int) -> bool:
        """Return whether to begin one more of so many rounds."""
        with self._changing:
            is_one_left = self.begun < count
            self.begun += is_one_left
            return is_one_left

    def add(self, name: str, what: str, outcome: str, took_s: float) -> None:
        with self._changing:
            self.took_s.setdefault((name, what, outcome), []).append(took_s)

    def fail(self, name: str, sentence: str) -> None:
        with self._changing:
            if self.is_interrupted:
                return
            self.failures.append(f"{name}, {time.strftime('%H:%M:%S')}: {sentence}")
            if len(self.failures) <= MAX_SHOWN:
                print(self.failures[-1], file=sys.stderr, flush=True)

    def table(self) -> str:
        """Return a Markdown table."""
        lines = ["| bridge | what | outcome | count | after: median, maximum |", "|---|---|---|---|---|"]
        for (name, what, outcome), times in sorted(self.took_s.items()):
            lines.append(f"| {name} | {what} | {outcome} | {len(times)} | {median(times):.2f} s, {max(times):.2f} s |")
        return "\n".join(lines)


#: Does something to a pair; returns what, the outcome, and after how long all was well, s. Raises NotRecoveredError.
Round = Callable[[Pair, random.Random], tuple[str, str, float]]


def spoil(pair: Pair, chance: random.Random) -> tuple[str, str, float]:
    """Have the relay be a broken peer for some seconds."""
    fault = chance.choice(pair.faults)
    pair.relay.spoil(fault)
    time.sleep(chance.uniform(1.0, 6.0))
    pair.relay.heal()
    return fault, "driven again", _driven_after(pair, time.monotonic())


def restart_vehicle(
    pair: Pair, chance: random.Random, numbers: Sequence[signal.Signals] = (signal.SIGTERM, signal.SIGKILL)
) -> tuple[str, str, float]:
    """End the emulator, or kill it, and start another one."""
    assert pair.emulator
    number = chance.choice(numbers)
    pair.emulator.send(number)
    if pair.emulator.wait() is None:
        raise NotRecoveredError("the emulator did not end")
    time.sleep(chance.uniform(0.0, 3.0))
    started_s = time.monotonic()
    pair.start_emulator()
    return f"emulator ended by {number.name}", "driven again", _driven_after(pair, started_s)


def pause(pair: Pair, chance: random.Random) -> tuple[str, str, float]:
    """End the commands for a while."""
    time.sleep(chance.uniform(0.0, 1.0))
    pair.is_commanded = False
    neutral_s = pair.becomes_neutral(time.monotonic(), NEUTRAL_S)
    _resume(pair)
    if neutral_s is None:
        raise NotRecoveredError(f"no neutral command within {NEUTRAL_S:g} s of the last one that it was given")
    return "commands paused", "neutral", neutral_s


def kill_vehicle(pair: Pair, chance: random.Random) -> tuple[str, str, float]:
    """Replace the emulator; the new vehicle has to be left neutral as well."""
    done = restart_vehicle(pair, chance, (signal.SIGKILL,))
    pause(pair, chance)
    return done


def kill_bridge(pair: Pair, chance: random.Random) -> tuple[str, str, float]:
    """Kill the bridge. The next one sends neutral before it gets commands, and drives when it gets some."""
    assert pair.bridge
    time.sleep(chance.uniform(0.0, 1.0))
    shared = pair.bridge.shared_memory()
    pair.is_commanded = False
    pair.bridge.send(signal.SIGKILL)
    pair.bridge.wait()
    for file in left_behind(shared):  # which it could not remove itself
        Path(file).unlink(missing_ok=True)
    started_s = time.monotonic()
    bridge = pair.start_bridge()
    neutral_s = _first_word_s(pair, started_s)
    moved = any(not is_neutral for _, is_neutral in pair.commands.since(started_s))
    _resume(pair)
    if neutral_s is None:
        raise NotRecoveredError(f"the next bridge sent no neutral command: {bridge.output[-500:]}")
    if moved:
        raise NotRecoveredError("the next bridge moved the vehicle without a command")
    return "bridge killed", "neutral by the next", neutral_s - started_s


def _first_word_s(pair: Pair, started_s: float) -> float | None:
    """Wait for the next bridge's first neutral command, or until it is connected if none is due.

    A simulator's vehicle may be shared with other clients, and only must not be moved.
    """
    if pair.kind.name != "simulator":
        return pair.commands.wait(True, started_s, START_TIMEOUT_S)
    assert pair.bridge
    while time.monotonic() < started_s + START_TIMEOUT_S:
        if "Connected to" in pair.bridge.output:
            return time.monotonic()
        time.sleep(0.05)
    return None


def interrupt(pair: Pair, chance: random.Random) -> tuple[str, str, float]:
    """Start a bridge and signal it. Once it has printed anything it exits with 0, and neutral as its last command.

    Before that, while modules are imported, the signal itself may end it; before its first line runs, Python prints a
    traceback.
    """
    started_s = time.monotonic()
    bridge = pair.start_bridge()
    is_early = chance.random() < 0.4
    if not is_early:
        _driven_after(pair, started_s)
    time.sleep(chance.uniform(0.0, 2.0 if is_early else 0.5))
    shared, has_spoken = bridge.shared_memory(), bool(bridge.output)
    signalled_s = time.monotonic()
    for _ in range(2 if chance.random() < 0.3 else 1):
        bridge.send(chance.choice((signal.SIGINT, signal.SIGTERM)))
        time.sleep(chance.uniform(0.0, 0.02))
    status = bridge.wait(END_S)
    took_s = time.monotonic() - signalled_s
    what = f"signalled, {'early' if is_early else 'driven'}"
    if status is None:
        bridge.end()
        raise NotRecoveredError(f"{what}: still running after {END_S:g} s, {bridge.signals()}: {bridge.output[-1500:]}")
    is_pythons = not has_spoken and is_from_pythons_start(bridge.output)
    is_by_signal = not has_spoken and -status in (signal.SIGINT, signal.SIGTERM)
    said = pair.commands.since(started_s)
    left = [file for file in left_behind(shared) if not is_port(file)]
    for is_wrong, sentence in (
        (status != 0 and not is_by_signal and not is_pythons, f"ended with {status}: {bridge.output[-1500:]}"),
        ("Traceback" in bridge.output and not is_pythons, f"a traceback: {bridge.output[-1500:]}"),
        (bool(said) and not said[-1][1], f"its last command was not neutral; status {status}"),
        (bool(left), f"left {', '.join(left)}"),
    ):
        if is_wrong:
            raise NotRecoveredError(f"{what}: {sentence}")
    return what, "as Python started" if is_pythons else "by the signal" if is_by_signal else "exited with 0", took_s


def is_from_pythons_start(output: str) -> bool:
    """Return whether the interrupt came before the program's first line: its modules are not in the traceback then."""
    is_interrupted = output.rstrip().endswith(("KeyboardInterrupt", "initialized")) or "init_import_site" in output
    return is_interrupted and not re.search(r"drone_bridge/\w+/[\w/]+\.py", output)


def stall(pair: Pair, chance: random.Random) -> tuple[str, str, float]:
    """Stop the bridge. What it finds in its queues then is somebody's last word, and old: it moves nothing."""
    assert pair.bridge
    if not pair.commands.is_moving:
        _driven_after(pair, time.monotonic())
    time.sleep(chance.uniform(0.0, 0.5))
    pair.bridge.send(signal.SIGSTOP)
    try:
        time.sleep(chance.uniform(2.0, 6.0) - COMMAND_TIMEOUT_S)
        pair.is_commanded = False
        time.sleep(COMMAND_TIMEOUT_S)
        resumed_s = time.monotonic()
    finally:
        pair.bridge.send(signal.SIGCONT)
    time.sleep(WATCHED_S)
    moved_s = [when - resumed_s for when, is_neutral in pair.commands.since(resumed_s) if not is_neutral]
    took_s = _resume(pair)
    if moved_s:
        raise NotRecoveredError(
            f"old commands moved the vehicle {moved_s[0]:.3f} to {moved_s[-1]:.3f} s after the stop"
        )
    return "stopped", "neutral until commanded", took_s


def _driven_after(pair: Pair, since_s: float) -> float:
    """Return after how long the vehicle is driven. Raises NotRecoveredError."""
    driven_s = pair.is_driven(since_s)
    if driven_s is None:
        output = pair.bridge.output if pair.bridge else ""
        raise NotRecoveredError(f"the vehicle was not driven within {START_TIMEOUT_S:g} s: {output[-500:]}")
    return driven_s - since_s


def _resume(pair: Pair) -> float:
    """Command again; return after how long the vehicle is driven. Raises NotRecoveredError."""
    pair.is_commanded = True
    return _driven_after(pair, time.monotonic())


@dataclass(frozen=True)
class Campaign:
    """Rounds, each drawn from these."""

    rounds: tuple[Round, ...]
    has_bridge: bool = True
    """Whether a bridge is started before the first of them"""
    is_watched: bool = False
    """Whether a bridge lives from the first to the last, so that it must not grow"""


CAMPAIGNS = {
    "soak": Campaign((spoil, spoil, spoil, restart_vehicle, pause), is_watched=True),
    "kills": Campaign((kill_vehicle, kill_bridge)),
    "signals": Campaign((interrupt,), has_bridge=False),
    "stalls": Campaign((stall,)),
}
#: Allocated KiB, descriptors, threads.
Usage = tuple[int, int, int]


def grown(usage: Sequence[Usage]) -> list[str]:
    """Return in what a bridge has grown, by what it used from the beginning to the end."""
    if not usage:
        return []
    first, last = usage[0], usage[-1]
    found = [
        f"{now - before} {what} more than at first"
        for what, before, now in (("descriptors", first[1], last[1]), ("threads", first[2], last[2]))
        if now > before
    ]
    growth_kib = last[0] - max(used[0] for used in usage[: max(2, len(usage) // 3)])
    if growth_kib > GROWTH_KIB:
        found.append(f"has grown by {growth_kib / 1024:.1f} MiB since the first third")
    return found


def run(campaign: Campaign, options: argparse.Namespace, scratch: Path) -> Tally:
    """Run so many rounds, or for so long, several pairs at a time."""
    tally, stopping = Tally(), threading.Event()
    domain = random.SystemRandom().choice(DOMAINS)
    pairs = [Pair(kind, kind.name, domain, scratch) for kind in kinds().values() if options.only in kind.name]
    commander = Commander(pairs, domain)
    workers: list[threading.Thread] = []
    usage = {pair: list[Usage]() for pair in pairs}
    try:
        _start(campaign, pairs)
        work = partial(_work, campaign, options, deque(pairs), tally, stopping)
        workers += [threading.Thread(target=work) for _ in pairs[: options.at_once]]
        for worker in workers:
            worker.start()
        while any(worker.is_alive() for worker in workers):
            _sample(campaign, usage, tally)
            workers[0].join(SAMPLE_PERIOD_S)
        settled_s = time.monotonic() + SETTLE_S
        while any(map(grown, usage.values())) and time.monotonic() < settled_s:
            time.sleep(1.0)
            _sample(campaign, usage, tally)
        _judge(campaign, usage, commander, tally)
    except KeyboardInterrupt:
        tally.is_interrupted = True
    finally:
        stopping.set()
        for pair in pairs:
            pair.is_commanded = False
            pair.close()
        commander.close()
        for worker in workers:
            worker.join()
    return tally


def _start(campaign: Campaign, pairs: Sequence[Pair]) -> None:
    for pair in pairs:
        pair.start_emulator()
        if campaign.has_bridge:
            pair.start_bridge()
    for pair in pairs if campaign.has_bridge else ():
        _driven_after(pair, 0.0)


def _work(
    campaign: Campaign, options: argparse.Namespace, idle: deque[Pair], tally: Tally, stopping: threading.Event
) -> None:
    """Do rounds, each with a pair that has none, until there have been enough."""
    end_s = time.monotonic() + (sys.maxsize if options.count else options.duration)
    while not stopping.is_set() and time.monotonic() < end_s and tally.begin(options.count or sys.maxsize):
        pair = idle.popleft()
        chance = random.Random(f"{options.seed} {pair.kind.name} {tally.begun}")
        try:
            tally.add(pair.kind.name, *chance.choice(campaign.rounds)(pair, chance))
        except Exception as error:  # go on with the other rounds
            tally.fail(pair.kind.name, str(error) if isinstance(error, NotRecoveredError) else repr(error))
        idle.append(pair)


def _sample(campaign: Campaign, usage: dict[Pair, list[Usage]], tally: Tally) -> None:
    for pair, used in usage.items():
        if not campaign.is_watched or pair.bridge is None:
            continue
        try:
            used.append((pair.bridge.anonymous_kib(), pair.bridge.descriptors(), pair.bridge.threads()))
        except (FileNotFoundError, ProcessLookupError):
            tally.fail(pair.kind.name, "the bridge has ended by itself")


def _judge(campaign: Campaign, usage: dict[Pair, list[Usage]], commander: Commander, tally: Tally) -> None:
    """Look at what the bridges leave."""
    for pair, used in usage.items():
        name, bridge = pair.kind.name, pair.bridge
        for sentence in grown(used):
            tally.fail(name, sentence)
        if used:
            kib = [allocated for allocated, _, _ in used]
            print(f"{name}: allocated {kib[0] / 1024:.1f} MiB, {max(kib) / 1024:.1f} at most, {kib[-1] / 1024:.1f} now")
        for sentence in pair.commands.malformed:
            tally.fail(name, f"sent what its vehicle can't read: {sentence}")
        if internal := commander.counts.get(pair.namespace, Counter())["internal errors"]:
            tally.fail(name, f"{internal} internal errors in its diagnostics")
        if bridge and campaign.has_bridge:
            if bridge.is_running and (status := bridge.end()) != 0:
                tally.fail(name, f"ended with {status}")
            if "Traceback" in bridge.output:
                tally.fail(name, f"a traceback: {bridge.output.partition('Traceback')[2][:1500]}")


def seconds(text: str) -> float:
    """Read a duration: 90, 90s, 10m, 1h."""
    unit = {"s": 1, "m": 60, "h": 3600}.get(text[-1:], 0)
    value = float(text[:-1]) * unit if unit else float(text)
    if not 0 < value < 1e7:
        raise argparse.ArgumentTypeError(f"must be above 0, such as 90s, 10m or 1h, not {text}")
    return value


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the campaign of the command line, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("campaign", choices=CAMPAIGNS)
    parser.add_argument("--count", type=int, default=0, help="of rounds (without: by the duration)")
    parser.add_argument("--duration", type=seconds, default=60.0, help="such as 90s, 10m or 1h (%(default)g s)")
    parser.add_argument("--seed", type=int, default=1, help="of the rounds (%(default)s)")
    parser.add_argument("--at-once", type=int, default=len(kinds()), help="rounds at the same time (%(default)s)")
    parser.add_argument("--only", default="", help="bridges whose name contains this")
    options = parser.parse_args(arguments)
    heed_signals()
    began_s = time.monotonic()
    print(f"{time.strftime('%Y-%m-%d %H:%M:%S')}: {options.campaign}", flush=True)
    with contextlib.suppress(KeyboardInterrupt), tempfile.TemporaryDirectory(prefix="campaign.") as scratch:
        tally = run(CAMPAIGNS[options.campaign], options, Path(scratch))
    print(
        f"{tally.table()}\n\n{tally.count} rounds in {time.monotonic() - began_s:.0f} s, {len(tally.failures)} failed"
    )
    return INTERRUPTED if tally.is_interrupted else 1 if tally.failures else 0


if __name__ == "__main__":
    sys.exit(main())
