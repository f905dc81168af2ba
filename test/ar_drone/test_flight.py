# SPDX-License-Identifier: Apache-2.0
"""Flight of the emulated AR.Drone, without wire or clock."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drone_bridge.ar_drone.flight import GRAVITY, TAKE_OFF_HEIGHT, ArDroneFlight, FlightPhase
from drone_bridge.dronegui.codec import AXES, BUTTONS, Controls

STEP_S = 0.01


def advance(flight, seconds, step=STEP_S):
    for _ in range(round(seconds / step)):
        flight.advance(step)
    return flight


def press(flight, button):
    """Effect of a press in a GUI that knows whether the drone flies."""
    if button == "reset":
        flight.reset()
    elif flight.is_flying:
        flight.land()
    else:
        flight.take_off()


def flying(**options):
    flight = ArDroneFlight(**options)
    press(flight, "take_off")
    advance(flight, 5)
    assert flight.phase is FlightPhase.FLYING
    return flight


def fly(controls, seconds=2.0, **options):
    flight = flying(**options)
    flight.steer(controls)
    return advance(flight, seconds)


def test_take_off_climbs_to_its_height_and_stays():
    flight = ArDroneFlight()
    press(flight, "take_off")
    advance(flight, 1)
    assert flight.phase is FlightPhase.TAKING_OFF
    advance(flight, 4)
    assert flight.phase is FlightPhase.FLYING
    before = flight.height
    assert before == pytest.approx(TAKE_OFF_HEIGHT, abs=0.1)
    advance(flight, 10)
    assert flight.height == pytest.approx(before, abs=1e-3)


@pytest.mark.parametrize(
    ("axis", "value", "index", "sign"),
    [("pitch", -0.5, 0, 1), ("pitch", 0.5, 0, -1), ("roll", 0.5, 1, -1), ("roll", -0.5, 1, 1), ("gas", 0.5, 2, 1)],
    ids=["forward", "backward", "right", "left", "up"],
)
def test_each_axis_moves_the_drone_only_its_own_way(axis, value, index, sign):
    start = flying().position
    moved = fly(Controls(hover=False, **{axis: value})).position - start
    assert sign * moved[index] > 0.3
    others = np.delete(moved, index)
    assert np.abs(others).max() < 1e-6 + 0.01 * (index != 2)  # height may still be settling


def test_hover_brakes_and_holds_position():
    flight = fly(Controls(hover=False, pitch=-1), 3)
    assert flight.velocity[0] > 2
    flight.steer(Controls(pitch=-1, gas=1, yaw=1))  # hover is pressed: the axes are ignored
    advance(flight, 6)
    place, yaw = flight.position.copy(), flight.yaw
    assert np.linalg.norm(flight.velocity) < 0.05
    advance(flight, 10)
    assert np.linalg.norm(flight.position - place) < 0.1
    assert flight.yaw == pytest.approx(yaw, abs=0.01)


def test_reset_in_flight_is_an_emergency():
    flight = flying()
    press(flight, "reset")
    assert flight.phase is FlightPhase.EMERGENCY
    fall_s = math.sqrt(2 * flight.height / GRAVITY)
    advance(flight, 0.8 * fall_s)
    assert flight.height > 0
    press(flight, "reset")
    assert flight.phase is FlightPhase.EMERGENCY, "nothing ends it in the air"
    advance(flight, 0.4 * fall_s)
    assert flight.height == 0
    press(flight, "take_off")
    assert flight.phase is FlightPhase.EMERGENCY
    press(flight, "reset")
    assert flight.phase is FlightPhase.LANDED
    press(flight, "take_off")
    assert flight.phase is FlightPhase.TAKING_OFF


controls = st.builds(Controls, **dict.fromkeys(BUTTONS, st.booleans()), **dict.fromkeys(AXES, st.floats(-1, 1)))


@given(st.lists(st.tuples(controls, st.integers(1, 100)), max_size=15))
def test_whatever_is_commanded_the_drone_stays_in_the_world(commands):
    flight = ArDroneFlight(gusts=1.0)
    for command, steps in commands:
        flight.steer(command)
        for button in ("take_off", "reset"):
            if getattr(command, button):
                press(flight, button)
        for _ in range(steps):
            flight.advance(0.02)
            assert np.isfinite(flight.position).all()
            assert 0 <= flight.height < 4
            assert (flight.height > 0) or flight.phase in (
                FlightPhase.LANDED,
                FlightPhase.EMERGENCY,
                FlightPhase.TAKING_OFF,
            )
            assert np.linalg.norm(flight.velocity) < 15
