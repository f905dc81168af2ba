# SPDX-License-Identifier: Apache-2.0
"""Limits of velocities, without ROS: flights of a modelled drone, priorities, and each limit by itself."""

import math
import random
from collections import deque
from itertools import pairwise

import pytest

from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.motion.limits import FASTEST, LOW_BATTERY_S, Cause, LimitParameters, Limits
from drone_bridge.motion.observed_motion import ObservedMotion
from drone_bridge.motion.vectors import turned

FLIGHTS, GATE_FLIGHTS, PER_TEST = 400, 100, 50
FLIGHT_S, STEP_S = 40.0, 0.05
MAX_SPEED = 2.0
#: How far outside a fence, or above a height, a drone may be for a moment.
OUTSIDE_M = 1.0
STILL = (0.0, 0.0, 0.0)


def random_parameters(chance):
    return LimitParameters(max_speed=MAX_SPEED, max_height=chance.uniform(2, 8), fence_radius=chance.uniform(3, 15))


class Drone:
    """Follows velocities with a lag and a delay, in gusts, and tells where it is a little later, and now and then not.

    Its start is at a place of its own, as its odometry may begin anywhere.
    """

    def __init__(self, chance):
        self._chance = chance
        self._lag_s, self._strongest = chance.uniform(0.15, 0.5), chance.uniform(1.2, 4.0)
        self._told = deque([STILL] * chance.randint(1, 4))
        self.start = (chance.uniform(-50, 50), chance.uniform(-50, 50), 0.0)
        self.place, self.velocity = self.start, STILL
        self.yaw = chance.uniform(-math.pi, math.pi)
        self._gust = STILL
        self._late_steps = chance.randint(0, 3)
        self._measured = deque(maxlen=self._late_steps + 1)
        self._silent_until_s = 1.0
        self._period_s = chance.uniform(1 / 30, 0.1)
        self._due_s = 0.0

    def fly(self, velocity, turn):
        """Fly one step by a velocity in level axes with its heading, m/s, and a turn rate, rad/s."""
        chance = self._chance
        self._told.append(turned(velocity, self.yaw))
        wanted = self._told.popleft()
        self._gust = tuple(0.98 * each + chance.gauss(0, 0.02) for each in self._gust)
        change = [(a - b) / self._lag_s for a, b in zip(wanted, self.velocity, strict=True)]
        share = min(1.0, self._strongest / max(math.hypot(*change), 1e-9))
        self.velocity = tuple(v + share * c * STEP_S for v, c in zip(self.velocity, change, strict=True))
        moved = zip(self.place, self.velocity, self._gust, strict=True)
        self.place = tuple(p + (v + g) * STEP_S for p, v, g in moved)
        self.yaw += turn * STEP_S

    def tell(self, observed, now_s):
        """Tell where it was, unless the link is silent for a moment."""
        noisy = tuple(each + self._chance.gauss(0, 0.03) for each in self.place)
        speeds = tuple(v + g for v, g in zip(self.velocity, self._gust, strict=True))
        self._measured.append((self.yaw, noisy, turned(speeds, -self.yaw)))
        if now_s >= self._silent_until_s and self._chance.random() < 0.01:
            self._silent_until_s = now_s + self._chance.uniform(0.1, 1.5)
        if now_s < self._due_s or 1.0 < now_s < self._silent_until_s:
            return
        self._due_s += self._period_s
        observed.measured(*self._measured[0])


