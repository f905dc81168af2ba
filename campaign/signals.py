# SPDX-License-Identifier: Apache-2.0
"""SIGINT and SIGTERM to every program, from its start on: its last command is neutral."""

from disturbing import Plan, run


def main(short: bool) -> int:
    """Disturb them, and print how often what went wrong."""
    return run(Plan("signals", rounds=2) if short else Plan("signals", rounds=10))
