# SPDX-License-Identifier: Apache-2.0
"""SIGSTOP of every program for 2 to 4 s while it is commanded: nothing old moves a vehicle after it.

With CAMPAIGN_BLOCKED=1 in the environment while their standard output and error are full.
"""

from disturbing import Plan, run


def main(short: bool) -> int:
    """Disturb them, and print how often what went wrong."""
    return run(Plan("stalls", rounds=1) if short else Plan("stalls", rounds=10))
