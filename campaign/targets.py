# SPDX-License-Identifier: Apache-2.0
"""Flights to a red sphere 4 to 12 m away in 20 seeded worlds, with immediate replies and in lockstep: success rate."""

import argparse
import re
import sys

from seeded_flights import Condition, Flights, fly

#: In lockstep each frame waits for its command, so the testbed does not need real time.
PACES = {"latest": "--realtime", "lockstep": "--fast"}


def _condition(mode: str, pace: str) -> Condition:
    return Condition(
        lambda seed: f"--role connect --seed {seed} {pace} --once --until-reached --duration 40",
        {"testbed_bridge_role": "listen", "testbed_sync": mode, "stamp_source": "wire"},
    )


TARGETS = Flights(
    launch_file="testbed.launch.xml",
    emulator="testbed",
    conditions={mode: _condition(mode, pace) for mode, pace in PACES.items()},
    ended=re.compile(r"target reached at t=(?P<time>[\d.]+) s"),
    columns={"time": "reached after (s)"},
    ready=("Waiting for a peer",),
    at_once=1,
)


def main(short: bool) -> int:
    """Fly; return 1 if a drone did not reach its target within 40 s of the testbed's time."""
    return fly(TARGETS, 2 if short else 20)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="two worlds each")
    sys.exit(main(parser.parse_args().short))
