# SPDX-License-Identifier: Apache-2.0
"""Run all five bridges at once under load and faults, and watch their memory, descriptors and threads.

Each bridge is commanded at 20 Hz through a relay that now and then turns into a broken peer (garbage, messages that end
early, a byte per second, silence, floods, resets); emulators are stopped and killed and started again; commands pause.
After each fault the vehicle has to be driven again, and during each pause it has to be neutral. The exit status is 1
when a bridge does not recover, exits, sends what its vehicle can't read, or grows. Ctrl-C or SIGTERM ends it at once,
with the table so far, without checking for growth.
"""

import argparse
import random
import signal
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from campaign import reported
from commander import Commander
from domains import DOMAINS
from pairs import COMMAND_TIMEOUT_S, START_TIMEOUT_S, Pair

from drone_bridge.kind import kinds

SAMPLE_PERIOD_S: Final = 2.0
BACK_S: Final = 60.0  # within which a vehicle is driven again: back-off takes up to 5 s, the rest is a busy machine
NEUTRAL_S: Final = COMMAND_TIMEOUT_S + 2.0  # the rest is a busy machine
SETTLE_S: Final = 30.0  # within which descriptors and threads are back where they were
GROWTH_KIB: Final = 8 * 1024  # from the largest of the first third to the end
MAX_SHOWN: Final = 20  # of what went wrong with one pair
RESTART: Final = "emulator stopped"
KILL: Final = "emulator killed"
PAUSE: Final = "commands paused"
INTERRUPTED: Final = 130  # the exit status, as shells have it


@dataclass
class Usage:
    """What a bridge has used, at one moment."""

    anonymous_kib: int
    descriptors: int
    threads: int


@dataclass
class Record:
    """The results of one pair."""

    pair: Pair
    usage: list[Usage] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)
    slowest_back_s: float = 0.0
    slowest_neutral_s: float = 0.0
    failures: list[str] = field(default_factory=list)
    was_interrupted: bool = False

    def sample(self) -> None:
        bridge = self.pair.bridge
        assert bridge
        try:
            self.usage.append(Usage(bridge.anonymous_kib(), bridge.descriptors(), bridge.threads()))
        except (FileNotFoundError, ProcessLookupError):
            self.fail("the bridge has ended by itself")

    def fail(self, sentence: str) -> None:
        if len(self.failures) < MAX_SHOWN:
            self.failures.append(f"{self.pair.kind.name}, {time.strftime('%H:%M:%S')}: {sentence}")
            print(self.failures[-1], file=sys.stderr, flush=True)


class FaultInjector(threading.Thread):
    """Injects faults into one pair until it is told to stop, and checks that it recovers from each."""

    def __init__(self, record: Record, stopping: threading.Event, seed: int, pause_s: float) -> None:
        super().__init__(name=f"faults of {record.pair.kind.name}", daemon=True)
        self._record, self._pair, self._stopping = record, record.pair, stopping
        self._random = random.Random(f"{seed} {record.pair.kind.name}")
        self._pause_s = pause_s  # between two of them, on average

    def run(self) -> None:
        """Inject them one after the other, each kind equally often."""
        kinds: list[str] = []
        while not self._stopping.wait(self._pause_s * self._random.uniform(0.5, 1.5)):
            if not kinds:
                kinds = [*self._pair.faults, RESTART, KILL, PAUSE]
                self._random.shuffle(kinds)
            kind = kinds.pop()
            self._record.faults[kind] += 1
            try:
                self._make(kind)
            except Exception as error:
                self._fail(f"{kind}: {error!r}")

    def _fail(self, sentence: str) -> None:
        if not self._record.was_interrupted:  # from which nothing can recover
            self._record.fail(sentence)

    def _make(self, kind: str) -> None:
        if kind == PAUSE:
            self._pause()
            return
        if kind in (RESTART, KILL):
            emulator = self._pair.emulator
            assert emulator
            emulator.send(signal.SIGTERM if kind == RESTART else signal.SIGKILL)
            if emulator.wait() is None:
                self._fail("the emulator did not end")
            self._stopping.wait(self._random.uniform(0.0, 3.0))
            self._pair.start_emulator()
        else:
            self._pair.relay.spoil(kind)
            self._stopping.wait(self._random.uniform(1.0, 6.0))
            self._pair.relay.heal()
        healed_s = time.monotonic()
        driven_s = self._pair.is_driven(healed_s, BACK_S)
        if driven_s is None:
            self._fail(f"after {kind} the vehicle was not driven again within {BACK_S:g} s")
        else:
            self._record.slowest_back_s = max(self._record.slowest_back_s, driven_s - healed_s)

    def _pause(self) -> None:
        self._pair.is_commanded = False
        paused_s = time.monotonic()
        neutral_s = self._pair.becomes_neutral(paused_s, NEUTRAL_S)
        if neutral_s is None:
            self._fail(f"no neutral command within {NEUTRAL_S:g} s of the last one on cmd_vel")
        else:
            self._record.slowest_neutral_s = max(self._record.slowest_neutral_s, neutral_s)
        resumed_s = time.monotonic()
        self._pair.is_commanded = True
        if self._pair.is_driven(resumed_s, BACK_S) is None:
            self._fail(f"was not driven within {BACK_S:g} s after a pause of the commands")


