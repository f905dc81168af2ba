# SPDX-License-Identifier: Apache-2.0
"""Ten lines that fly, with each drone's launch file: without a warning, and on the ground where it was sent."""

import re
import signal
import sys

import pytest
from composition import launch
from ports import free_ports
from processes import Process
from repository import ROOT

from drone_bridge.tools.demo.composition import ports_of

SMALL = {"attitude_layout": "pose", "testbed_image_width": 32, "testbed_image_height": 32, "testbed_ground": -1}
#: Arguments, and the last words of the emulator about a drone on the ground, with its place.
FLIGHTS = {
    "telemetry": ({}, r"ended: .*, on ground, "),  # its place: test/printed
    "dronegui": ({}, r"ended: .*, landed, x=(\S+) y=(\S+) z=0\.00 m"),
    "ardrone": ({}, r"ended: .*, landed, x=(\S+) y=(\S+) z=0\.00 m"),
    "tello": ({}, r"ended: at (\S+) (\S+) 0\.00 m"),
    "testbed": (SMALL, r"ended: .* at (\S+) -1\.00 (\S+) m"),
}
EACH = ["telemetry", *(pytest.param(each, marks=pytest.mark.exhaustive) for each in [*FLIGHTS][1:])]


@pytest.mark.parametrize("name", EACH)
def test_a_first_flight_ends_on_the_ground_without_a_warning(domain, name):
    arguments, on_the_ground = FLIGHTS[name]
    names = ports_of(f"{name}.launch.xml")
    ports = dict(zip(names, free_ports(len(names)), strict=True))
    with launch(f"{name}.launch.xml", emulate=True, goals=True, **ports, **arguments) as composition:
        with Process(sys.executable, ROOT / "examples" / "fly.py") as script:
            assert script.wait() == 0, script.output
        composition.stop(signal.SIGINT)
        assert (landed := re.search(on_the_ground, composition.output)), composition.output
        assert all(abs(float(each)) == pytest.approx(2.0, abs=0.3) for each in landed.groups()), landed[0]
        assert composition.warnings() == []
