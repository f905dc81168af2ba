# SPDX-License-Identifier: Apache-2.0
"""Keys held down in teleop_twist_keyboard, at its defaults, under each vehicle's physics."""

import numpy as np
import pytest
import velocity_flights as measuring

from drone_bridge.motion.tilt_control import Velocity

SPEED, TURN = 0.5, 1.0
KEYS = {"i": Velocity(SPEED), ",": Velocity(-SPEED), "j": Velocity(yaw_rate=TURN), "l": Velocity(yaw_rate=-TURN)}
#: A Twist for each press, as often as a keyboard repeats it, and a zero after `key_timeout` without.
REPEAT_AFTER_S, REPEAT_S, KEY_TIMEOUT_S = 0.5, 1 / 30, 0.5
COMMAND_TIMEOUT_S = 0.5  # of the bridges


def published(presses):
    """Return what is published, with its times, for keys that are held down: (key, from, until), s."""
    said = []
    for key, from_s, until_s in presses:
        repeats = np.arange(from_s + REPEAT_AFTER_S, until_s, REPEAT_S)
        said += [(time_s, KEYS[key]) for time_s in (from_s, *repeats)]
        said.append((until_s + KEY_TIMEOUT_S, Velocity()))
    return said


def followed(said):
    """Return the velocity that a bridge follows, by time: the newest, while it is fresh."""

    def wanted(now_s):
        came = [(time_s, velocity) for time_s, velocity in said if time_s <= now_s]
        return came[-1][1] if came and now_s - came[-1][0] <= COMMAND_TIMEOUT_S else Velocity()

    return wanted


@pytest.mark.parametrize("name", measuring.VEHICLES)
def test_it_goes_to_a_point_and_back(name):
    make, winds, _ = measuring.VEHICLES[name]
    said = published([("i", 1.0, 5.0), (",", 9.0, 13.0)])
    flight = measuring.follow(make(max(winds), 48), followed(said), 17.0)
    there = flight[round(9.0 / measuring.STEP_S)].place - flight[0].place
    assert np.linalg.norm(there[:2]) == pytest.approx(SPEED * 4.5, rel=0.15)  # until the zero
    assert np.linalg.norm((flight[-1].place - flight[0].place)[:2]) < 0.3


@pytest.mark.parametrize("name", measuring.VEHICLES)
def test_it_turns_round_and_flies_on(name):
    make, winds, _ = measuring.VEHICLES[name]
    said = published([("j", 1.0, 3.0), ("i", 6.0, 8.0), ("l", 11.0, 13.0)])
    flight = measuring.follow(make(max(winds), 49), followed(said), 17.0)
    turned = np.unwrap([moment.yaw for moment in flight])
    assert 1.0 < turned[round(6.0 / measuring.STEP_S)] - turned[0] < 2.7  # some drones turn at 0.5 rad/s at most
    assert turned[-1] == pytest.approx(turned[0], abs=0.1)