class Pilot:
    """Flies at full speed, mostly outwards, and turns."""

    def __init__(self, chance):
        self._chance = chance
        self._until_s = 0.0

    def wish(self, drone, now_s):
        chance = self._chance
        if now_s >= self._until_s:
            self._until_s = now_s + chance.uniform(1, 8)
            away = math.atan2(drone.place[1] - drone.start[1], drone.place[0] - drone.start[0])
            self._course = chance.choice((away, away + chance.gauss(0, 1), chance.uniform(-math.pi, math.pi)))
            self._speed = chance.choice((0.5, MAX_SPEED, 2 * MAX_SPEED, 10.0))
            self._climb = chance.choice((0.0, -0.5, 1.0, MAX_SPEED))
            self._turn = chance.choice((0.0, 0.0, chance.uniform(-1.5, 1.5)))
        world = self._speed * math.cos(self._course), self._speed * math.sin(self._course), self._climb
        return turned(world, -drone.yaw), self._turn


def outside_m(parameters, drone):
    """Return the distance of the drone beyond its limits, m; negative inside."""
    x, y, z = (a - b for a, b in zip(drone.place, drone.start, strict=True))
    return max(z - parameters.max_height, math.hypot(x, y) - parameters.fence_radius)


def fly(seed):
    """Return how far outside the drone was at most, m, and how fast it was told to fly, m/s."""
    chance = random.Random(seed)
    parameters = random_parameters(chance)
    now_s = 0.0
    observed = ObservedMotion(clock=lambda: now_s)
    limits, drone, pilot = Limits(parameters, observed), Drone(chance), Pilot(chance)
    farthest = fastest = -math.inf
    for step in range(round(FLIGHT_S / STEP_S)):
        now_s = step * STEP_S
        drone.tell(observed, now_s)
        velocity, turn = pilot.wish(drone, now_s)
        allowed = STILL if limits.is_blind(now_s) else limits.limited(BodyVelocity(*velocity), now_s).linear
        drone.fly(allowed, turn)
        farthest, fastest = max(farthest, outside_m(parameters, drone)), max(fastest, math.hypot(*allowed))
    return farthest, fastest


@pytest.mark.parametrize(
    "first",
    [
        pytest.param(first, marks=[pytest.mark.exhaustive] * (first >= GATE_FLIGHTS))
        for first in range(0, FLIGHTS, PER_TEST)
    ],
)
def test_no_flight_goes_far_outside(first):
    flights = [(*fly(seed), seed) for seed in range(first, first + PER_TEST)]
    assert max(flights)[0] <= OUTSIDE_M, max(flights)
    assert max(fastest for _, fastest, _ in flights) <= MAX_SPEED + 1e-9
    assert max(farthest for farthest, _, _ in flights) > 0.0  # or no edge was ever reached


class Stood:
    """Limits of a vehicle that looks along the world's y, at a place in m from its start. It has stood there before."""

    START = (40.0, -7.0, 20.0)

    def __init__(self, place=STILL, height=None, velocity=STILL, **parameters):
        self.now_s = 0.0
        self.observed = ObservedMotion(clock=lambda: self.now_s)
        self.limits = Limits(LimitParameters(**parameters), self.observed)
        for each in (STILL, place):
            position = tuple(a + b for a, b in zip(self.START, each, strict=True))
            self.observed.measured(math.pi / 2, position, velocity, height)

    def allowed(self, velocity):
        return self.limits.limited(BodyVelocity(*velocity), self.now_s).linear


def test_a_fast_command_keeps_its_direction():
    assert Stood(max_speed=2.0).allowed((3.0, 0.0, 4.0)) == pytest.approx((1.2, 0.0, 1.6))
    assert Stood().allowed((30.0, 0.0, 0.0)) == (30.0, 0.0, 0.0)  # zero is no limit


def test_a_fence_never_blocks_flying_back_or_landing_or_along_it():
    stood = Stood((0.0, 5.4, 1.0), fence_radius=5.0)
    assert stood.allowed((2.0, 0.0, 0.0))[0] < 0.0  # outwards, as it looks: it is turned back
    assert stood.allowed(STILL) == STILL  # but not by itself
    assert stood.allowed((0.0, 0.0, -1.0))[2] == -1.0
    assert stood.allowed((-2.0, 0.0, 0.0)) == pytest.approx((-2.0, 0.0, 0.0))
    assert abs(stood.allowed((0.0, 2.0, 0.0))[1]) > 1.5


