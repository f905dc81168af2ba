# SPDX-License-Identifier: Apache-2.0
"""Wrong measurements that emulators report on request."""

import math
import statistics

import pytest

from drone_bridge.ar_drone.flight import ArDroneFlight
from drone_bridge.dronegui.codec import Demo
from drone_bridge.dronegui.vehicle.device import NAVDATA_RATE
from drone_bridge.dronegui.vehicle.emulator.__main__ import parse as parse_dronegui
from drone_bridge.dronegui.vehicle.emulator.navdata import blocks
from drone_bridge.motion.limits import LimitParameters, Limits
from drone_bridge.motion.observed_motion import ObservedMotion
from drone_bridge.programs.lies import JUMP_EVERY, SAG, SAG_EVERY, SAG_REPORTS, FaultyReports
from drone_bridge.telemetry.vehicle.emulator.__main__ import lying as lying_telemetry
from drone_bridge.telemetry.vehicle.emulator.world import FlightSetup, LandingFlight
from drone_bridge.testbed.codec import SensorFrame
from drone_bridge.testbed.vehicle.emulator.__main__ import lying as lying_frame


@pytest.mark.parametrize(
    ("kind", "factors"),
    [
        ("velocity-zero", [0.0, 0.0]),
        ("velocity-half", [0.5, 0.5]),
        ("velocity-sign", [-1.0, -1.0]),
        ("velocity-unit", [1e-3, 1e-3]),
        ("velocity-second", [0.0, 1.0]),
        ("altitude-zero", [1.0, 1.0]),
    ],
)
def test_velocities_are_wrong_by_a_factor(kind, factors):
    lies, told = FaultyReports({kind: 1.0}), []
    for _ in factors:
        lies.count()
        told.append(lies.of_velocity)
    assert told == factors


def test_some_heights_and_headings_jump():
    lies, told = FaultyReports({"altitude-jumps": 1.0, "heading-jumps": 1.0}), []
    for _ in range(2 * JUMP_EVERY):
        lies.count()
        told.append((lies.height(1.0) > 1.5, lies.heading_degrees > 10.0))
    assert told.count((True, True)) == 2
    assert told.count((False, False)) == 2 * (JUMP_EVERY - 1)


def test_reports_are_late():
    lies = FaultyReports({"late": 0.6})
    assert [lies.delayed(number, 0.2 * number) for number in range(7)] == [0, 0, 0, 0, 1, 2, 3]


def test_navdata_lies():
    flight = ArDroneFlight()
    flight.position[2], flight.velocity[0] = 1.0, 0.5
    options = parse_dronegui(["--lie", "velocity-sign", "--lie", "altitude-zero"])
    demo = blocks(flight, 0, FaultyReports(dict(options.lie)))[0]
    assert isinstance(demo, Demo)
    assert (demo.vx, demo.altitude) == (pytest.approx(-500.0), 0)


@pytest.mark.parametrize("text", ["velocity", "late", "velocity-zero=1", "late=-1", "late=x"])
def test_an_unknown_lie_is_refused(text):
    with pytest.raises(SystemExit):
        parse_dronegui(["--lie", text])


def test_telemetry_lies():
    flight = LandingFlight(FlightSetup(images=False))
    flight.drone.velocity[:] = 1.0, 0.0, 0.0
    true = flight.advance()
    told = lying_telemetry(true, FaultyReports({"velocity-zero": 1.0, "altitude-zero": 1.0}))
    assert (*told.velocity, told.altimeter.altitude) == (0.0, 0.0, 0.0, 0.0)
    assert told.timestamp == true.timestamp


def test_testbed_lies():
    frame = SensorFrame(b"", b"", 2.0, 0.0, 0.0, 0.0, (1.0, 2.0, 3.0))
    kinds = {"time-stands": 1.0, "time-hours": 1.0, "time-ms": 1.0, "position-zero": 1.0}
    told = lying_frame(frame, FaultyReports(kinds))
    assert (told.time, told.position) == (3601.0 * 1000.0, (0.0, 0.0, 0.0))
    assert lying_frame(frame, FaultyReports()) == frame


@pytest.mark.parametrize("kinds", [{}, {"velocity-zero": 1.0, "altitude-zero": 1.0, "position-zero": 1.0}])
def test_noise_is_added_to_each_lie(kinds):
    flight, lies = LandingFlight(FlightSetup(images=False)), FaultyReports({**kinds, "noise": 0.02})
    told = [lying_telemetry(flight.advance(), lies) for _ in range(100)]
    assert len({each.velocity for each in told}) == len({each.altimeter.altitude for each in told}) == 100
    if kinds:
        assert 0.01 < statistics.pstdev(each.velocity.x for each in told) < 0.03
        assert 0.01 < statistics.pstdev(each.altimeter.altitude for each in told) < 0.03
    frame = SensorFrame(b"", b"", 2.0, 0.0, 0.0, 0.0, (1.0, 2.0, 3.0))
    assert 0.0 < math.dist(lying_frame(frame, lies).position, (0.0, 0.0, 0.0) if kinds else frame.position) < 0.1


def test_a_battery_that_sags_reads_low_for_moments_and_lands_no_drone():
    flight, lies = ArDroneFlight(), FaultyReports({"battery-sags": 1.0})
    limits = Limits(LimitParameters(low_battery=0.2, land_on_low_battery=True), ObservedMotion(lambda: 0.0))
    charges = [blocks(flight, number, lies)[0].charge for number in range(200)]
    assert charges.count(SAG) == 200 // SAG_EVERY * SAG_REPORTS + SAG_REPORTS - 1  # the first report is number 1
    for number, charge in enumerate(charges):
        limits.charged(charge, number / NAVDATA_RATE)
        assert not limits.landing_cause(number / NAVDATA_RATE)
