# SPDX-License-Identifier: Apache-2.0
"""Dead reckoning, and limits that lack a number. That limits hold: session/test_missing_numbers.py."""

import math

import pytest
from reporting_body import NORTH, QUANTITIES, ReportingBody

from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.motion.limits import Cause, LimitParameters, Limits
from drone_bridge.motion.observed_motion import LONGEST_GAP_S, ObservedMotion


@pytest.mark.parametrize("lacks", QUANTITIES)
def test_a_limit_is_blind_only_without_the_number_that_it_needs(lacks):
    blind = {}
    for limit in ("fence_radius", "max_height"):
        body = ReportingBody(**{limit: 3.0}, odometry_timeout=0.5, land_without_odometry=5.0)
        body.report()
        for _ in range(200):
            body.now_s += 0.1
            body.report(lacks)
            if body.limits.is_blind(body.now_s) and limit not in blind:
                blind[limit] = body.now_s
        assert (body.limits.landing_cause(6.0) is Cause.ODOMETRY) is (limit in blind)
    needs = {"position": {"fence_radius", "max_height"}, "yaw": {"fence_radius"}, "height": {"max_height"}}
    if lacks == "position":
        assert blind == {}, "it is dead reckoned by the velocity"
        return
    assert blind.keys() == needs.get(lacks, set())
    assert all(0.5 < since_s <= 0.7 for since_s in blind.values())


def test_a_height_is_counted_from_the_ground_below_and_not_from_odometry():
    observed = ObservedMotion(lambda: 0.0)
    limits = Limits(LimitParameters(max_height=3.0), observed)
    observed.measured(0.0, (0.0, 0.0, -5.0), height=0.0)
    observed.measured(0.0, (0.0, 0.0, 2.0), height=7.0)
    assert limits.limited(BodyVelocity(up=1.0), 0.0).up <= 0.0


def reckoned(*reports):
    """Return ObservedMotion after reports (time, velocity ahead) of a vehicle that heads north."""
    now_s = 0.0
    observed = ObservedMotion(lambda: now_s)
    for now_s, ahead in reports:  # noqa: B007 - read by the clock
        observed.measured(NORTH, velocity=None if ahead is None else (ahead, 0.0, 0.0))
    return observed


def test_dead_reckoning_covers_a_gap_by_the_mean_velocity():
    observed = reckoned((0.0, 0.0), (0.5, 2.0), (1.0, None), (4.5, 1.0))
    assert observed.newest.position == pytest.approx((0.0, 0.5 + 6.0, 0.0))
    assert observed.start == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(("modelled", "x"), [(0.0, 2.5), (0.5, 3.0), (-0.5, 2.5)])
def test_after_a_doubt_the_place_farther_from_the_start_counts(modelled, x):
    now_s = 0.0
    observed = ObservedMotion(lambda: now_s)
    for now_s in range(3):  # noqa: B007 - read by the clock
        observed.measured(0.0, velocity=(1.0, 0.0, 0.0))
    for now_s in (2.0, 2.5, 3.0, 3.5, 4.0):  # noqa: B007
        observed.doubted(0.0, (modelled, 0.0))
    observed.measured(0.0, velocity=(-0.5, 0.0, 0.0))
    assert observed.newest.position == pytest.approx((x, 0.0, 0.0))


@pytest.mark.parametrize(("gap_s", "uncertain_s"), [(0.9, 0.0), (4.0, 4.0)])
def test_a_fence_is_uncertain_after_a_long_gap_until_a_position(gap_s, uncertain_s):
    observed = reckoned((0.0, 1.0), (gap_s, 1.0))
    for parameters, expected_s in ((LimitParameters(fence_radius=3.0), uncertain_s), (LimitParameters(), 0.0)):
        assert Limits(parameters, observed).uncertain_s == expected_s
    observed.measured(NORTH, (0.0, 0.0, 0.0))
    assert observed.uncertain_s == 0.0


def test_hours_without_a_report_do_not_move_the_position_by_kilometres():
    observed = reckoned((0.0, 1.0), (3600.0, 0.0))
    assert observed.newest.position == pytest.approx((0.0, LONGEST_GAP_S / 2, 0.0))


def test_a_first_position_after_velocities_moves_the_start_there():
    observed = reckoned((0.0, 1.0), (1.0, 1.0))
    observed.measured(NORTH, (40.0, 51.0, 3.0))
    assert observed.start == pytest.approx((40.0, 50.0, 3.0))


def test_a_restart_forgets_times_and_keeps_start_and_position():
    now_s = 0.0
    observed = ObservedMotion(lambda: now_s)
    limits = Limits(LimitParameters(fence_radius=3.0, land_without_odometry=5.0), observed)
    observed.measured(0.0, (1.0, 0.0, 0.0))
    now_s = 10.0
    assert limits.landing_cause(now_s)
    observed.restart()
    assert not limits.landing_cause(now_s)
    assert limits.is_blind(now_s)
    assert observed.yaw is None
    observed.measured(0.0, velocity=(0.0, 0.0, 0.0))
    assert (observed.start, observed.newest.position) == ((1.0, 0.0, 0.0), (1.0, 0.0, 0.0))


def test_an_enormous_velocity_is_no_position():
    observed = reckoned((0.0, 1.7e308), (9.0, 1.7e308), (9.1, 1.7e308))
    assert observed.newest.position == (0.0, 0.0, 0.0)
    assert Limits(LimitParameters(fence_radius=3.0), observed).is_blind(9.1)


def test_a_stall_of_this_process_delays_a_landing():
    now_s, settled_at = 0.0, -math.inf
    observed = ObservedMotion(lambda: now_s, lambda: settled_at)
    limits = Limits(LimitParameters(fence_radius=3.0, odometry_timeout=0.5, land_without_odometry=5.0), observed)
    observed.measured(0.0, (1.0, 0.0, 0.0))
    assert limits.landing_cause(20.0)
    settled_at = 20.0
    assert not limits.landing_cause(25.0)
    assert limits.landing_cause(25.6)
    assert limits.is_blind(20.0)