@pytest.mark.parametrize("report_every", [1, 2])
def test_an_edge_is_approached_without_alternating_commands(report_every):
    """By a vehicle that follows at once: its dead reckoning would miss what it moves between two reports."""
    stood, x, speed, commands = Stood(fence_radius=5.0), 0.0, 0.0, []
    for number in range(1200):
        stood.now_s = number * STEP_S
        if not number % report_every:
            stood.observed.measured(math.pi / 2, velocity=(speed, 0.0, 0.0))
        speed = stood.allowed((2.0, 0.0, 0.0))[0]
        commands.append(speed)
        x += speed * STEP_S
    assert max(later - earlier for earlier, later in pairwise(commands)) < 0.2
    assert 4.5 < x <= 5.0 + 2.0 * STEP_S * report_every


def test_a_fence_is_published_with_its_corners_around_the_start():
    assert Stood().limits.fence == []
    stood = Stood((4.0, 0.0, 0.0), fence_radius=5.0)
    stood.observed.restart()  # it stays where it is, when the link is a new one
    stood.observed.measured(0.0, (stood.START[0] + 4.5, *stood.START[1:]))
    (x, y, _), corners = Stood.START, stood.limits.fence
    assert [math.hypot(a - x, b - y) for a, b in corners] == pytest.approx([5.0] * len(corners))
    assert corners[0] == (x + 5.0, y)
    assert corners[1][1] > y  # counterclockwise
    assert Limits(LimitParameters(fence_radius=5.0), ObservedMotion(lambda: 0.0)).fence == []  # nobody knows where


def test_the_height_ends_climbing_and_nothing_else():
    low, high, on_hill = (
        Stood((0.0, 0.0, z), height, max_height=3.0) for z, height in ((0.5, None), (3.0, None), (9.0, 3.0))
    )
    assert low.allowed((0.0, 0.0, 1.0)) == pytest.approx((0.0, 0.0, 1.0))
    assert high.allowed((1.0, 0.0, 1.0)) == pytest.approx((1.0, 0.0, 0.0), abs=0.01)
    assert high.allowed((1.0, 0.0, -1.0)) == pytest.approx((1.0, 0.0, -1.0))
    assert on_hill.allowed((0.0, 0.0, 1.0))[2] <= 0.0  # of 6 m: only its height above the ground counts


def test_missing_odometry_affects_only_limits_that_need_it():
    assert not Limits(LimitParameters(max_speed=2.0), ObservedMotion(lambda: 0.0)).is_blind(0.0)
    needing = LimitParameters(fence_radius=5.0, odometry_timeout=0.5, land_without_odometry=5.0)
    silent = Limits(needing, ObservedMotion(lambda: 0.0))
    assert silent.is_blind(0.0)
    assert not silent.landing_cause(1e6)  # it may never have flown
    limits = Stood(fence_radius=5.0, odometry_timeout=0.5, land_without_odometry=5.0).limits
    assert [limits.is_blind(now_s) for now_s in (0.4, 0.6)] == [False, True]
    assert [limits.landing_cause(now_s) for now_s in (5.4, 5.6)] == [None, Cause.ODOMETRY]
    assert not Stood(fence_radius=5.0, land_without_odometry=0.0).limits.landing_cause(1e6)
    assert not Stood(land_without_odometry=5.0).limits.landing_cause(1e6)


