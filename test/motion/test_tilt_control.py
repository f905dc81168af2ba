# SPDX-License-Identifier: Apache-2.0
"""Velocity control of drones that are commanded by tilt, with the physics of both emulators and data on the wire."""

import math

import numpy as np
import pytest
import velocity_flights as measuring
from velocity_flights import GuiDrone, LandingDrone

from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.motion.tilt_control import BLIND_TILT_SHARE, TiltControl
from drone_bridge.motion.tilted_drone import Motion, Shares, TiltedDrone

DRONE = TiltedDrone(max_tilt=0.3, max_climb=1.0, max_yaw_rate=1.0)
#: Farthest way to stand after a zero, m, by speed.
STANDS_WITHIN_M = {0.5: 0.4, 1.5: 1.3, 2.0: 2.0}
#: Not used to choose gains.
SEEDS = (41, 42)


@pytest.mark.parametrize(
    "speed", [pytest.param(speed, marks=[pytest.mark.exhaustive] * (speed != 1.5)) for speed in STANDS_WITHIN_M]
)
@pytest.mark.parametrize(
    ("make", "gusts", "drift"),
    [(GuiDrone, 0.0, 0.05), (GuiDrone, 0.3, 0.2), (LandingDrone, 0.0, 0.1), (LandingDrone, 0.3, 0.2)],
)
def test_a_velocity_is_flown_and_zero_stops(make, gusts, drift, speed):
    for seed in SEEDS if gusts else SEEDS[:1]:
        found = measuring.stop(make(gusts, seed), speed)
        assert found.speed == pytest.approx(speed, rel=0.1)
        assert found.way < STANDS_WITHIN_M[speed]
        assert found.drift < drift


def test_far_ground_is_measured_worse():
    assert measuring.stop(LandingDrone(0.0, 43, height=5.0), 0.5).drift < 0.15


@pytest.mark.parametrize("make", [GuiDrone, LandingDrone])
@pytest.mark.parametrize(("delay_s", "way", "drift"), [(0.1, 1.5, 0.2), (0.2, 2.0, 0.3)])
@pytest.mark.parametrize("gusts", [pytest.param(0.0, marks=pytest.mark.exhaustive), 0.3])
def test_a_late_link_does_no_harm(make, delay_s, way, drift, gusts):
    """`delay_s` each way: a command affects the measurements after twice that, and the drone's own lag."""
    for seed in SEEDS:
        flight = measuring.fly(
            make(gusts, seed), lambda s: BodyVelocity(1.5 if s < 5.0 else 0.0), 18.0, delay_s=delay_s
        )
        at = {s: round(s / measuring.STEP_S) for s in (2, 5, 8)}
        assert max(moment.forward for moment in flight) < 1.4 * 1.5
        assert np.mean([moment.forward for moment in flight[at[2] : at[5]]]) == pytest.approx(1.5, rel=0.1)
        assert measuring.farthest(flight[at[5] : at[8]]) < way
        assert measuring.farthest(flight[at[8] :]) < drift + gusts


@pytest.mark.parametrize("make", [GuiDrone, LandingDrone])
def test_turns_do_not_speed_it_up_and_zero_keeps_the_heading(make):
    wanted = BodyVelocity(1.0, turn=0.5)
    flight = measuring.fly(make(0.0, 45), lambda s: wanted if s < 5.0 else BodyVelocity(), 9.0)
    second = round(1.0 / measuring.STEP_S)
    speeds = [float(np.linalg.norm(moment.velocity[:2])) for moment in flight[2 * second : 5 * second]]
    assert np.mean(speeds) == pytest.approx(1.0, rel=0.04)
    assert math.remainder(flight[-1].yaw - flight[0].yaw, math.tau) == pytest.approx(2.5, abs=0.06)


