# SPDX-License-Identifier: Apache-2.0
"""Broken peers, vehicles that end, and commands that pause, for every program: it recovers, and does not grow."""

from disturbing import Plan, run


def main(short: bool) -> int:
    """Disturb them, and print how often what went wrong."""
    return run(Plan("soak", seconds=30.0, at_once=4) if short else Plan("soak", seconds=600.0, at_once=6))