@pytest.mark.parametrize(
    ("is_told_so", "charge", "lands"), [(True, 0.1, True), (True, 0.3, False), (False, 0.1, False)]
)
def test_a_lasting_low_battery_lands_if_configured(is_told_so, charge, lands):
    parameters = LimitParameters(low_battery=0.2, land_on_low_battery=is_told_so)
    limits = Limits(parameters, ObservedMotion(lambda: 0.0))
    for now_s in (0.0, 0.9, 1.8):
        assert not limits.landing_cause(now_s)
        limits.charged(charge, now_s)
    assert not limits.landing_cause(LOW_BATTERY_S - 0.1)
    assert (limits.landing_cause(LOW_BATTERY_S) is Cause.BATTERY) is lands
    assert limits.is_battery_low(LOW_BATTERY_S) is (charge == 0.1)
    assert bool(limits.takeoff_refusal) is lands


def test_a_short_voltage_sag_causes_no_landing():
    limits = Limits(LimitParameters(low_battery=0.2, land_on_low_battery=True), ObservedMotion(lambda: 0.0))
    for step in range(400):
        now_s = step / 15
        limits.charged(0.15 if step % 15 < 4 else 0.5, now_s)
        assert not limits.landing_cause(now_s)
    assert limits.takeoff_refusal == ""


def braked(distance_m, ahead_s=0.8):
    """Return the speed with which a vehicle still stops in time, m/s, at 1 m/s^2 after its reaction."""
    return math.sqrt(ahead_s**2 + 2.0 * distance_m) - ahead_s


@pytest.mark.parametrize("left_m", [0.1, 0.7, 3.0])
@pytest.mark.parametrize("late_s", [0.0, 0.25])
def test_an_edge_is_approached_as_fast_as_can_be_braked(left_m, late_s):
    limit = braked(left_m, 0.8 + late_s)
    asked = (limit + left_m / (0.8 + late_s)) / 2.0  # it does not reach the edge before it is braked
    fenced = Stood((0.0, 5.0 - left_m, 1.0), fence_radius=5.0)
    low = Stood((0.0, 0.0, 3.0 - left_m), max_height=3.0)
    on_hill = Stood((0.0, 0.0, 9.0), 3.0 - left_m, max_height=3.0)
    fenced.now_s = low.now_s = on_hill.now_s = late_s
    assert fenced.allowed((asked, 0.0, 0.0)) == pytest.approx((limit, 0.0, 0.0), abs=1e-6)
    for limited in (low, on_hill):
        assert limited.allowed((0.0, 0.0, asked)) == pytest.approx((0.0, 0.0, limit), abs=1e-6)


@pytest.mark.parametrize(("outside_m", "back"), [(0.0, 0.0), (0.27, 0.15), (0.9, 0.9), (9.0, 1.0)])
def test_a_command_outwards_turns_back_outside(outside_m, back):
    ahead, level = Stood((0.0, 5.0 + outside_m, 1.0), fence_radius=5.0), pytest.approx((-back, 0.0, 0.0), abs=1e-3)
    assert ahead.allowed((10.0, 0.0, 0.0)) == level
    above = Stood((0.0, 0.0, 3.0 + outside_m), max_height=3.0)
    assert above.allowed((0.0, 0.0, 10.0)) == pytest.approx((0.0, 0.0, -back), abs=1e-3)


def test_a_vehicle_that_is_faster_than_its_command_is_braked():
    for flown, allowed in ((1.5, -0.4), (0.6, 0.5)):
        moving = Stood((0.0, 4.2, 0.0), velocity=(flown, 0.0, 0.0), fence_radius=5.0)
        assert moving.allowed((0.5, 0.0, 0.0)) == pytest.approx((allowed, 0.0, 0.0))
    limit = braked(0.7)
    nearly = Stood((0.0, 4.3, 0.0), velocity=(limit + 0.1, 0.0, 0.0), fence_radius=5.0)
    assert nearly.allowed((0.7, 0.0, 0.0)) == pytest.approx((limit, 0.0, 0.0), abs=1e-3)


