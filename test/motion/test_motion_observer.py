# SPDX-License-Identifier: Apache-2.0
"""MotionObserver: wrong reports are detected and bounded, and correct ones raise no doubt."""

import math
from collections import deque
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
import velocity_flights as measuring
from hypothesis import example, given
from hypothesis import strategies as st
from velocity_flights import GuiDrone, LandingDrone

from drone_bridge.ar_drone import flight as gui_emulator
from drone_bridge.motion.belief import AGREEMENT_S, DOUBT_S, Belief
from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.motion.judged_level import JudgedLevel
from drone_bridge.motion.judged_speed import AGAINST, LONGEST_STEP_S, JudgedSpeed
from drone_bridge.motion.tilt_control import BLIND_TILT_SHARE
from drone_bridge.motion.tilted_drone import GRAVITY, Motion, Shares, TiltedDrone, pull_of
from drone_bridge.motion.wind import Wind
from drone_bridge.session.arbiter import Decision, Rank
from drone_bridge.session.tilt_pilot import TiltPilot
from drone_bridge.telemetry.vehicle.emulator import flight as landing_emulator

STEP_S = 0.05
VEHICLES = (GuiDrone, LandingDrone)
exhaustive = pytest.mark.exhaustive


# Beliefs and levels.


def test_contradiction_is_doubted_after_a_while_until_agreement():
    belief = Belief()
    for _ in range(round(DOUBT_S / STEP_S)):
        belief.judge("wrong", STEP_S)
        assert not belief.reason
    belief.judge("wrong", STEP_S)
    assert belief.reason == "wrong"
    for _ in range(round(AGREEMENT_S / STEP_S) - 1):
        belief.judge("", STEP_S)
        assert belief.reason
    belief.judge("", STEP_S)
    assert not belief.reason


def test_every_second_measurement_that_is_wrong_is_doubted():
    belief = Belief()
    for number in range(40):
        belief.judge("wrong" if number % 2 else "", STEP_S)
    assert belief.reason


def levels(measured):
    """Return a level by these measurements."""
    level, values = JudgedLevel(0.3, 0.2, 1.0), []
    for each in measured:
        level.observe(each, 0.0, STEP_S)
        values.append(level.value)
    return values


@pytest.mark.parametrize("wrong", [0.0, 1.6, 100.0])
@pytest.mark.parametrize("blocks", [1, 3])
def test_repeated_glitches_have_no_effect(wrong, blocks):
    values = levels(([1.0] * 10 + [wrong] * blocks) * 20)
    assert set(values) == {1.0}


def test_a_table_below_the_drone_is_a_new_level_and_raises_no_doubt():
    values = levels([1.5] * 10 + [0.8] * 20 + [0.85] * 5)
    assert values[:-5] == pytest.approx([1.5] * 30)
    assert values[-1] == pytest.approx(1.55)


# Honest flights, by the physics of both emulators.


def windy(make, gusts, *, drag=1.0, wind=(3.2, -2.4, 0.0), seed=5, monkeypatch=None):
    """Return a drone in wind, whose air drag is not quite that of the model."""
    if monkeypatch:
        monkeypatch.setattr(gui_emulator, "DRAG", 0.4 * drag)
        monkeypatch.setattr(landing_emulator, "HORIZONTAL_DRAG", 0.4 * drag)
    vehicle, air = make(0.0, seed), Wind(wind, gusts, seed=seed, third_share=0.3)
    if make is GuiDrone:
        vehicle._flight._wind = air
    else:
        vehicle._flight.world.wind = air
    return vehicle


def tour(now_s):
    """Return velocities in all directions, and stops."""
    legs = (
        *(BodyVelocity(1.0), BodyVelocity(), BodyVelocity(-1.0, 0.5), BodyVelocity(2.0), BodyVelocity()),
        *(BodyVelocity(0.0, -1.0, turn=0.3), BodyVelocity(0.3, up=0.3), BodyVelocity(up=-0.3)),
    )
    return legs[int(now_s / 5.0) % len(legs)]


def doubts(flight):
    return {doubt for moment in flight for doubt in moment.doubts}


@pytest.mark.parametrize("make", VEHICLES)
@pytest.mark.parametrize("drag", [0.7, pytest.param(1.0, marks=exhaustive), 1.3])
@pytest.mark.parametrize("gusts", [pytest.param(0.3, marks=exhaustive), 1.0])
def test_gusts_are_no_lies(make, drag, gusts, monkeypatch):
    """In 4 m/s of wind; ten minutes in all."""
    vehicle = windy(make, gusts, drag=drag, monkeypatch=monkeypatch)
    assert not doubts(measuring.fly(vehicle, tour, 50.0))


