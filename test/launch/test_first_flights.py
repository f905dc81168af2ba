# SPDX-License-Identifier: Apache-2.0
"""Our examples with each launch file: no warning, and the vehicle is where it was sent. Telemetry's: test/printed."""

import re
import signal
import sys
import time

import pytest
from composition import launch, warnings_in
from ports import free_ports
from processes import Process
from repository import ROOT

from drone_bridge.tools.demo.composition import ports_of

pytestmark = pytest.mark.exhaustive

SMALL = {"attitude_layout": "pose", "testbed_image_width": 32, "testbed_image_height": 32, "testbed_ground": -1}
#: Arguments, and the last words of the emulator about a drone on the ground, with its place.
FLIGHTS = {
    "dronegui": ({}, r"ended: .*, landed, x=(\S+) y=(\S+) z=0\.00 m"),
    "ardrone": ({}, r"ended: .*, landed, x=(\S+) y=(\S+) z=0\.00 m"),
    "tello": ({}, r"ended: at (\S+) (\S+) 0\.00 m"),
    "testbed": (SMALL, r"ended: .* at (\S+) -1\.00 (\S+) m"),
}
#: Vehicles that `examples/drive.py` drives for a minute, and a warning that is meant.
DRIVEN = "create2", "kobuki", "robomaster", "pioneer", "simulator", "arduino", "hoverboard"
MINUTE_S, SPEED, MEANT = 60.0, 0.2, "has no watchdog"


@pytest.mark.parametrize("name", FLIGHTS)
def test_a_first_flight_ends_on_the_ground_without_a_warning(domain, name):
    arguments, on_the_ground = FLIGHTS[name]
    names = ports_of(f"{name}.launch.xml")
    ports = dict(zip(names, free_ports(len(names)), strict=True))
    with launch(f"{name}.launch.xml", emulate=True, goals=True, **ports, **arguments) as composition:
        with Process(sys.executable, ROOT / "examples" / "fly.py") as script:
            assert script.wait() == 0, script.output
        composition.stop(signal.SIGINT)
        landed = re.search(on_the_ground, composition.output)
        assert landed, composition.output
        assert all(abs(float(each)) == pytest.approx(2.0, abs=0.3) for each in landed.groups()), landed[0]
        assert warnings_in(composition.lines) == []


@pytest.mark.parametrize("name", DRIVEN)
def test_a_first_minute_of_driving_has_no_warning(domain, name):
    names = ports_of(f"{name}.launch.xml")
    ports, began_s = dict(zip(names, free_ports(len(names)), strict=True)), time.monotonic()
    with launch(f"{name}.launch.xml", emulate=True, goals=True, **ports) as composition:
        with Process(sys.executable, ROOT / "examples" / "drive.py") as driver:
            driver.wait_for_line("It follows commands")
            time.sleep(MINUTE_S)  # what is tested is a time
            assert driver.stop(signal.SIGINT) == 0, driver.output
        driven_s = time.monotonic() - began_s
        composition.stop(signal.SIGINT)
        forward, aside = map(float, re.search(r"ended: .*\bat (\S+) (\S+) ", composition.output).groups())
        assert 0.9 * SPEED * MINUTE_S < forward < SPEED * driven_s, composition.output
        assert aside == pytest.approx(0.0, abs=0.1)
        assert [line for line in warnings_in(composition.lines) if MEANT not in line] == []