def test_a_vehicle_without_a_reported_velocity_counts_as_standing():
    observed = ObservedMotion(lambda: 0.0)
    for place in (STILL, (3.0, 3.0, 2.5)):
        observed.measured(0.0, place)
    limits = Limits(LimitParameters(fence_radius=math.hypot(3.0, 3.0) + 0.5, max_height=3.0), observed)
    outwards = BodyVelocity(0.2, 0.2, 0.3)
    assert limits.limited(outwards, 0.0) is outwards


def test_a_heading_of_zero_is_one_and_a_maximum_height_needs_none():
    for yaw, place, parameters, asked, allowed in (
        (0.0, (4.3, 0.0, 0.0), {"fence_radius": 5.0}, (0.7, 0.0, 0.0), (braked(0.7), 0.0, 0.0)),
        (None, (0.0, 0.0, 2.3), {"max_height": 3.0}, (0.7, 0.0, 0.7), (0.7, 0.0, braked(0.7))),
    ):
        observed = ObservedMotion(lambda: 0.0)
        for each in (STILL, place):
            observed.measured(yaw, each)
        found = Limits(LimitParameters(**parameters), observed).limited(BodyVelocity(*asked), 0.0)
        assert found.linear == pytest.approx(allowed, abs=1e-6)


def test_position_limits_do_not_apply_while_they_are_blind():
    stood = Stood((0.0, 5.4, 3.4), fence_radius=5.0, max_height=3.0, max_speed=2.0)
    stood.now_s = 0.5
    assert stood.allowed((4.0, 0.0, 0.0))[0] < 0.0
    stood.now_s = 0.625
    assert stood.allowed((4.0, 0.0, 0.0)) == (2.0, 0.0, 0.0)


def test_doubted_odometry_counts_as_missing_but_starts_no_landing():
    now_s = 0.0
    observed = ObservedMotion(lambda: now_s)
    limits = Limits(LimitParameters(fence_radius=5.0, land_without_odometry=5.0), observed)
    observed.doubted()
    assert limits.is_blind(now_s)
    observed.measured(0.0, position=(1.0, 0.0, 1.0))
    for now_s in range(20):
        observed.doubted()
        assert limits.is_blind(now_s)
        assert not limits.landing_cause(now_s)
        assert limits.is_doubted(now_s)
    observed.measured(0.0, position=(1.0, 0.0, 1.0))
    assert not limits.is_blind(now_s)
    assert not limits.is_doubted(now_s)


@pytest.mark.parametrize(
    ("parameters", "places", "missing"),
    [
        ({}, (), ()),
        ({"max_height": 3.0}, ("max_height",), ("position",)),
        ({"fence_radius": 0.5}, ("fence_radius",), ("position", "heading")),
        ({"max_height": 0.5, "fence_radius": 3.0}, ("max_height", "fence_radius"), ("position", "heading")),
    ],
)
def test_each_position_limit_needs_its_reports(parameters, places, missing):
    parameters = LimitParameters(**parameters)
    assert (parameters.of_places, parameters.need_odometry) == (places, bool(places))
    limits = Limits(parameters, ObservedMotion(lambda: 0.0))
    assert (limits.missing, limits.stale(0.0), limits.is_blind(0.0)) == (missing, missing, bool(missing))


def test_each_report_becomes_stale_by_itself():
    stood = Stood(STILL, 1.0, max_height=3.0, fence_radius=3.0)
    assert stood.limits.stale(0.5) == ()
    assert stood.limits.stale(0.625) == ("position", "heading", "height")
    stood.now_s = 0.5
    stood.observed.measured(position=STILL)
    assert stood.limits.stale(0.625) == ("heading", "height")
    assert stood.limits.missing == ()


def test_a_gap_makes_a_place_in_a_fence_uncertain():
    for radius, uncertain_s in ((3.0, 2.0), (0.0, 0.0)):
        stood = Stood(fence_radius=radius)
        assert stood.limits.uncertain_s == 0.0
        stood.now_s = 2.0
        stood.observed.measured(math.pi / 2, velocity=STILL)
        assert stood.limits.uncertain_s == uncertain_s


