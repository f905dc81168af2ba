# SPDX-License-Identifier: Apache-2.0
"""Ends of programs and vehicles: a bridge that dies or hangs stops its vehicle, a restarted one moves none by itself.

`MEASURE_ROUNDS=180 MEASURE_ONLY='_bridge$'` gives 20 rounds of each of the nine kinds for each bridge.
"""

from disturbing import Plan, run


def main(short: bool) -> int:
    """Disturb them, and print the number of failures."""
    return run(Plan("kills", rounds=9) if short else Plan("kills", rounds=18))
