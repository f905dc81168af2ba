# SPDX-License-Identifier: Apache-2.0
"""Velocities from an autopilot's rates and thrust, and the state that it receives of a vehicle that follows them."""

import math
from dataclasses import replace

import numpy as np
import pytest
from quadrotor import Quadrotor

from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.programs.plan import parse_plan
from drone_bridge.testbed.codec import AngleUnit, AttitudeLayout, Constants, MotionParameters, SensorFrame
from drone_bridge.testbed.session.flight import TestbedFlight
from drone_bridge.testbed.vehicle.device import modelled_flight
from drone_bridge.testbed.vehicle.device.drone_state import Airframe, DroneInput, DroneState
from drone_bridge.testbed.vehicle.device.modelled_flight import MAX_LEAD, ModelledFlight

CONSTANTS = Constants(120.0, 90.0, 4, 4, 0.0, 1.5, 9.81, 0.2, 25.0, 720.0, 720.0, 720.0)
MAX_SPEED = 5.0
STEP_S = 1 / 30
WEIGHT_N = CONSTANTS.weight * CONSTANTS.gravity
HOVER = MotionParameters(0.0, 0.0, 0.0, WEIGHT_N)
CALM = np.zeros(3)


class Vehicle:
    """Vehicle that follows velocities with a lag, within limits, without tilt. Its heading, rad, is to the right."""

    def __init__(self, lag_s=0.0, *, goes_sideways=True, stands=False, heading=0.0):
        self.position, self.velocity, self.heading = np.zeros(3), np.zeros(3), heading
        self._lag_s, self._goes_sideways, self._stands = lag_s, goes_sideways, stands

    def follow(self, wanted, step_s):
        ahead = np.array([math.sin(self.heading), 0.0, -math.cos(self.heading)])
        right = np.array([math.cos(self.heading), 0.0, math.sin(self.heading)])
        velocity = wanted.ahead * ahead
        if self._goes_sideways:
            velocity = velocity + wanted.right * right + np.array([0.0, wanted.up, 0.0])
        if self._stands:
            return
        share = -math.expm1(-step_s / self._lag_s) if self._lag_s else 1.0
        self.velocity = self.velocity + share * (velocity - self.velocity)
        self.position = self.position + step_s * self.velocity
        self.heading += step_s * wanted.yaw_rate


class Flown:
    """Flight with the vehicle that follows it."""

    def __init__(self, vehicle=None, max_speed=MAX_SPEED, unit=AngleUnit.DEGREES, *, has_position=True):
        self.vehicle = vehicle or Vehicle()
        layout = AttitudeLayout.POSE if has_position else AttitudeLayout.PITCH_ROLL
        self.flight = ModelledFlight(CONSTANTS, unit, layout, max_speed)
        self._has_position = has_position
        self._per_radian = unit.half_turn / math.pi
        self.time_s = 0.0

    def told(self):
        position = tuple(self.vehicle.position) if self._has_position else None
        heading = self.vehicle.heading * self._per_radian
        return self.flight.observe(SensorFrame(b"", b"", self.time_s, 0.0, 0.0, heading, position))

    def answer(self, answer, step_s=STEP_S):
        """Reply once, let the vehicle follow, and return its command and the next state."""
        velocity = self.flight.follow(answer)
        self.vehicle.follow(velocity, step_s)
        self.time_s += step_s
        return velocity, self.told()

    def answers(self, answer, seconds):
        """Reply for some time; return the last of both."""
        for _ in range(round(seconds / STEP_S)):
            last = self.answer(answer)
        return last


def begun(*arguments, **options):
    flown = Flown(*arguments, **options)
    flown.told()
    return flown


