# SPDX-License-Identifier: Apache-2.0
"""What the rover that carries the pad drives, by itself and when it is led."""

import numpy as np
import pytest

from drone_bridge.telemetry.emulator.rover import ACCELERATION, SILENCE_S, Pattern, Rover

STEP_S = 0.005
SPEED = 0.5  # m/s
AMPLITUDE = 2.0  # m


def drive(pattern, seconds=120.0, **options):
    """Return positions and velocities, a row each for each step."""
    rover = Rover(pattern, **options)
    positions, velocities = [rover.position], [rover.velocity]
    for _ in range(round(seconds / STEP_S)):
        rover.advance(STEP_S)
        positions.append(rover.position)
        velocities.append(rover.velocity)
    return np.array(positions), np.array(velocities)


def test_a_circular_rover_keeps_its_distance_and_turns_left():
    positions, velocities = drive(Pattern.CIRCULAR)
    assert np.linalg.norm(positions, axis=1) == pytest.approx(AMPLITUDE)
    assert np.linalg.norm(velocities, axis=1) == pytest.approx(SPEED)
    x, y = positions[400]
    assert (x > 0, y > 0) == (True, True)


def test_a_square_rover_visits_the_corners_in_turn():
    positions, _ = drive(Pattern.SQUARE)
    visited = []
    for position in positions:
        for corner in ((2, -2), (2, 2), (-2, 2), (-2, -2)):
            if np.linalg.norm(position - corner) < 0.1 and (not visited or visited[-1] != corner):
                visited.append(corner)
    assert visited[:6] == [(2, -2), (2, 2), (-2, 2), (-2, -2), (2, -2), (2, 2)]


def test_a_random_rover_stays_within_its_amplitude_and_repeats_with_its_seed():
    positions, _ = drive(Pattern.RANDOM, seed=3)
    assert np.abs(positions).max() < AMPLITUDE + 0.1
    assert positions.std(axis=0).min() > 0.3
    assert np.array_equal(positions, drive(Pattern.RANDOM, seed=3)[0])
    assert not np.array_equal(positions, drive(Pattern.RANDOM, seed=4)[0])


@pytest.mark.parametrize("pattern", [Pattern.LINEAR, Pattern.SQUARE, Pattern.RANDOM])
def test_speed_and_acceleration_are_limited(pattern):
    positions, velocities = drive(pattern)
    assert np.linalg.norm(velocities, axis=1).max() == pytest.approx(SPEED, rel=0.01)
    accelerations = np.linalg.norm(np.diff(velocities, axis=0), axis=1) / STEP_S
    assert accelerations.max() <= ACCELERATION * 1.001
    assert np.diff(positions, axis=0) / STEP_S == pytest.approx(velocities[1:], abs=1e-9)


def test_a_rover_that_is_led_is_where_it_is_told_and_goes_on_from_there():
    rover = Rover(Pattern.FOLLOW)
    rover.advance(1.0)
    assert not rover.position.any()
    rover.lead((1.0, -2.0), (0.5, 0.25))
    assert rover.position.tolist() == [1.0, -2.0]
    rover.advance(0.4)
    assert rover.position == pytest.approx([1.2, -1.9])
    assert rover.velocity.tolist() == [0.5, 0.25]


def test_a_rover_that_is_led_stops_without_further_documents():
    rover = Rover(Pattern.FOLLOW)
    rover.lead((0.0, 0.0), (1.0, 0.0))
    for _ in range(1000):
        rover.advance(STEP_S)
    assert rover.position == pytest.approx([SILENCE_S, 0], abs=0.02)
    assert not rover.velocity.any()