def soak(options: argparse.Namespace, scratch: Path) -> list[Record]:
    """Run the soak, and return the record of each pair."""
    domain = random.SystemRandom().choice(DOMAINS)
    records = [Record(Pair(kind, kind.name, domain, scratch)) for kind in kinds().values() if options.only in kind.name]
    commander = Commander([record.pair for record in records], domain)
    stopping = threading.Event()
    try:
        _start(records)
        injectors = [FaultInjector(record, stopping, options.seed, options.pause) for record in records]
        for injector in injectors:
            injector.start()
        end_s = time.monotonic() + options.duration
        while time.monotonic() < end_s:
            stopping.wait(SAMPLE_PERIOD_S)
            for record in records:
                record.sample()
        stopping.set()
        for injector in injectors:
            injector.join()
        _compare(records)
        for record in records:
            if internal := commander.counts.get(record.pair.namespace, Counter())["internal errors"]:
                record.fail(f"{internal} internal errors in its diagnostics")
    except KeyboardInterrupt:
        for record in records:
            record.was_interrupted = True
    finally:
        stopping.set()
        _end(records)
        commander.close()
    return records


def _start(records: list[Record]) -> None:
    started_s = time.monotonic()
    for record in records:
        record.pair.start_emulator()
        record.pair.start_bridge()
    for record in records:
        if record.pair.is_driven(started_s, START_TIMEOUT_S) is None:
            raise TimeoutError(f"{record.pair.kind.name} was not driven: {_output(record.pair)[-2000:]}")
        record.sample()


def _compare(records: list[Record]) -> None:
    """Check for growth, after recovery."""
    for record in records:
        until_s = time.monotonic() + SETTLE_S
        first = record.usage[0]
        while True:
            record.sample()
            last = record.usage[-1]
            grown = [
                f"{now - before} {what} more than at first"
                for what, now, before in (
                    ("descriptors", last.descriptors, first.descriptors),
                    ("threads", last.threads, first.threads),
                )
                if now > before
            ]
            if not grown or time.monotonic() > until_s:
                break
            time.sleep(0.5)
        for sentence in grown:
            record.fail(sentence)
        third = record.usage[: max(2, len(record.usage) // 3)]
        growth_kib = last.anonymous_kib - max(usage.anonymous_kib for usage in third)
        if growth_kib > GROWTH_KIB:
            record.fail(f"has grown by {growth_kib / 1024:.1f} MiB since the first third")


def _end(records: list[Record]) -> None:
    for record in records:
        pair = record.pair
        pair.is_commanded = False
        if pair.bridge and pair.bridge.is_running and (status := pair.bridge.end()) != 0:
            record.fail(f"ended with {status}")
        if "Traceback" in _output(pair):
            record.fail(f"a traceback: {_output(pair).partition('Traceback')[2][:1500]}")
        for sentence in pair.commands.malformed:
            record.fail(f"sent what its vehicle can't read: {sentence}")
        pair.close()


def _output(pair: Pair) -> str:
    return pair.bridge.output if pair.bridge else ""


def table(records: list[Record]) -> str:
    """Return the figures as a Markdown table; of three numbers: at the start, at the peak, at the end."""
    lines = [
        "| bridge | faults | commands | allocated MiB: start, peak of the first third, peak, end "
        "| descriptors: start, peak, end | threads: start, peak, end "
        "| driven again after at most | neutral after at most |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for record in records:
        if not (usage := record.usage):  # interrupted before it was driven
            continue
        memory = [use.anonymous_kib / 1024 for use in usage]
        third = max(memory[: max(2, len(memory) // 3)])
        cells = [
            record.pair.kind.name,
            str(sum(record.faults.values())),
            str(record.pair.commands.count),
            f"{memory[0]:.1f}, {third:.1f}, {max(memory):.1f}, {memory[-1]:.1f}",
            _three([use.descriptors for use in usage]),
            _three([use.threads for use in usage]),
            f"{record.slowest_back_s:.1f} s",
            f"{record.slowest_neutral_s:.2f} s",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _three(values: list[int]) -> str:
    return f"{values[0]}, {max(values)}, {values[-1]}"


def seconds(text: str) -> float:
    """Read a duration: 90, 90s, 10m, 1h."""
    unit = {"s": 1, "m": 60, "h": 3600}.get(text[-1:], 0)
    value = float(text[:-1]) * unit if unit else float(text)
    if not 0 < value < 1e7:
        raise argparse.ArgumentTypeError(f"must be above 0, such as 90s, 10m or 1h, not {text}")
    return value


def main() -> int:
    """Run the soak of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--duration", type=seconds, default=60.0, help="such as 90s, 10m or 1h (%(default)g s)")
    parser.add_argument("--seed", type=int, default=1, help="of the faults (%(default)s)")
    parser.add_argument("--pause", type=float, default=8.0, help="s between faults of a bridge (%(default)s)")
    parser.add_argument("--only", default="", help="bridges whose name contains this")
    arguments = parser.parse_args()
    with reported(f"soaking for {arguments.duration:g} s") as scratch:
        records = soak(arguments, scratch)
        print(table(records))
        faults = sum((record.faults for record in records), Counter[str]())
        print(", ".join(f"{kind}: {count}" for kind, count in sorted(faults.items())))
    if any(record.was_interrupted for record in records):
        return INTERRUPTED
    return 1 if any(record.failures for record in records) else 0


if __name__ == "__main__":
    sys.exit(main())
