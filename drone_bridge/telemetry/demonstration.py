# SPDX-License-Identifier: Apache-2.0
"""The landing challenge in demonstrations: landings on a moving rover, and its drone under other operators."""

import re
from collections.abc import Sequence

from drone_bridge.programs.demonstration import Condition, Demonstration, Flights, Position, Row
from drone_bridge.telemetry.emulator.scene import PAD_HEIGHT

PATTERNS = ("stationary", "linear", "circular", "square", "random")
#: In turn: 5 m up, often with the rover in view, or on the ground, where it has to be searched for.
STARTS = ("air", "ground")


def _pads(_: int, rows: Sequence[Row]) -> Sequence[Position]:
    return [(float(row["rover_x"]), float(row["rover_y"]), PAD_HEIGHT) for row in rows]


def _condition(pattern: str) -> Condition:
    return Condition(
        {},
        lambda seed: f"--rover {pattern} --seed {seed} --start {STARTS[seed % 2]} --duration 60 --until-landed",
    )


DEMONSTRATION = Demonstration(
    flights=Flights(
        story="A drone without GPS takes off, searches for a moving rover with its camera, follows it and lands on it.",
        done=re.compile(
            r"touchdown on the (?P<where>rover|ground) at t=(?P<time>[\d.]+) s: position error (?P<error>[\d.]+) m, "
            r"vertical speed (?P<vertical>[\d.]+) m/s, relative speed (?P<relative>[\d.]+) m/s, (?P<verdict>good|bad)"
        ),
        columns={
            "error": "off centre (m)",
            "relative": "across (m/s)",
            "vertical": "downwards (m/s)",
            "time": "touchdown after (s)",
        },
        arguments={"use_camera": True, "rover_pattern": "circular", "landing_start": "ground", "landing_seed": 7},
        picture="landing.png",
        targets=_pads,
        seed=7,
        series="landings",
        conditions={pattern: _condition(pattern) for pattern in PATTERNS},
        ready=("Waiting for telemetry", "land_on_pad is ready"),
        at_once=3,
    ),
    arguments={"gusts": 0.0},
    reports=frozenset({"gyroscope"}),
    needs="gyroscope",
    server_parameters={"command_output": "cmd_vel"},
)
