# SPDX-License-Identifier: Apache-2.0
"""SIGSTOP of each program for 2 to 4 s while it is commanded: no stale command moves a vehicle afterwards.

With MEASURE_BLOCKED=1 in the environment, their standard output and error are full meanwhile.
"""

from disturbing import Plan, run


def main(short: bool) -> int:
    """Disturb them, and print the number of failures."""
    return run(Plan("stalls", rounds=1) if short else Plan("stalls", rounds=10))
