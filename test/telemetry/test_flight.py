# SPDX-License-Identifier: Apache-2.0
"""Flight of the landing drone, compared with closed-form solutions of its equations of motion."""

import math

import numpy as np
import pytest

from drone_bridge.telemetry.codec import DroneCommand
from drone_bridge.telemetry.vehicle.emulator.flight import (
    GRAVITY,
    HORIZONTAL_DRAG,
    THRUST_MARGIN,
    VERTICAL_DRAG,
    FlyingDrone,
)
from drone_bridge.telemetry.vehicle.emulator.world import STEP_S

STILL = np.zeros(3)
START = (1.0, -2.0, 5.0)


def fly(seconds, *, heading=0.0, wind=STILL, step=STEP_S, **command):
    drone = FlyingDrone(START, heading)
    drone.command = DroneCommand(**command)
    return advance(drone, seconds, wind, step)


def advance(drone, seconds, wind=STILL, step=STEP_S):
    for _ in range(round(seconds / step)):
        drone.advance(step, wind)
    return drone


def test_hover_holds_its_place():
    drone = fly(60)
    assert drone.position == pytest.approx(START, abs=1e-9)
    assert (drone.roll, drone.pitch, drone.yaw) == (0, 0, 0)
    assert not drone.body_rates.any()


def test_climb_settles_where_drag_balances_the_margin():
    assert fly(10, thrust=-1.0).velocity == pytest.approx([0, 0, -THRUST_MARGIN / VERTICAL_DRAG], rel=1e-3)


@pytest.mark.parametrize(
    ("command", "direction"),
    [({"pitch": 0.2}, (1, 0)), ({"pitch": -0.2}, (-1, 0)), ({"roll": 0.2}, (0, -1)), ({"roll": -0.2}, (0, 1))],
    ids=["forward", "backward", "right", "left"],
)
def test_speed_settles_where_drag_balances_tilt(command, direction):
    heading = 2.0
    drone = fly(30, heading=heading, **command)
    speed = GRAVITY * math.tan(0.2) / HORIZONTAL_DRAG
    forward, left = np.array(direction) * speed
    expected = (
        forward * math.cos(heading) - left * math.sin(heading),
        forward * math.sin(heading) + left * math.cos(heading),
    )
    assert drone.velocity[:2] == pytest.approx(expected, rel=1e-3, abs=1e-6)
    assert drone.position[2] == pytest.approx(5, abs=1e-6), "the lift is kept while tilting"


def test_body_rates_are_those_of_the_rotation():
    drone = fly(0.15, pitch=0.5, roll=-0.4, yaw=0.5)
    before = drone.rotation
    rates = drone.body_rates
    advance(drone, 1e-4, step=1e-4)
    turned = before.T @ (drone.rotation - before) / 1e-4
    assert [turned[2, 1], turned[0, 2], turned[1, 0]] == pytest.approx(rates, abs=0.01)


def test_wind_carries_a_level_drone_along():
    wind = np.array([1.0, -2.0, 0.0])
    assert fly(30, wind=wind).velocity == pytest.approx(wind, abs=1e-3)


def test_motors_on_the_ground_idle_until_a_climb():
    drone = fly(2, thrust=-1.0)

    def stand():
        for _ in range(200):
            drone.stand(STEP_S, drone.position, STILL)

    stand()
    assert drone.thrust == pytest.approx(0, abs=1e-3)
    drone.command = DroneCommand(thrust=0.6)
    stand()
    assert drone.thrust == pytest.approx(0.6, abs=1e-3)