def test_a_way_that_nobody_saw_makes_a_fence_smaller_and_then_blind():
    for radius, is_lost in ((3.0, True), (5.0, False), (0.0, False)):
        stood = Stood(fence_radius=radius, max_height=99.0)
        assert (stood.limits.unseen_m, stood.limits.is_blind(0.0)) == (0.0, False)
        widest = max(x for x, _ in stood.limits.fence) if radius else math.inf
        stood.observed.moved_unseen(1.0)
        if radius:
            assert max(x for x, _ in stood.limits.fence) == pytest.approx(widest - 1.0)
            assert stood.allowed((9.0, 0.0, 0.0)) == Stood(fence_radius=radius - 1.0).allowed((9.0, 0.0, 0.0))
        stood.observed.moved_unseen(2.0)
        assert stood.limits.unseen_m == (3.0 if radius else 0.0)
        assert stood.limits.is_fence_lost is stood.limits.is_blind(0.0) is is_lost
        assert bool(stood.limits.fence) is (radius == 5.0)
    small = Stood(fence_radius=0.5)
    assert small.limits.fence
    small.observed.moved_unseen(1.0)
    assert small.limits.is_fence_lost


@pytest.mark.parametrize(
    ("settled_at", "doubted_at", "land_at"), [(-1.0, None, 5.5), (2.0, None, 7.5), (2.0, 3.0, 8.5)]
)
def test_missing_odometry_lands_after_the_oldest_needed_report(settled_at, doubted_at, land_at):
    now_s = 0.0
    observed = ObservedMotion(lambda: now_s, lambda: settled_at)
    limits = Limits(LimitParameters(fence_radius=5.0, land_without_odometry=5.0), observed)
    observed.measured(0.0, STILL)
    now_s = 1.0
    observed.measured(position=STILL)  # without a heading
    if doubted_at:
        now_s = doubted_at
        observed.doubted()
    assert limits.land_at == land_at
    assert [limits.landing_cause(at_s) for at_s in (land_at - 0.125, land_at)] == [None, Cause.ODOMETRY]
    limits.start(land_at + 59.875)
    assert limits.land_at == land_at
    limits.start(land_at + 60.0)
    assert limits.land_at == math.inf


def test_an_old_low_battery_is_forgotten_with_a_new_connection():
    limits = Limits(LimitParameters(low_battery=0.5, land_on_low_battery=True), ObservedMotion(lambda: 0.0))
    assert (limits.takeoff_refusal, limits.landing_cause(1e6)) == ("", None)
    limits.charged(0.5, 0.0)
    assert limits.takeoff_refusal == ""
    limits.charged(0.25, 1.0)
    limits.charged(0.25, 2.0)
    assert "25%" in limits.takeoff_refusal
    assert "50%" in limits.takeoff_refusal
    assert [limits.is_battery_low(now_s) for now_s in (2.875, 3.0)] == [False, True]
    limits.start(61.875)
    assert limits.landing_cause(62.0) is Cause.BATTERY
    limits.start(62.0)
    assert (limits.takeoff_refusal, limits.landing_cause(1e6)) == ("", None)


def test_a_lowered_limit_ends_a_low_battery():
    limits = Limits(LimitParameters(low_battery=0.5, land_on_low_battery=True), ObservedMotion(lambda: 0.0))
    limits.charged(0.25, 0.0)
    limits.parameters = LimitParameters(low_battery=0.25, land_on_low_battery=True)
    assert (limits.is_battery_low(5.0), limits.takeoff_refusal) == (False, "")


