# SPDX-License-Identifier: Apache-2.0
"""Motion of the rover with the pad, by its patterns and when led."""

from collections import Counter
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest

from drone_bridge.telemetry.bridge import ROVER_DOCUMENTS, TelemetryBridge
from drone_bridge.telemetry.codec import RoverTelemetry
from drone_bridge.telemetry.sample_conversation import conversation
from drone_bridge.telemetry.vehicle.emulator.rover import SILENCE_S, Rover, RoverPattern

STEP_S = 0.005
SPEED = 0.5  # m/s
AMPLITUDE = 2.0  # m


def drive(pattern, seconds=120.0, **options):
    """Return the positions, a row for each step."""
    rover = Rover(pattern, **options)
    positions = [rover.position]
    for _ in range(round(seconds / STEP_S)):
        rover.advance(STEP_S)
        positions.append(rover.position)
    return np.array(positions)


def test_a_circular_rover_keeps_its_distance_and_turns_left_at_its_speed():
    positions = drive(RoverPattern.CIRCULAR)
    assert np.linalg.norm(positions, axis=1) == pytest.approx(AMPLITUDE)
    assert np.linalg.norm(np.diff(positions, axis=0), axis=1) == pytest.approx(SPEED * STEP_S, rel=1e-3)
    assert (positions[400] > 0).all()


def test_a_square_rover_visits_the_corners_in_turn():
    positions = drive(RoverPattern.SQUARE)
    visited = []
    for position in positions:
        for corner in ((2, -2), (2, 2), (-2, 2), (-2, -2)):
            if np.linalg.norm(position - corner) < 0.1 and (not visited or visited[-1] != corner):
                visited.append(corner)
    assert visited[:6] == [(2, -2), (2, 2), (-2, 2), (-2, -2), (2, -2), (2, 2)]


def test_random_rover_stays_within_its_amplitude_and_repeats_by_seed():
    positions = drive(RoverPattern.RANDOM, seed=3)
    assert np.abs(positions).max() < AMPLITUDE + 0.1
    assert positions.std(axis=0).min() > 0.3
    assert np.array_equal(positions, drive(RoverPattern.RANDOM, seed=3))
    assert not np.array_equal(positions, drive(RoverPattern.RANDOM, seed=4))


def test_led_rover_moves_from_a_given_position_and_stops_without_documents():
    rover = Rover(RoverPattern.FOLLOW)
    rover.advance(1.0)
    assert not rover.position.any()
    rover.lead((1.0, -2.0), (0.5, 0.0))
    assert rover.position.tolist() == [1.0, -2.0]
    for _ in range(1000):
        rover.advance(STEP_S)
    assert rover.position == pytest.approx([1.0 + 0.5 * SILENCE_S, -2.0], abs=0.02)
    assert not rover.velocity.any()


def test_a_rovers_document_is_published_as_the_rovers():
    bridge, rover = (
        Mock(report=SimpleNamespace(counts=Counter())),
        next(sent.message for sent in conversation() if isinstance(sent.message, RoverTelemetry)),
    )
    TelemetryBridge.publish_event(bridge, rover)
    bridge._topics.publish.assert_called_once_with(rover, bridge._stamps.of.return_value)
    assert bridge.report.counts == {ROVER_DOCUMENTS: 1}