class Touched:
    """Obstructed drone: `hold` changes the body of its emulator after each step."""

    def __init__(self, vehicle, hold):
        self._vehicle, self._hold, self._time_s = vehicle, hold, 0.0
        self.drone, self.rate, self.hovers = vehicle.drone, vehicle.rate, vehicle.hovers
        self.follow, self.state = vehicle.follow, vehicle.state
        self._body = vehicle._flight if isinstance(vehicle, GuiDrone) else vehicle._flight.drone

    def advance(self):
        motion = self._vehicle.advance()
        self._time_s += measuring.STEP_S
        self._hold(self._body, self._time_s)
        return motion


@pytest.mark.parametrize("make", VEHICLES)
def test_a_drone_that_a_hand_carries_raises_no_doubt_but_of_its_speed(make):
    def carry(body, now_s):
        body.velocity[:] = np.sin(now_s), np.cos(1.3 * now_s), 0.0
        body.roll = body.pitch = 0.3 * math.sin(2.0 * now_s)

    vehicle = Touched(windy(make, 0.0, wind=(0.0, 0.0, 0.0)), carry)
    assert doubts(measuring.fly(vehicle, lambda s: BodyVelocity(), 20.0)) <= {AGAINST}


@pytest.mark.parametrize("make", VEHICLES)
def test_a_table_below_a_drone_that_climbs_again_is_no_lie(make):
    def script(now_s):
        return BodyVelocity(up=-0.7 if now_s < 1.0 else make.drone.max_climb if now_s < 2.5 else 0.0)

    for from_s in np.arange(0.7, 2.7, 0.1):

        def above_a_table(motion, now_s, from_s=from_s):
            return motion._replace(height=motion.height - 0.3 * (now_s > from_s))

        assert not doubts(measuring.fly(make(0.3, 47), script, 5.0, lie=above_a_table))


def test_a_drone_at_its_ceiling_or_on_a_deck_does_not_climb_and_that_is_no_lie():
    assert not doubts(measuring.fly(GuiDrone(0.3, 45), lambda s: BodyVelocity(up=0.7), 20.0))
    deck = Touched(LandingDrone(0.0, 46), lambda body, now_s: body.position.__setitem__(2, 2.0))
    assert not doubts(measuring.fly(deck, lambda s: BodyVelocity(up=0.5), 8.0))


# Lies, by the same physics.


class Late:
    """Delayed measurements."""

    def __init__(self, late_s):
        self._late_s, self._waiting = late_s, deque()

    def __call__(self, motion, now_s):
        self._waiting.append((now_s, motion))
        while len(self._waiting) > 1 and self._waiting[1][0] <= now_s - self._late_s:
            self._waiting.popleft()
        return self._waiting[0][1]


def scaled(share):
    return lambda motion, _: motion._replace(forward=share * motion.forward, left=share * motion.left)


@pytest.mark.parametrize("make", VEHICLES)
@pytest.mark.parametrize("speed", [0.3, pytest.param(1.0, marks=exhaustive)])
@pytest.mark.parametrize("share", [0.0, -1.0, 1e-3, 1e3])
def test_a_wrong_speed_is_doubted_and_causes_no_flyaway(make, speed, share):
    flight = measuring.fly(make(0.0, 41), lambda s: BodyVelocity(speed if s < 6.0 else 0.0), 15.0, lie=scaled(share))
    assert doubts(flight)
    assert max(np.linalg.norm(moment.velocity[:2]) for moment in flight) < speed + 3.5
    assert np.linalg.norm(flight[-1].velocity[:2]) < 1.5


@pytest.mark.parametrize("make", VEHICLES)
def test_a_wrong_height_causes_no_flyaway(make):
    def lie(motion, _):
        return motion._replace(height=0.0)

    flight = measuring.fly(make(0.0, 42), lambda s: BodyVelocity(up=0.3 if 1.0 < s < 3.0 else 0.0), 30.0, lie=lie)
    assert abs(flight[-1].place[2] - flight[-1000].place[2]) < 0.5


@pytest.mark.parametrize("make", VEHICLES)
@pytest.mark.parametrize("late_s", [1.0, 1.75, 2.5])
def test_a_drone_does_not_swing_by_late_measurements(make, late_s):
    flight = measuring.fly(make(0.3, 43), lambda s: BodyVelocity(1.0 if s < 4.0 else 0.0), 40.0, lie=Late(late_s))
    assert max(np.linalg.norm(moment.velocity[:2]) for moment in flight if moment.time > 15.0) < 0.6


