# SPDX-License-Identifier: Apache-2.0
"""SIGINT and SIGTERM to each program, including its start: its last command is neutral."""

from disturbing import Plan, run


def main(short: bool) -> int:
    """Disturb them, and print the number of failures."""
    return run(Plan("signals", rounds=2) if short else Plan("signals", rounds=10))