@pytest.mark.parametrize("unit", list(AngleUnit))
def test_a_vehicle_that_follows_is_the_testbed_s_drone(unit):
    """Rolling, pitching, turning and climbing simultaneously, against the physics of the emulator."""
    flown = begun(unit=unit)
    state = DroneState.at_start()
    scale = 180 / unit.half_turn
    steepest = 0.0
    for step in range(60):
        rates = (40 * math.cos(step / 8), 30 * math.sin(step / 11), 30.0)
        answer = MotionParameters(*(rate / scale for rate in rates), WEIGHT_N + 2)
        velocity, frame = flown.answer(answer)
        state = state.advance(Airframe.from_constants(CONSTANTS), DroneInput(*rates, WEIGHT_N + 2), CALM, STEP_S)
        heading, pitch, roll = state.angles
        assert (frame.pitch * scale, frame.roll * scale) == pytest.approx((pitch, roll), abs=0.5)
        steepest = max(steepest, math.hypot(pitch, roll))
    assert steepest > 10
    assert math.degrees(flown.vehicle.heading) == pytest.approx(heading, abs=1.0)
    assert frame.position == pytest.approx(state.position, abs=0.05)
    assert np.linalg.norm(state.position) > 0.5
    east, up, south = state.velocity
    turned = math.radians(heading)
    assert velocity.ahead == pytest.approx(east * math.sin(turned) - south * math.cos(turned), abs=0.1)
    assert velocity.right == pytest.approx(east * math.cos(turned) + south * math.sin(turned), abs=0.1)
    assert velocity.up == pytest.approx(up, abs=0.1)


def test_a_vehicle_that_lags_is_told_ahead_but_not_for_long():
    flown = begun(Vehicle(lag_s=0.5))
    flown.answer(MotionParameters(10 / STEP_S, 0.0, 0.0, WEIGHT_N))
    _, frame = flown.answers(HOVER, 1.0)
    assert 0.1 < -frame.position[2] + flown.vehicle.position[2] < MAX_LEAD
    flown.answer(MotionParameters(-10 / STEP_S, 0.0, 0.0, WEIGHT_N))
    _, frame = flown.answers(HOVER, 14.0)
    assert frame.position == pytest.approx(tuple(flown.vehicle.position), abs=0.06)


def test_a_vehicle_before_a_wall_leaves_no_velocity_that_grows():
    flown = begun(Vehicle(stands=True))
    flown.answer(MotionParameters(20 / STEP_S, 0.0, 0.0, WEIGHT_N))
    for _ in range(100):
        velocity, frame = flown.answer(HOVER)
        assert -frame.position[2] <= MAX_LEAD + 1e-9
    assert 0.5 < velocity.ahead < 2.0
    assert flown.answer(HOVER)[0].ahead == pytest.approx(velocity.ahead, abs=1e-3)


def test_nothing_is_beyond_the_limits(monkeypatch):
    for name, limit in (("MAX_CLIMB_SPEED", 0.5), ("MAX_TILT", 0.3), ("MAX_YAW_RATE", 0.2)):
        monkeypatch.setattr(modelled_flight, name, limit)
    flown = begun(max_speed=1.0)
    for rates in ((300.0, 0.0), (0.0, -300.0), (720.0, 720.0)):
        for thrust in (25.0, 0.0):
            for _ in range(60):
                velocity, frame = flown.answer(MotionParameters(*rates, 90.0, thrust))
                assert math.hypot(velocity.ahead, velocity.right) <= 1.0 + 1e-9
                assert abs(velocity.up) <= 0.5
                assert abs(velocity.yaw_rate) <= 0.2
                level = math.cos(math.radians(frame.pitch)) * math.cos(math.radians(frame.roll))
                assert level >= math.cos(0.3) - 1e-9


def test_a_vehicle_that_was_told_to_stop_begins_at_rest():
    flown = begun()
    flown.answer(MotionParameters(10 / STEP_S, 0.0, 0.0, WEIGHT_N))
    flown.answers(HOVER, 1.0)
    flown.flight.reset()
    assert flown.flight.follow(HOVER) == pytest.approx((0, 0, 0, 0), abs=1e-9)
    flown.time_s += STEP_S
    assert flown.told().pitch == 0.0


PLAN = parse_plan("4s forward 0.5, 2s, 2s turn 0.5, 3s")


