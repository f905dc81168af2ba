# SPDX-License-Identifier: Apache-2.0
"""Measurements of the landing drone: the truth, with the specified noise."""

import math

import numpy as np
import pytest

from drone_bridge.telemetry.codec import DroneCommand
from drone_bridge.telemetry.vehicle.emulator.flight import GRAVITY, FlyingDrone
from drone_bridge.telemetry.vehicle.emulator.scene import CAMERA, PAD_HEIGHT
from drone_bridge.telemetry.vehicle.emulator.sensors import Sensors
from drone_bridge.telemetry.vehicle.emulator.world import STEP_S

STILL = np.zeros(3)


def hovering(x=0.0, y=0.0, height=5.0, yaw=0.0):
    return FlyingDrone((x, y, height), yaw)


def to_pad(drone):
    return np.array([0.0, 0.0, PAD_HEIGHT]) - drone.position


def measure(drone, towards_pad=None):
    sensors = Sensors(CAMERA)
    return [sensors.measure(drone, to_pad(drone) if towards_pad is None else towards_pad) for _ in range(500)]


def flying(seconds=1.0, **command):
    drone = hovering()
    drone.command = DroneCommand(**command)
    for _ in range(round(seconds / STEP_S)):
        drone.advance(STEP_S, STILL)
    return drone


def test_at_rest_the_accelerometer_reads_gravity_upwards():
    forces = np.array([one.imu.linear_acceleration for one in measure(hovering(yaw=2.0))])
    assert forces.mean(axis=0) == pytest.approx([0, 0, GRAVITY], abs=0.01)


def test_attitude_and_rates_are_the_drones():
    drone = flying(0.2, pitch=0.4, roll=-0.3, yaw=0.5)
    measured = measure(drone)
    attitudes = np.array([one.imu.orientation for one in measured])
    rates = np.array([one.imu.angular_velocity for one in measured])
    assert attitudes.mean(axis=0) == pytest.approx([drone.roll, drone.pitch, drone.yaw], abs=0.001)
    assert rates.mean(axis=0) == pytest.approx(drone.body_rates, abs=0.001)


def test_the_altimeter_reads_the_height_above_ground_over_the_pad_too():
    drone = flying(1.0, thrust=-0.5)
    for towards_pad in (np.array([0, 0, PAD_HEIGHT - drone.position[2]]), np.array([50.0, 0, -1])):
        measured = measure(drone, towards_pad=towards_pad)
        altitudes = np.array([one.altimeter.altitude for one in measured])
        climbs = np.array([one.altimeter.vertical_velocity for one in measured])
        assert altitudes.mean() == pytest.approx(drone.position[2], abs=0.005)
        assert climbs.mean() == pytest.approx(drone.velocity[2], abs=0.01)
        assert climbs.mean() < -0.5


def test_velocity_is_forward_left_and_up_whatever_the_tilt():
    drone = hovering(yaw=math.pi / 2)
    drone.velocity = np.array([1.0, 2.0, -0.5])
    drone.pitch = 0.4
    velocities = np.array([one.velocity for one in measure(drone)])
    assert velocities.mean(axis=0) == pytest.approx([2.0, -1.0, -0.5], abs=0.02)


# The pad


def seen(drone):
    return [one.landing_pad for one in measure(drone) if one.landing_pad]


def test_the_pad_is_given_forward_left_and_down():
    drone = hovering(x=-1.0, y=0.5, height=4.0)
    pads = np.array([(pad.relative_x, pad.relative_y, pad.distance) for pad in seen(drone)])
    assert pads.mean(axis=0) == pytest.approx([1.0, -0.5, 3.7], abs=0.01)


def test_pad_is_seen_inside_the_image_within_its_range_of_distances():
    """4.7 m below, the image shows 2.71 m to each side and 2.04 m ahead and behind."""
    for x, y, visible in ((0, 2.5, True), (0, 2.9, False), (0, -2.9, False), (1.9, 0, True), (2.2, 0, False)):
        assert bool(seen(hovering(x, y))) is visible
    for distance, visible in ((0.04, False), (0.06, True), (9.9, True), (10.1, False), (-1.0, False)):
        assert bool(seen(hovering(height=PAD_HEIGHT + distance))) is visible
