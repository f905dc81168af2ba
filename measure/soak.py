# SPDX-License-Identifier: Apache-2.0
"""Broken peers, vehicles that exit, and pauses of commands, for each program: it recovers, and does not grow."""

from disturbing import Plan, run


def main(short: bool) -> int:
    """Disturb them, and print the number of failures."""
    return run(Plan("soak", seconds=30.0, at_once=4) if short else Plan("soak", seconds=600.0, at_once=6))