@pytest.mark.parametrize("make", [GuiDrone, LandingDrone])
def test_it_climbs_as_commanded_and_keeps_its_height(make):
    flight = measuring.fly(make(0.0, 46), lambda s: BodyVelocity(up=0.4 if s < 3.0 else 0.0), 10.0)
    second = round(1.0 / measuring.STEP_S)
    heights = [moment.place[2] for moment in flight]
    assert heights[3 * second] - heights[2 * second] == pytest.approx(0.4, abs=0.06)
    assert heights[-1] - heights[0] == pytest.approx(1.2, abs=0.1)
    assert max(heights[-3 * second :]) - min(heights[-3 * second :]) < 0.06


@pytest.mark.parametrize("make", [GuiDrone, LandingDrone])
@pytest.mark.parametrize("gusts", [0.0, 0.3])
def test_feedback_that_is_lost_in_flight_stops_it_by_the_estimate(make, gusts):
    flight = measuring.fly(make(gusts, 47), lambda s: BodyVelocity(1.5 if s < 4.0 else 0.0), 8.0, lost_s=4.0)
    assert measuring.farthest(flight[round(4.0 / measuring.STEP_S) :]) < 2.0


def test_drone_tilts_gently_to_the_commanded_speed_without_feedback():
    control = TiltControl(DRONE)
    told = [control.command(BodyVelocity(forward=0.3), 0.05, is_blind=True) for _ in range(200)]
    assert 0.9 * BLIND_TILT_SHARE < max(shares.pitch for shares in told) <= BLIND_TILT_SHARE
    # At an end, tilt is what drag takes.
    assert told[-1].pitch * DRONE.max_tilt == pytest.approx(0.3 * DRONE.drag / 9.81, rel=0.01)
    braking = [control.command(BodyVelocity(), 0.05, is_blind=True) for _ in range(200)]
    assert min(shares.pitch for shares in braking) >= -BLIND_TILT_SHARE
    assert braking[-1] == pytest.approx(Shares(), abs=1e-3)


def test_shares_stay_within_1_for_any_command_and_measurement():
    control = TiltControl(DRONE)
    for number in range(200):
        control.measure(Motion((-1) ** number * 1e3, 1e3, (-1) ** number * 1e3, number))
        shares = control.command(BodyVelocity(1e6, -1e6, 1e6, turn=-1e6), 0.05)
        assert math.hypot(shares.pitch, shares.roll) <= 1.001
        assert all(math.isfinite(share) and abs(share) <= 1.0 for share in shares)


@pytest.mark.parametrize(
    "wanted", [BodyVelocity(9.0), BodyVelocity(-9.0), BodyVelocity(0.0, 9.0), BodyVelocity(0.0, -9.0)]
)
def test_a_tilt_that_is_saturated_along_one_axis_is_full_and_no_more(wanted):
    """Rounded to 1.0000000000000002 it could not be sent."""
    for degrees in range(1, 60):
        control = TiltControl(TiltedDrone(max_tilt=math.radians(degrees), max_climb=1.0, max_yaw_rate=1.0))
        control.measure(Motion(0.0, 0.0, 1.0, 0.0))
        told = [control.command(wanted, 0.05) for _ in range(50)]
        assert max(max(abs(shares.pitch), abs(shares.roll)) for shares in told) <= 1.0
        assert max(math.hypot(shares.pitch, shares.roll) for shares in told) > 0.2


def test_an_overflowing_velocity_raises_no_error():
    """Its length is infinite."""
    control = TiltControl(DRONE)
    shares = control.command(BodyVelocity(1.7e308, 1.7e308, 1.7e308, turn=1.7e308), 0.05)
    assert all(abs(share) <= 1.0 for share in shares)


def test_nan_is_not_clamped_to_full_deflection():
    control = TiltControl(DRONE)
    control.measure(Motion(math.nan, 0.0, 1.0, 0.0))
    shares = control.command(BodyVelocity(1.0), 0.05)
    assert math.isnan(shares.pitch)
