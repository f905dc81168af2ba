# SPDX-License-Identifier: Apache-2.0
"""Mutations of conversations and captures for each codec in both roles: they yield events or RemoteProtocolError.

Environment variables: CAMPAIGN_INPUTS, the number of mutations for each; CAMPAIGN_SEED, another seed; CAMPAIGN_ONLY, a
part of the names of codecs and roles.
"""

import os
import time

from fuzzing import run, targets
from step import CRASHED, OK

MAX_SHOWN = 20


def main(short: bool) -> int:
    """Feed the mutations, and print other exceptions."""
    inputs = int(os.environ.get("CAMPAIGN_INPUTS", "2000" if short else "200000"))
    seed, only = int(os.environ.get("CAMPAIGN_SEED", "1")), os.environ.get("CAMPAIGN_ONLY", "")
    found, count, slowest_s = list[str](), 0, 0.0
    print(f"{'codec and role':<30} {'inputs':>9} {'refused':>9} {'escaped':>8} {'slowest':>10} {'per second':>11}")
    for target in (each for each in targets() if only in each.name):
        began_s = time.perf_counter()
        refused, longest_s, wrong = run(target, inputs, seed)
        rate, slowest = inputs / (time.perf_counter() - began_s), f"{1000 * longest_s:.1f} ms"
        print(f"{target.name:<30} {inputs:>9} {refused:>9} {len(wrong):>8} {slowest:>10} {rate:>11.0f}", flush=True)
        count += 1
        found += wrong
        slowest_s = max(slowest_s, longest_s)
    print("\n".join(found[:MAX_SHOWN]))
    print(
        f"{inputs} inputs to each of {count} codecs and roles: {len(found)} escaped, slowest {1000 * slowest_s:.1f} ms"
    )
    return CRASHED if found else OK
