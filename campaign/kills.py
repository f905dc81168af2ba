# SPDX-License-Identifier: Apache-2.0
"""SIGKILL of programs and of vehicles: the restarted one stops the vehicle, and moves none without a command."""

from disturbing import Plan, run


def main(short: bool) -> int:
    """Disturb them, and print the number of failures."""
    return run(Plan("kills", rounds=2) if short else Plan("kills", rounds=10))
