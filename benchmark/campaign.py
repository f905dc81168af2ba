# SPDX-License-Identifier: Apache-2.0
"""What the campaigns `kills`, `signals` and `stalls` share: rounds with several pairs at a time, and their table."""

import argparse
import contextlib
import random
import sys
import tempfile
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Final

from children import heed_signals
from commander import Commander
from domains import DOMAINS
from pairs import Pair

from drone_bridge.kind import kinds

MAX_SHOWN: Final = 20  # problems; the others are only counted


class Tally:
    """The results of the rounds, by pair and kind of round."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()
        self.took_s: dict[tuple[str, str], list[float]] = {}
        self.outcomes: dict[tuple[str, str], Counter[str]] = {}
        self.failures: list[str] = []
        self._changing = threading.Lock()

    def add(self, name: str, what: str, outcome: str, took_s: float | None) -> None:
        with self._changing:
            self.counts[name, what] += 1
            self.outcomes.setdefault((name, what), Counter())[outcome] += 1
            if took_s is not None:
                self.took_s.setdefault((name, what), []).append(took_s)

    def fail(self, name: str, sentence: str) -> None:
        with self._changing:
            self.failures.append(f"{name}, {time.strftime('%H:%M:%S')}: {sentence}")
            if len(self.failures) <= MAX_SHOWN:
                print(self.failures[-1], file=sys.stderr, flush=True)

    def table(self, took: str) -> str:
        """Return a Markdown table; `took` is the heading of the times."""
        lines = [f"| bridge | what | count | outcome | {took}: median, maximum |", "|---|---|---|---|---|"]
        for key, count in sorted(self.counts.items()):
            outcomes = ", ".join(f"{outcome}: {number}" for outcome, number in sorted(self.outcomes[key].items()))
            times = self.took_s.get(key)
            shown = f"{median(times):.2f} s, {max(times):.2f} s" if times else ""
            lines.append(f"| {key[0]} | {key[1]} | {count} | {outcomes} | {shown} |")
        return "\n".join(lines)


Round = Callable[[Pair, random.Random, Tally], None]


def run(
    set_up: Callable[[Pair], None],
    do_round: Round,
    options: argparse.Namespace,
    scratch: Path,
) -> Tally:
    """Run the rounds, several at a time; Ctrl-C or SIGTERM stops after those in progress."""
    tally = Tally()
    domain = random.SystemRandom().choice(DOMAINS)
    pairs = [Pair(kind, kind.name, domain, scratch) for kind in kinds().values() if options.only in kind.name]
    commander = Commander(pairs, domain)
    chances = {pair: random.Random(f"{options.seed} {pair.kind.name}") for pair in pairs}
    idle = deque(pairs)
    left = options.count
    taking = threading.Lock()

    def work() -> None:
        nonlocal left
        while True:
            with taking:
                if left <= 0:
                    return
                left -= 1
                pair = idle.popleft()
            try:
                do_round(pair, chances[pair], tally)
            except Exception as error:  # go on with the other rounds
                tally.fail(pair.kind.name, f"the round failed: {error!r}")
            for sentence in pair.commands.malformed:
                tally.fail(pair.kind.name, f"sent what its vehicle can't read: {sentence}")
            pair.commands.malformed.clear()
            idle.append(pair)

    try:
        for pair in pairs:
            set_up(pair)
        workers = [threading.Thread(target=work) for _ in pairs[: options.at_once]]
        for worker in workers:
            worker.start()
        try:
            for worker in workers:
                worker.join()
        except KeyboardInterrupt:
            with taking:
                left = 0
            for worker in workers:
                worker.join()
    finally:
        for pair in pairs:
            pair.is_commanded = False
            pair.close()
        commander.close()
    return tally


def main(
    description: str | None,
    what: str,
    set_up: Callable[[Pair], None],
    do_round: Round,
    took: str,
) -> int:
    """Run the campaign of the command line, and print the table; `took` is the heading of the times."""
    options = _arguments(description)
    with reported(f"{options.count} {what}") as scratch:
        tally = run(set_up, do_round, options, scratch)
        print(tally.table(took))
    return 1 if tally.failures else 0


def _arguments(description: str | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--count", type=int, default=20, help="of rounds (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the moments (%(default)s)")
    parser.add_argument("--at-once", type=int, default=2, help="rounds at the same time (%(default)s)")
    parser.add_argument("--only", default="", help="bridges whose name contains this")
    return parser.parse_args()


@contextlib.contextmanager
def reported(what: str) -> Iterator[Path]:
    """Print when it begins and ends, yield a folder for the programs' output, and handle SIGINT and SIGTERM."""
    heed_signals()
    began_s = time.monotonic()
    print(f"{time.strftime('%Y-%m-%d %H:%M:%S')}: {what}", flush=True)
    with tempfile.TemporaryDirectory(prefix="campaign.") as scratch:
        yield Path(scratch)
    print(f"{time.strftime('%Y-%m-%d %H:%M:%S')}: over, after {time.monotonic() - began_s:.0f} s", flush=True)