@pytest.mark.parametrize("make", VEHICLES)
def test_belief_returns_when_the_lie_ends(make):
    def lie(motion, now_s):
        return scaled(-1.0)(motion, now_s) if 5.0 < now_s < 8.0 else motion

    flight = measuring.fly(make(0.3, 44), lambda s: BodyVelocity(1.0 if s < 12.0 else 0.0), 25.0, lie=lie)
    assert doubts(flight)
    assert not flight[-1].doubts
    assert np.linalg.norm(flight[-1].velocity[:2]) < 0.5


# Lies of any kind, by a body of our own.


@dataclass(frozen=True)
class Lie:
    """Error of reports from a time on."""

    from_s: float
    scale: float
    offset: float  # m/s
    ramp: float  # m/s^2
    every: int  # one of this many measurements is wrong
    late_steps: int

    def tell(self, truth, now_s, number):
        told = truth[max(0, len(truth) - 1 - self.late_steps)]
        if now_s < self.from_s or number % self.every:
            return told
        wrong = self.scale * complex(told.forward, told.left) + self.offset + self.ramp * (now_s - self.from_s)
        return told._replace(forward=wrong.real, left=wrong.imag)


lies = st.builds(
    Lie,
    from_s=st.floats(0.0, 5.0),
    scale=st.sampled_from([1.0, 0.0, 0.5, -1.0, 1e-3, 1e3, 2.0]) | st.floats(-2.0, 2.0),
    offset=st.just(0.0) | st.floats(-3.0, 3.0),
    ramp=st.just(0.0) | st.floats(-0.3, 0.3),
    every=st.integers(1, 3),
    late_steps=st.just(0) | st.integers(0, 50),
)
drones = st.sampled_from([
    TiltedDrone(max_tilt=0.2094, max_climb=0.7, max_yaw_rate=1.745),
    TiltedDrone(max_tilt=0.5, max_climb=2.5, max_yaw_rate=0.5, climb_lag=0.5),
])  # fmt: skip


def lied_to(drone, lie, speed, seconds=12.0):
    """Fly by lies in calm air; yield the true speed, the pull by the command, and whether the speed is doubted."""
    arbiter = SimpleNamespace(decide=lambda _: Decision(Rank.COMMAND, BodyVelocity(speed)), forget=lambda: None)
    pilot = TiltPilot(arbiter, drone, hovers=False)
    pilot.restart(0.0)
    velocity = pull = 0j
    truth = []
    for number in range(round(seconds / STEP_S)):
        now_s = (number + 1) * STEP_S
        truth.append(Motion(velocity.real, velocity.imag, 1.0, 0.0, pull))
        pilot.measured(lie.tell(truth, now_s, number), now_s)
        shares = pilot.shares(now_s) or Shares()
        commanded = pull_of(shares.roll * drone.max_tilt, shares.pitch * drone.max_tilt)
        pull += (commanded - pull) * -math.expm1(-STEP_S / drone.tilt_lag)
        velocity += (pull - drone.drag * velocity) * STEP_S
        yield abs(velocity), abs(commanded), not pilot._observer.trust.speed


@given(drone=drones, lie=lies, speed=st.floats(0.0, 2.0))
@example(drone=TiltedDrone(0.5, 2.5, 0.5), lie=Lie(0.0, 0.0, 0.0, 0.0, 1, 0), speed=0.3)
def test_drone_stays_slow_and_bounds_its_tilt_with_any_doubted_reports(drone, lie, speed):
    gentle = GRAVITY * math.tan(BLIND_TILT_SHARE * drone.max_tilt)
    for velocity, commanded, is_doubted in lied_to(drone, lie, speed):
        assert velocity < speed + 6.0  # 5.72 in 2,200 flights by chance
        assert not is_doubted or commanded <= gentle + 1e-6


def test_a_doubted_velocity_is_that_by_tilt_of_which_a_gap_counts_little():
    speed, pull = JudgedSpeed(drag=0.5), 1.0
    for number in range(60):
        speed.observe(1000.0 * (-1) ** number, pull, 0.05)
    assert speed.belief.reason
    assert speed.velocity == pytest.approx(before := pull / 0.5 * (1 - math.exp(-0.5 * 3.0)), rel=0.05)
    speed.observe(1000.0, pull, 20.0)
    assert speed.velocity == pytest.approx(before + LONGEST_STEP_S * (pull - 0.5 * before), rel=0.05)
