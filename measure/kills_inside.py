# SPDX-License-Identifier: Apache-2.0
"""SIGKILL of bridges while they send: their vehicles get whole messages, and then neutral from the child process.

`make measure STEPS=kills_inside` kills each bridge 40 times: more than 200 kills in all.
"""

from disturbing import Plan, run


def main(short: bool) -> int:
    """Kill them, and print the number of failures."""
    return run(Plan("kills_inside", rounds=3) if short else Plan("kills_inside", rounds=40))
