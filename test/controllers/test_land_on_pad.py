# SPDX-License-Identifier: Apache-2.0
"""land_on_pad with the emulated vehicle, in this process and faster than real time."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pad_flight import PATTERNS, PadFlight

from drone_bridge.controllers.land_on_pad import pilot
from drone_bridge.controllers.land_on_pad.pilot import (
    FASTEST,
    MAX_TURN_RATE,
    LandOnPad,
    LandState,
    PadSighting,
    StampedMeasurements,
)
from drone_bridge.telemetry.codec import PERIOD_S
from drone_bridge.telemetry.vehicle.emulator.scene import PAD_HEIGHT

LEVEL = np.eye(3)


def is_above(flight, distance=0.5):
    return float(np.linalg.norm(flight.world.towards_pad[:2])) < distance


# Landing.


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("pattern", PATTERNS)
def test_it_lands_on_every_pattern(pattern, seed):
    flight = PadFlight(pattern, seed)
    touchdown = flight.land(longest_s=25)
    assert touchdown.is_good, touchdown.describe()
    assert flight.states[-2:] == [LandState.COMMITTED, LandState.LANDED]
    assert LandState.DESCENDING in flight.states
    assert flight.decisions[-1].reason == "touchdown was reported"


@pytest.mark.parametrize(
    "hardship",
    [
        {"gusts": 1.0},
        {"wind": (3.0, -2.0, 0.0)},
        {"delay": 2},
        {"sight_every": 5, "sight_delay": 1},
        {"starts_on_ground": True},
        {"height": 9.0},
        {"rover_speed": 1.0},
    ],
    ids=",".join,
)
def test_it_lands_under_difficult_conditions(hardship):
    touchdown = PadFlight("circular", 3, **hardship).land()
    assert touchdown.is_good, touchdown.describe()


def test_it_finds_a_pad_far_out_of_sight():
    flight = PadFlight(away=(6.5, -7.0))
    flight.until(lambda decision: decision.state is not LandState.SEARCHING)
    assert {decision.reason for decision in flight.decisions[:-1]} == {"pad not seen", "pad not found yet"}
    assert all(decision.distance is None for decision in flight.decisions[:-1])
    assert flight.land().is_good


# When the pad is lost.


def test_a_lost_pad_causes_a_climb_and_then_a_search():
    flight = PadFlight("stationary", sees=lambda flight: not flight.hides)
    flight.hides = False
    flight.until(lambda decision: decision.state is LandState.DESCENDING and is_above(flight))
    flight.hides = True
    flight.until(lambda decision: decision.state is LandState.CLIMBING, 3)
    assert "pad out of sight for 0.5 s" in flight.decisions[-1].reason
    flight.until(lambda decision: decision.state is LandState.SEARCHING, 6)
    assert flight.decisions[-1].reason.startswith("pad lost for 3.")
    assert flight.drone.velocity[2] > 1
    flight.hides = False
    assert flight.land().is_good


def test_the_last_half_metre_can_be_flown_blind():
    flight = PadFlight("circular", sees=lambda flight: flight.drone.position[2] > PAD_HEIGHT + 0.5)
    assert flight.land().is_good
    assert any("last seen 0.3 s ago" in decision.reason for decision in flight.decisions)


def test_a_final_descent_is_aborted_if_the_pad_is_seen_elsewhere(monkeypatch):
    monkeypatch.setattr(pilot, "COMMIT_HEIGHT", 1.5)
    flight = PadFlight("stationary")
    flight.until(lambda decision: decision.state is LandState.COMMITTED)
    flight.world.rover.position = flight.world.rover.position + 0.35
    flight.until(lambda decision: decision.state is LandState.CLIMBING, 1)
    assert "off the pad" in flight.decisions[-1].reason
    assert flight.land().is_good


def test_a_single_wrong_detection_has_no_effect():
    flight = PadFlight("stationary")
    flight.until(lambda decision: decision.state is LandState.DESCENDING and is_above(flight))
    measured = flight.measure()
    wrong = PadSighting(measured.stamp, measured.sighting.offset + np.array([3.0, 0.0, 0.0]), 0.05, 0.05)
    decision = flight.behaviour.update(replace(measured, sighting=wrong))
    assert decision.state is LandState.DESCENDING
    assert decision.distance == pytest.approx(math.hypot(*flight.world.towards_pad), abs=0.3)


# Touchdown.


def test_an_unreported_touchdown_is_detected_from_the_altitude():
    flight = PadFlight("circular", tells_landed=False)
    touchdown = flight.land()
    assert touchdown.is_good
    assert flight.decisions[-1].reason == "it sinks no further"
    assert len(flight.decisions) * PERIOD_S - touchdown.time < 1.0


@pytest.mark.parametrize("jump", [-50.0, 1.5])
def test_a_jump_of_the_stamp_starts_over(jump):
    flight = PadFlight("stationary")
    flight.land()
    measured = flight.measure()
    later = replace(measured, stamp=measured.stamp + jump, sighting=None, altitude=5.0, landed=False)
    again = flight.behaviour.update(later)
    assert (again.state, again.distance) == (LandState.SEARCHING, None)


# Limits.


STEPS, NUMBERS = st.sampled_from([0.0, 1e-9, 0.04, 0.5, 2.0, -3.0]), st.floats(-1e6, 1e6)
VECTORS = st.tuples(NUMBERS, NUMBERS, NUMBERS)


@given(st.lists(st.tuples(STEPS, VECTORS, NUMBERS, st.none() | VECTORS, st.booleans()), max_size=30))
def test_commands_stay_within_limits_for_any_measurements(measurements):
    behaviour, stamp = LandOnPad(), 0.0
    for step, velocity, altitude, offset, landed in measurements:
        stamp += step
        sighting = offset and PadSighting(stamp, np.array(offset), 0.05, 0.05)
        decision = behaviour.update(StampedMeasurements(stamp, LEVEL, np.array(velocity), altitude, sighting, landed))
        forward, left, up = decision.command.linear
        assert math.hypot(forward, left) <= FASTEST * pilot.MAX_SPEED + 1e-9
        assert -pilot.MAX_DESCENT_SPEED <= up <= pilot.MAX_CLIMB_SPEED
        assert abs(decision.command.turn) <= MAX_TURN_RATE