class Autopilot:
    """Velocities of the plan, which are flown by the announced model, like many others do."""

    def __init__(self):
        self.flight, self.is_over = TestbedFlight(CONSTANTS, AngleUnit.DEGREES), False

    def answer(self, frame):
        self.is_over, leg = frame.time >= PLAN.duration_s, PLAN.leg_at(frame.time)
        self.flight.reported(self.flight.measurement(frame), 0.0)
        return self.flight.answer(BodyVelocity(leg.forward, leg.left, leg.up, turn=leg.turn))[0]


def fly(flown):
    """Let the scripted autopilot fly its plan; return its maximum distance ahead."""
    pilot, frame, farthest = Autopilot(), flown.told(), 0.0
    while not pilot.is_over:
        _, frame = flown.answer(pilot.answer(frame))
        farthest = max(farthest, -flown.vehicle.position[2])
    return farthest


@pytest.mark.parametrize(
    ("vehicle", "layout"),
    [
        ({"lag_s": 1.0}, "with a position"),
        ({"lag_s": 0.3, "goes_sideways": False}, "with a position"),
        ({"lag_s": 0.3}, "without"),
    ],
)
def test_testbed_tuned_autopilot_steers_a_vehicle_that_lags(vehicle, layout):
    """Positions are estimated by the announced model."""
    flown = Flown(Vehicle(**vehicle), has_position=layout != "without")
    farthest = fly(flown)
    x, y, z = flown.vehicle.position
    assert (x, y, -z) == pytest.approx((0, 0, 2.0), abs=0.12)
    assert farthest < 2.6  # it does not oscillate
    assert -flown.vehicle.heading == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("layout", AttitudeLayout)
@pytest.mark.parametrize(
    "rate_hz", [5, 20, *(pytest.param(rate_hz, marks=pytest.mark.exhaustive) for rate_hz in (8, 10, 60))]
)
def test_a_quadrotor_that_is_located_flies_the_plan(layout, rate_hz):
    """2 m ahead, and a turn to the left on the spot, in any layout: the vehicle does not drift."""
    for seed in range(3):
        quadrotor = Quadrotor(seed)
        yaw = quadrotor.yaw
        flight = ModelledFlight(CONSTANTS, AngleUnit.DEGREES, layout, MAX_SPEED)
        pilot = Autopilot()
        for step in range(round(PLAN.duration_s * rate_hz)):
            (x, y, z), seen_yaw = quadrotor.measured()
            frame = flight.observe(
                SensorFrame(b"", b"", step / rate_hz, 0.0, 0.0, 90.0 - math.degrees(seen_yaw), (x, z, -y))
            )
            carried = replace(
                frame,
                roll=None if layout == "pitch_yaw" else frame.roll,
                yaw=None if layout == "pitch_roll" else frame.yaw,
                position=frame.position if layout == "pose" else None,
            )
            ahead, right, up, turn = flight.follow(pilot.answer(carried))
            quadrotor.fly(0.02)  # delay of the reply
            quadrotor.command = (ahead, -right, up, -turn)
            quadrotor.fly(1 / rate_hz - 0.02)
        expected = (2 * math.cos(yaw), 2 * math.sin(yaw), 0.0)
        assert math.dist(quadrotor.position, expected) < 0.15, seed
        assert math.remainder(quadrotor.yaw - yaw, math.tau) == pytest.approx(1.0, abs=0.05)


def test_vehicle_blown_away_is_brought_back_unknown_to_the_autopilot():
    flight = ModelledFlight(CONSTANTS, AngleUnit.DEGREES, AttitudeLayout.PITCH_ROLL, MAX_SPEED)
    frame = SensorFrame(b"", b"", 0.0, 0.0, 0.0, 0.0, (0.0, 0.0, 0.0))
    flight.observe(frame)
    flight.follow(HOVER)
    told = flight.observe(replace(frame, time=STEP_S, yaw=10.0, position=(0.3, 0.0, 0.0)))
    assert (told.pitch, told.roll, told.yaw) == pytest.approx((0, 0, 0), abs=1e-9)
    velocity = flight.follow(HOVER)
    assert velocity.right < -0.1
    assert velocity.yaw_rate < -0.1
