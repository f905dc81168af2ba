# SPDX-License-Identifier: Apache-2.0
"""ProvenWind: which drone is doubted when it is stopped. Gusts and walls of an emulated drone: lying_flights."""

import math

import pytest
from lying_flights import LIES, Conditions, fly

from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.motion.proven_wind import ProvenWind

STEP_S = 0.04
#: Flights at 0.3 m/s until the stop: duration, s; reported velocity, m/s; feedback that is needed, m/s^2.
FLIGHTS = {
    "about zero": ([(3.0, 0.05, 0.6)], True),
    "about zero, briefly": ([(1.8, 0.05, 0.6)], False),
    "about zero, hardly tilted": ([(3.0, 0.05, 0.2)], False),
    "at a wall": ([(2.0, 0.3, 0.0), (3.0, 0.02, 0.6)], False),
    "in a gust at the start": ([(2.0, 0.05, 0.6), (1.0, -0.25, 0.6)], False),
}


def flown(wind, pieces, commanded=0.3):
    for duration_s, velocity, needed in pieces:
        for number in range(round(duration_s / STEP_S)):
            noise = 0.1 * (-1) ** number
            wind.measured(velocity + noise, complex(commanded), 0j, STEP_S, is_settled=True)
            wind.usable(needed, STEP_S, is_settled=True)


@pytest.mark.parametrize("name", FLIGHTS)
def test_a_drone_that_has_never_reported_motion_is_doubted_once_it_is_stopped(name):
    wind, (pieces, is_doubted) = ProvenWind(), FLIGHTS[name]
    flown(wind, pieces)
    assert not wind.is_unanswered
    wind.stopped()
    flown(wind, [(20.0, 0.0, 0.0)])
    assert wind.is_unanswered == is_doubted
    flown(wind, [(2.0, 0.3, 0.0)])
    assert not wind.is_unanswered


@pytest.mark.parametrize(
    ("commanded", "velocity", "is_doubted"), [(0.0, 0.05, False), (0.2, 0.12, False), (0.2, 0.05, True)]
)
def test_only_a_drone_that_is_asked_to_move_and_does_not_is_doubted(commanded, velocity, is_doubted):
    wind = ProvenWind()
    flown(wind, [(20.0, velocity, 0.6)], commanded)
    assert wind.is_unanswered == is_doubted


@pytest.mark.parametrize(
    ("drone", "wind", "gusts", "seed", "seconds"),
    [
        ("landing drone", 0.0, 0.3, 28, 12.0),
        ("landing drone", 0.0, 0.5, 7, 12.0),
        ("landing drone", 0.58, 0.3, 2, 25.0),
        ("AR.Drone", 0.58, 0.3, 2, 25.0),
        ("AR.Drone", 0.58, 0.3, 11, 25.0),
        ("AR.Drone", 0.58, 0.3, 26, 25.0),
        ("AR.Drone", 1.2, 0.2, 3, 25.0),
        ("AR.Drone", 1.6, 0.1, 1, 25.0),
        ("AR.Drone", 1.2, 0.0, 1, 25.0),
    ],
)
def test_a_drone_that_is_brought_back_to_its_place_in_wind_is_not_doubted(drone, wind, gusts, seed, seconds):
    place = [0.0, 0.0]

    def touch(body, now_s):
        place[:] = body.position[:2]

    def back(now_s):
        return BodyVelocity(*(-each * min(1.0, 0.3 / max(math.hypot(*place), 1e-9)) for each in place))

    conditions = Conditions(back, gusts=gusts, along_x=lambda now_s: wind, seed=seed, touch=touch)
    flight = fly(drone, conditions, seconds)
    assert flight.reasons == ()
    assert max(abs(each) for each in place) < 0.5


def at_wall(body, now_s):
    if body.position[0] > 0.5:
        body.position[0], body.velocity[0] = 0.5, min(0.0, body.velocity[0])


@pytest.mark.parametrize(
    ("conditions", "is_doubted"),
    [
        ({"lie": LIES["velocity 0, noise 100 mm/s"][0], "lie_from_s": -1.0}, True),
        ({"gusts": 0.5, "along_x": lambda now_s: -2.0}, False),
        ({"gusts": 0.1, "touch": at_wall}, False),
    ],
)
def test_a_landing_drone_is_doubted_at_the_stop_but_not_in_wind_or_at_a_wall(conditions, is_doubted):
    flight = fly("landing drone", Conditions(lambda now_s: BodyVelocity(0.3), stop_at_s=4.0, **conditions), 6.0)
    assert {each.is_doubted for each in flight.moments if each.time < 3.9} == {False}
    assert {each.is_doubted for each in flight.moments if each.time > 4.2} == {is_doubted}
