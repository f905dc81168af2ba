# SPDX-License-Identifier: Apache-2.0
"""The page about the landing emulator says what is so."""

import importlib
import re
from operator import attrgetter
from pathlib import Path

import pytest

from drone_bridge.telemetry.emulator.__main__ import parse

PAGE = (Path(__file__).parent.parent / "docs" / "telemetry.md").read_text()
PAGE = PAGE.partition("\n## The emulator\n")[2].partition("\n## ")[0]
MODULES = [
    importlib.import_module(f"drone_bridge.telemetry.emulator.{name}")
    for name in ("scene", "sensors", "world", "flight")
]
CONSTANTS = re.findall(r"^\| `([A-Z][\w.]+)` \| (\S+)", PAGE, re.MULTILINE)


@pytest.mark.parametrize(("name", "value"), CONSTANTS)
def test_constants_match_the_page(name, value):
    head = name.partition(".")[0]
    (found,) = {attrgetter(name)(module) for module in MODULES if hasattr(module, head)}
    assert str(found) == value


def test_every_constant_that_the_page_speaks_of_is_in_its_tables():
    spoken_of = set(re.findall(r"`([A-Z][A-Z_]{4,})`", PAGE))
    assert spoken_of <= {name for name, _ in CONSTANTS}
    assert len(CONSTANTS) >= 14


def test_options_match_the_page(capsys):
    with pytest.raises(SystemExit):
        parse(["--help"])
    known = set(re.findall(r"--[\w-]+", capsys.readouterr().out))
    assert set(re.findall(r"`(--[\w-]+)", PAGE)) <= known
    line = re.search(r"python3 -m drone_bridge\.telemetry\.emulator (.*)", PAGE)[1]
    assert parse(line.split()).until_landed


def test_noise_matches_the_page():
    sensors = MODULES[1]
    rows = dict(re.findall(r"^\| `([a-z][\w.]+)`.*\| ([\d.]+) \S+[^|]*\|$", PAGE, re.MULTILINE))
    assert {name: float(value) for name, value in rows.items()} == {
        "imu.orientation": sensors.ATTITUDE_NOISE,
        "imu.angular_velocity": sensors.RATE_NOISE,
        "imu.linear_acceleration": sensors.ACCELERATION_NOISE,
        "altimeter.altitude": sensors.ALTITUDE_NOISE,
        "altimeter.vertical_velocity": sensors.CLIMB_NOISE,
        "velocity": sensors.FLOW_NOISE,
        "landing_pad.relative_x": sensors.PAD_NOISE,
    }
