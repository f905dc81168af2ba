# SPDX-License-Identifier: Apache-2.0
"""Physical meaning of signs, units and axes on the wire, without ROS."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from telemetry_documents import TELEMETRY

from drone_bridge.motion.measurement import Measurement
from drone_bridge.motion.quaternions import quaternion_from_euler, rotated
from drone_bridge.motion.tilted_drone import GRAVITY, Shares
from drone_bridge.telemetry import codec
from drone_bridge.telemetry.units import SIGNED, Units

REVERSED = Units(SIGNED)


def attitude(roll=0.0, pitch=0.0, yaw=0.0):
    return replace(TELEMETRY, imu=replace(TELEMETRY.imu, orientation=codec.Orientation(roll, pitch, yaw)))


# Commands.


def test_opposite_signs_reverse_only_the_named_quantities():
    shares = Shares(0.5, 0.5, -0.5, 0.5)
    assert REVERSED.command(shares) == codec.DroneCommand(thrust=0.5, pitch=-0.25, roll=0.25, yaw=-0.25)
    assert REVERSED.angles(1.0, 2.0, 3.0) == (-1.0, -2.0, -3.0)
    one = Units(["command.yaw", "telemetry.pitch"])
    assert one.command(shares) == codec.DroneCommand(thrust=0.5, pitch=0.25, roll=-0.25, yaw=-0.25)
    assert (one.angles(1.0, 2.0, 3.0), one.position(1.0, 2.0)) == ((1.0, -2.0, 3.0), (1.0, 2.0))


# Measurements.


def test_positive_pitch_accelerates_forward_and_positive_roll_to_the_right():
    forward = Units().measurement(attitude(pitch=0.1)).motion.pull
    right = Units().measurement(attitude(roll=0.1)).motion.pull
    assert (forward, right) == (pytest.approx(GRAVITY * math.tan(0.1)), pytest.approx(-1j * GRAVITY * math.tan(0.1)))
    assert REVERSED.measurement(attitude(pitch=0.1)).motion.pull == pytest.approx(-forward)
    assert REVERSED.measurement(attitude(roll=0.1)).motion.pull == pytest.approx(-right)


@pytest.mark.parametrize("is_levelled", [True, False])
def test_a_tilted_drone_that_goes_ahead_has_a_level_velocity_ahead(is_levelled):
    ahead = codec.Vector(2.0, 0.0, 0.0) if is_levelled else codec.Vector(2.0 * math.cos(0.5), 0.0, 2.0 * math.sin(0.5))
    north = replace(attitude(pitch=0.5, yaw=math.pi / 2), velocity=ahead)
    measured = Units(is_levelled=is_levelled).measurement(north)
    assert measured.level_velocity == pytest.approx((2.0, 0.0, -0.1))
    assert measured.yaw == pytest.approx(math.pi / 2)


def test_landed_drone_is_not_flying_and_an_unknown_state_stays_unknown():
    flying = [Units().measurement(replace(TELEMETRY, landed=landed)).is_flying for landed in (True, False, None)]
    assert flying == [False, True, None]


@pytest.mark.parametrize("opposite", [(), SIGNED])
@pytest.mark.parametrize("is_levelled", [True, False])
def test_a_document_survives_its_conversion_to_a_measurement_and_back(opposite, is_levelled):
    units = Units(opposite, is_levelled=is_levelled)
    back = units.telemetry(units.measurement(TELEMETRY), TELEMETRY.camera, TELEMETRY.landing_pad)
    assert back.velocity == pytest.approx(TELEMETRY.velocity)
    assert replace(back, velocity=TELEMETRY.velocity) == TELEMETRY


@given(st.tuples(*[st.floats(-1.0, 1.0)] * 3), st.tuples(*[st.floats(-5.0, 5.0)] * 3))
def test_velocity_in_body_axes_is_turned_by_the_tilt_alone(angles, velocity):
    document = replace(attitude(*angles), velocity=codec.Vector(*velocity))
    measured = Units(is_levelled=False).measurement(document)
    in_world = rotated(quaternion_from_euler(*angles), *velocity)
    turned = rotated(quaternion_from_euler(0.0, 0.0, angles[2]), *measured.velocity.linear)
    assert turned == pytest.approx(in_world, abs=1e-9)


def test_measurement_without_a_required_part_is_no_document():
    with pytest.raises(ValueError, match="attitude, rates, velocity and height"):
        Units().telemetry(Measurement(yaw=1.0, height=1.0), TELEMETRY.camera, None)
