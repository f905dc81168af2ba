# SPDX-License-Identifier: Apache-2.0
"""Physical meaning of signs, units and axes on the wire, without ROS."""

import json
import math

import pytest
from repository import ROOT

from drone_bridge.ar_drone.flight import ArDroneFlight, FlightPhase
from drone_bridge.ar_drone.flight_state import MAJOR_STATE_SHIFT, STEERED, FlightState
from drone_bridge.dronegui import units
from drone_bridge.dronegui.codec import ControllerConnection, Controls, Demo
from drone_bridge.dronegui.vehicle.emulator.navdata import blocks
from drone_bridge.motion.tilted_drone import GRAVITY, Shares

LEVEL = {"phi": 0.0, "theta": 0.0, "psi": 0.0, "altitude": 1000.0, "vx": 0.0, "vy": 0.0, "vz": 0.0}
RECORDED = ROOT / "test/captures/gui_to_controller_navdata.jsonl"


def measured(**values):
    return units.measurement(Demo(**{**LEVEL, **values}))


# Commands.


@pytest.mark.parametrize(
    ("shares", "controls"),
    [
        (Shares(pitch=0.5), Controls(hover=False, pitch=-0.5)),  # forward: the wire counts nose down negative
        (Shares(roll=-0.5), Controls(hover=False, roll=-0.5)),  # left
        (Shares(thrust=0.5), Controls(hover=False, gas=0.5)),  # up
        (Shares(yaw=0.5), Controls(hover=False, yaw=-0.5)),  # a left turn
        (Shares(), Controls(hover=False)),
    ],
)
def test_each_share_has_its_sign_on_the_wire(shares, controls):
    assert units.controls(shares) == controls
    assert units.shares(controls) == shares


def test_hover_is_zero_for_any_values_of_the_axes():
    assert units.shares(Controls(hover=True, roll=1.0, pitch=1.0, yaw=1.0, gas=1.0)) == Shares()


# Navdata.


def test_a_lowered_nose_accelerates_forward_and_a_bank_to_the_right():
    assert measured(theta=-10_000.0).motion.pull == pytest.approx(GRAVITY * math.tan(math.radians(10)))
    assert measured(phi=10_000.0).motion.pull == pytest.approx(-1j * GRAVITY * math.tan(math.radians(10)))


def test_right_turn_is_negative_and_velocities_are_forward_left_up():
    found = measured(psi=90_000.0, vx=1500.0, vy=250.0, vz=-100.0)
    assert found.yaw == pytest.approx(-math.pi / 2)
    assert found.level_velocity == pytest.approx((1.5, -0.25, 0.1))


@pytest.mark.parametrize("lacks", LEVEL)
def test_a_measurement_has_each_value_that_navdata_has(lacks):
    fields = {"yaw": ("psi",), "velocity": ("vx", "vy"), "height": ("altitude",), "roll": ("phi",), "pitch": ("theta",)}
    found = measured(**{lacks: None})
    missing = {name for name in fields if getattr(found, name) is None}
    assert missing == {name for name, needed in fields.items() if lacks in needed}


def test_a_drone_flies_in_the_states_in_which_it_follows_commands():
    flying = {each: measured(ctrl_state=each << MAJOR_STATE_SHIFT).is_flying for each in FlightState}
    assert flying == {each: each in STEERED for each in FlightState}
    assert measured().is_flying is None


def test_values_survive_their_conversion_to_the_wire_and_back():
    block = Demo(**units.angles(0.1, -0.2, 0.3), **units.altitude(1.5), **units.velocity(1.0, -2.0, 0.5))
    found = units.measurement(block)
    assert (found.roll, found.pitch, found.yaw, found.height) == pytest.approx((0.1, -0.2, 0.3, 1.5))
    assert found.level_velocity == pytest.approx((1.0, -2.0, 0.5))


# Level axes. The AR.Drone's navdata has the velocity along level axes with its heading, as its vz is always zero: along
# the body's axes, that would be a drone that sinks by its speed times the sine of its tilt, or can't climb.


def test_the_recorded_drone_climbs_and_sinks_with_a_vertical_speed_of_zero():
    connection, found = ControllerConnection(), []
    for line in RECORDED.read_text().splitlines():
        if json.loads(line).get("type") == "demo":
            connection.receive_data(line.encode())
            found.append(connection.next_event())
    heights = [demo.altitude for demo in found]
    assert max(heights) - min(heights) >= 1000
    assert any(demo.theta for demo in found)
    assert {demo.vz for demo in found} == {0.0}


def test_a_pitched_drone_that_flies_ahead_keeps_its_height():
    found = measured(theta=-12_000.0, vx=3000.0)
    assert found.level_velocity == (3.0, 0.0, 0.0)
    assert found.motion.forward == 3.0


def test_the_emulated_drone_reports_level_velocities():
    flight = ArDroneFlight()
    flight.take_off()
    while flight.phase is not FlightPhase.FLYING:
        flight.advance(0.01)
    flight.steer(units.controls(Shares(pitch=1.0, roll=-1.0)))
    for _ in range(200):
        flight.advance(0.01)
    assert min(abs(flight.pitch), abs(flight.roll)) > 0.1
    forward, left, _ = units.measurement(blocks(flight, 1)[0]).level_velocity
    assert (forward, left) == pytest.approx(flight.velocity[:2].tolist())
