# SPDX-License-Identifier: Apache-2.0
"""Reports that lie have a bounded effect, and honest flights raise no doubt."""

import pytest
from lying_flights import (
    BEGINS,
    FENCE_M,
    HONEST,
    LIES,
    Conditions,
    at_wall,
    bounds_of,
    effect,
    farthest_in_fence,
    fly,
    honest,
    lied_to,
    violations,
)

from drone_bridge.motion.body_velocity import BodyVelocity

BEGIN_S, LATER_S = BEGINS


@pytest.mark.parametrize(
    ("drone", "lie", "command"),
    [
        pytest.param("AR.Drone", "velocity 0", "0.3 m/s", marks=pytest.mark.exhaustive),
        ("AR.Drone", "velocity 0, noise 20 mm/s", "0.3 m/s"),
        pytest.param("AR.Drone", "the same report", "0.3 m/s", marks=pytest.mark.exhaustive),
        ("AR.Drone", "late by 1 s", "0.3 m/s"),
        pytest.param("landing drone", "velocity 0, noise 1 mm/s", "0.3 m/s", marks=pytest.mark.exhaustive),
        ("landing drone", "sign", "0.3 m/s"),
        ("landing drone", "the same report", "STOP"),
    ],
)
def test_a_lie_has_a_bounded_effect_that_ends(drone, lie, command):
    flown = effect(lied_to(drone, lie, command, BEGIN_S), lied_to(drone, None, command, BEGIN_S))
    bounds = bounds_of(lie)
    assert not violations(flown, bounds if command != "STOP" else bounds._replace(said_s=None))


def test_a_frozen_velocity_is_doubted_though_little_tilt_is_used():
    flown = effect(*(lied_to("AR.Drone", lie, "0.3 m/s", LATER_S) for lie in ("frozen", None)))
    assert not violations(flown, bounds_of("frozen"))


@pytest.mark.parametrize("drone", ["AR.Drone", "landing drone"])
def test_a_drone_in_a_wind_that_begins_at_once_holds_its_velocity_again(drone):
    errors = {round(each.time, 2): each.error for each in fly(drone, HONEST["wind 5 m/s at once"], 25.0).moments}
    assert max(errors[time_s] for time_s in (15.5, 16.0, 16.5, 17.0)) > 0.5
    assert max(error for time_s, error in errors.items() if time_s > 24.0) < 0.5


def test_drone_without_motion_reports_leaves_a_fence_by_a_bounded_distance():
    lie = "velocity 0, noise 20 mm/s"
    assert FENCE_M < farthest_in_fence("landing drone", lie) <= bounds_of(lie).in_fence


@pytest.mark.parametrize("drone", ["AR.Drone", "landing drone"])
def test_a_fenced_drone_with_a_doubted_place_returns_slowly_and_no_farther(drone):
    lie = LIES["velocity 0"][0]

    def x_after(speed):
        def command(now_s):
            return BodyVelocity(0.3 if now_s < 16.0 else speed)

        moments = fly(drone, Conditions(command, lie, lie_from_s=12.0, fence_radius=FENCE_M), 22.0).moments
        assert moments[-1].is_doubted
        return moments[-1].place[0]

    assert x_after(1.0) < FENCE_M
    assert 0.5 < x_after(0.0) - x_after(-1.0) < 2.5


@pytest.mark.parametrize("drone", ["AR.Drone", "landing drone"])
@pytest.mark.parametrize(
    "name",
    [
        pytest.param("gusts 2 m/s", marks=pytest.mark.exhaustive),
        "wind 3 m/s at once",
        "pauses of 0.8 s",
        "60 % of real time",
    ],
)
def test_an_honest_flight_is_not_doubted(drone, name):
    assert honest(drone, name, "zero")[:2] == (0.0, 0.0)


def test_a_rounded_velocity_is_not_doubted_in_a_fence():
    flown = honest("AR.Drone", "velocity in steps of 0.1 m/s", "square", fence_radius=30.0)
    assert (flown.doubted_share, flown.refused_share) == (0.0, 0.0)


def test_a_wall_is_reported_and_left_slowly():
    wall = at_wall("landing drone")
    assert wall.tilt < 0.4
    assert wall.said_s < 9.5
    assert wall.speed < 0.9
