# SPDX-License-Identifier: Apache-2.0
"""Lives of a night, by chance: night.py [--hours H] [--seed S] [--limit N] [KIND...]

Each life is of one kind and one seed, and lasts for an hour. For each life that breaks an invariant it prints the seed,
the shortest prefix of its acts that still breaks it, and the last two minutes. Exit status 1 after such a life.
"""

import argparse
import os
import sys
import time
from collections import Counter
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent / "support")]
if os.environ.get("PYTHONHASHSEED") != "0":  # the order of sets belongs to a life
    os.environ["PYTHONHASHSEED"] = "0"
    os.execv(sys.executable, [sys.executable, *sys.argv])

from home import live  # noqa: E402
from kinds import KINDS  # noqa: E402
from record import told  # noqa: E402

#: Mean times between two disturbances, s, of which each seed has one.
MEANS_S = (30.0, 60.0, 120.0, 600.0, float("inf"))
LIFE_H = 1.0
#: Time after that of the fault for which a shorter life goes on, s.
LONGER_S = 120.0


def mean_of(seed):
    return MEANS_S[seed % len(MEANS_S)]


def shortest(kind, seed, fault, most):
    """Return the smallest number of acts that still breaks the same invariant, by halving, and that life's end."""
    low, high, best = 0, most, None
    while low < high:
        middle = (low + high) // 2
        home, other = live(KINDS[kind], seed, (fault.at_s + LONGER_S) / 3600.0, mean_s=mean_of(seed), limit=middle)
        if other and other.row == fault.row:
            high, best = middle, (home, other)
        else:
            low = middle + 1
    return high, best


def report(kind, seed, home, fault):
    print(f"{kind} seed {seed}: {fault}")
    number, best = shortest(kind, seed, fault, home.acts.number)
    home, fault = best or (home, fault)
    print(f"the first {number} acts suffice: make lives K={kind} SEED={seed} LIMIT={number}\n{fault}")
    print(told(home).rstrip(), flush=True)


def report_finds(kind, seed, truth, checks):
    """Print what several actors could not expect, with its first time in this life. Return whether there is any."""
    checks.update(truth.checks)
    for key, (at_s, number, sentence) in truth.first.items():
        print(
            f"{kind} seed {seed}: {truth.finds[key]} times {key}, first at {at_s:.1f} s (act {number}): {sentence}",
            flush=True,
        )
    return bool(truth.first)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hours", type=float, default=1.0, help="virtual hours of each kind (%(default)s)")
    parser.add_argument("--seed", type=int, help="first seed; default: by the time")
    parser.add_argument("--limit", type=int, help="number of acts of a single life")
    parser.add_argument("--healthy", action="store_true", help="drones only fly, in wind up to 4 m/s: counts doubts")
    parser.add_argument("--several", action="store_true", help="several actors at once, each with a clock of his own")
    parser.add_argument("kinds", nargs="*", metavar="KIND", help="all, or some of: " + ", ".join(KINDS))
    options = parser.parse_args()
    if unknown := {*options.kinds} - {*KINDS}:  # choices would refuse none
        parser.error(f"{' '.join(unknown)} must be of {', '.join(KINDS)}")
    first = int(time.time()) if options.seed is None else options.seed
    has_failed, several = False, {"are_several": True} if options.several else {}
    for kind in options.kinds or KINDS:
        lived_h, faults, began_s, checks, seed = 0.0, 0, time.process_time(), Counter(), first
        while lived_h < options.hours - 1e-6:
            hours = min(LIFE_H, options.hours - lived_h)
            wanted = {"mean_s": mean_of(seed), "limit": options.limit, "is_healthy": options.healthy, **several}
            home, fault = live(KINDS[kind], seed, hours, **wanted)
            lived_h, faults = lived_h + (home.life.lived_s / 3600.0 or LIFE_H), faults + bool(fault)
            checks.update(home.invariants.checks)
            if options.several:
                has_failed |= report_finds(kind, seed, home.user.truth, checks)
            checks["doubts"] += home.invariants.doubts
            if fault and options.healthy:
                print(f"{kind} seed {seed}: {fault}", flush=True)
            elif fault:
                report(kind, seed, home, fault)
            if options.limit is not None:
                break
            seed += 1
        spent_s = time.process_time() - began_s
        speed = f"{lived_h / max(spent_s, 1e-3):.3f} h per CPU s"
        print(f"{kind}: {lived_h:.2f} hours, {faults} faults, {speed}; {dict(checks)}", flush=True)
        has_failed |= faults > 0
    return int(has_failed)


if __name__ == "__main__":
    sys.exit(main())
