# SPDX-License-Identifier: Apache-2.0
"""Landings on a rover with each of its patterns, 20 seeds each: share of good ones, and distance from the centre."""

import argparse
import re
import sys

from seeded_flights import Condition, Flights, fly

PATTERNS = ("stationary", "linear", "circular", "square", "random")
#: Alternating: 5 m up, often with the rover in view, or on the ground, from where it must be searched.
STARTS = ("air", "ground")


def landings(*, use_camera: bool) -> Flights:
    """Return the flights; `use_camera`: by the images only, without the vehicle's landing_pad."""

    def condition(pattern: str) -> Condition:
        return Condition(
            lambda seed: f"--rover {pattern} --seed {seed} --start {STARTS[seed % 2]} --duration 60 --until-landed",
            {"use_camera": use_camera},
        )

    return Flights(
        launch_file="telemetry.launch.xml",
        emulator="telemetry",
        conditions={pattern: condition(pattern) for pattern in PATTERNS},
        ended=re.compile(
            r"touchdown on the (?P<where>rover|ground) at t=(?P<time>[\d.]+) s: position error (?P<error>[\d.]+) m, "
            r"vertical speed (?P<vertical>[\d.]+) m/s, relative speed (?P<relative>[\d.]+) m/s, (?P<verdict>good|bad)"
        ),
        columns={
            "error": "off centre (m)",
            "relative": "across (m/s)",
            "vertical": "downwards (m/s)",
            "time": "touchdown after (s)",
        },
        ready=("Waiting for telemetry", "land_on_pad is ready"),
        at_once=3,
    )


def main(short: bool, *, use_camera: bool = False) -> int:
    """Fly; return 1 if a drone did not land within a minute."""
    return fly(landings(use_camera=use_camera), 2 if short else 20)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="two landings on each")
    parser.add_argument("--use-camera", action="store_true", help="by the images only")
    options = parser.parse_args()
    sys.exit(main(options.short, use_camera=options.use_camera))