def test_a_modelled_place_needs_a_heading_and_counts_along_both_axes():
    stood = Stood(fence_radius=5.0)
    stood.observed = ObservedMotion(clock=lambda: stood.now_s)
    limits = Limits(LimitParameters(fence_radius=5.0), stood.observed)
    for stood.now_s in range(3):
        stood.observed.measured(math.pi / 2, velocity=(1.0, 0.0, 0.0))
    for stood.now_s in range(3, 8):
        stood.observed.doubted(math.pi / 2, (0.0, 0.0))
    assert limits.returning(BodyVelocity(-1.0, -0.1), stood.now_s) is not None
    assert limits.returning(BodyVelocity(1.0), stood.now_s) is None
    stood.observed.restart()
    for stood.now_s in range(8, 13):
        stood.observed.doubted()
        assert limits.returning(BodyVelocity(-1.0), stood.now_s) is None


def test_a_drone_that_nobody_commands_lands_after_its_first_report_of_flight():
    unlimited = Limits(LimitParameters(), ObservedMotion(lambda: 0.0))
    unlimited.flew(True, 1.0)
    assert unlimited.landing_cause(1e6) is None
    limits = Limits(LimitParameters(land_unattended=5.0), ObservedMotion(lambda: 0.0))
    assert not limits.flies
    assert not limits.is_grounded
    assert limits.landing_cause(1e6) is None
    limits.flew(True, 1.0)
    limits.flew(True, 3.0)
    assert limits.flies
    assert not limits.is_grounded
    assert [limits.landing_cause(now_s) for now_s in (5.875, 6.0)] == [None, Cause.UNATTENDED]
    assert [limits.landing_cause(now_s, 2.0) for now_s in (6.875, 7.0)] == [None, Cause.UNATTENDED]
    limits.start(62.875)
    assert limits.flies
    limits.start(63.0)
    assert not limits.flies
    limits.flew(True, 64.0)
    limits.flew(False, 65.0)
    assert not limits.flies
    assert limits.is_grounded


def test_a_vehicle_that_reports_positions_may_not_return_by_a_model():
    stood = Stood(fence_radius=5.0)
    for stood.now_s in range(5):
        stood.observed.doubted(0.0, (0.0, 0.0))
        assert stood.limits.returning(BodyVelocity(-1.0), stood.now_s) is None


def test_a_vehicle_with_a_doubted_place_may_return_slowly_after_it_has_braked():
    now_s = 0.0
    observed = ObservedMotion(lambda: now_s)
    limits = Limits(LimitParameters(fence_radius=5.0), observed)
    for now_s in range(4):  # noqa: B007 - read by the clock
        observed.measured(0.0, velocity=(1.0, 0.0, 0.0))
    returns = BodyVelocity(-1.0, 0.5, up=0.5)
    for since_s in range(40):
        now_s = 4.0 + 0.1 * since_s
        observed.doubted(0.0, (0.0, 0.0))
        assert limits.is_blind(now_s)
        assert (limits.returning(returns, now_s) is not None) == (0.1 * since_s >= 3.0)
    slow = limits.returning(returns, now_s)
    assert math.hypot(*slow.linear) == pytest.approx(0.3)
    assert (slow.forward, slow.up) == (pytest.approx(-2.0 * slow.left), 0.0)
    for refused in (BodyVelocity(1.0), BodyVelocity(0.0, 1.0), BodyVelocity(up=-1.0), BodyVelocity()):
        assert limits.returning(refused, now_s) is None
    assert limits.returning(returns, now_s + 0.6) is None, "its reports are missing"


@pytest.mark.parametrize("speed", [1e200, 1.7e308])
@pytest.mark.parametrize("yaw", [0.0, 2.0])
def test_an_enormous_velocity_stays_finite(speed, yaw):
    observed = ObservedMotion(lambda: 0.0)
    observed.measured(yaw, (0.0, 0.0, 0.0), STILL, 0.0)
    for parameters in (LimitParameters(fence_radius=5.0, max_height=3.0), LimitParameters()):
        allowed = Limits(parameters, observed).limited(BodyVelocity(-speed, -speed, speed), 0.0)
        assert math.hypot(*allowed.linear) <= FASTEST * (1 + 1e-9)
