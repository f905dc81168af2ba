# SPDX-License-Identifier: Apache-2.0
"""Flights of drones whose reports lie, of honest ones that are disturbed, and at walls. With a fake clock.

The emulated drones are flown by the same pilots, limits and translations as by their bridges, without sockets or ROS.
Every flight is reproducible.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from drone_bridge.ar_drone.drone import AR_DRONE
from drone_bridge.ar_drone.flight import ArDroneFlight, FlightPhase
from drone_bridge.dronegui import units
from drone_bridge.dronegui.codec import Controls, Demo
from drone_bridge.dronegui.vehicle.emulator.navdata import blocks
from drone_bridge.motion.body_velocity import STILL, BodyVelocity
from drone_bridge.motion.limits import LimitParameters, Limits
from drone_bridge.motion.matrices import Vector
from drone_bridge.motion.measurement import Measurement
from drone_bridge.motion.observed_motion import ObservedMotion
from drone_bridge.motion.tilted_drone import Shares, TiltedDrone
from drone_bridge.motion.wind import Wind
from drone_bridge.session.arbiter import Arbiter, Arrival, Rank
from drone_bridge.session.feedback import Feedback
from drone_bridge.session.hold_state import InControl
from drone_bridge.session.tilt_pilot import TiltPilot
from drone_bridge.telemetry.codec import DroneCommand
from drone_bridge.telemetry.units import LANDING_DRONE
from drone_bridge.telemetry.vehicle.emulator.flight import FlyingDrone

STEP_S = 0.01
#: Duration of a lie, and of the honest flight after it.
LIE_S, AFTER_S = 10.0, 15.0
#: Lies begin at these times, s. By the second one, the wind is known.
BEGINS = (3.0, 30.0)
STOP_AFTER_S = 2.0  # from the begin of a lie until STOP
COMMAND_PERIOD_S = 0.05
GUSTS = 0.3  # m/s
#: A drone is back once its velocity differs less from that of an honest flight, m/s.
BACK_M_S = 0.25
#: Time of flight by an estimate that counts as said: diagnostics report it.
ESTIMATING_S = 1.0

#: Function from a measurement and a state for the flight to the wrong measurement.
Lie = Callable[[Measurement, "Memory"], Measurement]
#: Function from the time, s, to the velocity of the air along x, m/s.
Steady = Callable[[float], float]


class Memory(SimpleNamespace):
    """What a lie remembers of one flight."""

    random: random.Random


class Air(Wind):
    """Gusts, and a wind along x that changes with time."""

    def __init__(self, gusts: float, seed: int, along_x: Steady, third_share: float = 1.0) -> None:
        super().__init__((0.0, 0.0, 0.0), gusts, seed=seed, third_share=third_share)
        self._along_x, self._time_s = along_x, 0.0

    @property
    def velocity(self) -> Vector:
        velocity: Vector = super().velocity + np.array((self._along_x(self._time_s), 0.0, 0.0))
        return velocity

    def advance(self, step: float) -> None:
        super().advance(step)
        self._time_s += step


# Drones.


class ArDrone:
    """The AR.Drone behind its GUI."""

    drone: TiltedDrone = AR_DRONE
    hovers, rate, period_s = True, 15.0, 0.05

    def __init__(self, gusts: float, seed: int, along_x: Steady) -> None:
        self.body: Any = _FlightInAir(gusts, seed, along_x)
        self._number = 0

    def follow(self, shares: Shares | None) -> None:
        self.body.steer(Controls(hover=True) if shares is None else units.controls(shares))

    def advance(self, step_s: float) -> None:
        self.body.advance(step_s)

    def report(self, noise: random.Random) -> Measurement:
        self._number += 1
        demo = blocks(self.body, self._number)[0]
        assert isinstance(demo, Demo)
        return units.measurement(demo)


class _FlightInAir(ArDroneFlight):
    def __init__(self, gusts: float, seed: int, along_x: Steady) -> None:
        super().__init__(0.0, seed)
        self.take_off()
        while self.phase is not FlightPhase.FLYING:
            self.advance(STEP_S)
        self._wind = Air(gusts, seed, along_x)


class LandingDrone:
    """The drone of the landing challenge, with the noise of its sensors."""

    drone: TiltedDrone = LANDING_DRONE
    hovers, rate, period_s = False, 25.0, 0.04

    def __init__(self, gusts: float, seed: int, along_x: Steady) -> None:
        self.body: Any = FlyingDrone((0.0, 0.0, 5.0))
        self._air = Air(gusts, seed, along_x, 0.3)

    def follow(self, shares: Shares | None) -> None:
        thrust, pitch, roll, yaw = shares or Shares()
        most = self.drone.max_tilt
        self.body.command = DroneCommand(
            thrust=thrust, pitch=pitch * most, roll=roll * most, yaw=yaw * self.drone.max_yaw_rate
        )

    def advance(self, step_s: float) -> None:
        self.body.advance(step_s, self._air.velocity)
        self._air.advance(step_s)

    def report(self, noise: random.Random) -> Measurement:
        body, add = self.body, noise.gauss
        cosine, sine, (x, y, up) = math.cos(body.yaw), math.sin(body.yaw), body.velocity.tolist()
        velocity = BodyVelocity(add(cosine * x + sine * y, 0.055), add(cosine * y - sine * x, 0.055), up)
        return Measurement(
            velocity=velocity,
            climb=add(up, 0.03),
            height=add(body.position[2], 0.02),
            yaw=add(body.yaw, 0.003),
            roll=add(body.roll, 0.003),
            pitch=add(body.pitch, 0.003),
        )


TILTED: Mapping[str, type[ArDrone] | type[LandingDrone]] = {"AR.Drone": ArDrone, "landing drone": LandingDrone}


# Flights.


class Moment(NamedTuple):
    """One step of a flight, seen from outside."""

    time: float  # s
    place: tuple[float, float, float]  # m
    velocity: tuple[float, float, float]  # m/s
    is_doubted: bool
    error: float  # m/s, of the commanded velocity
    tilt: float  # share of full
    is_refused: bool  # its velocity, for lack of a believed place in the fence


@dataclass(frozen=True)
class Flown:
    """Result of a flight."""

    moments: Sequence[Moment]
    said_at: float | None = None  # s, the first doubt during the lie
    reasons: tuple[str, ...] = ()  # of all doubts, each once


@dataclass(frozen=True)
class Conditions:
    """Conditions of a flight."""

    command: Callable[[float], BodyVelocity] = lambda now_s: STILL
    lie: Lie | None = None
    late_s: float = 0.0
    lie_from_s: float = 0.0
    lie_until_s: float = math.inf
    stop_at_s: float = math.inf
    fence_radius: float = 0.0  # m
    gusts: float = GUSTS
    along_x: Steady = lambda now_s: 0.0
    seed: int = 1
    pause_s: float = 0.0  # of the simulator, every 5 s
    pace: float = 1.0  # of its time
    touch: Callable[[Any, float], None] = lambda body, now_s: None


def fly(drone: str, conditions: Conditions, duration_s: float) -> Flown:
    """Fly a drone that is commanded by tilt, as its bridge does."""
    made = TILTED[drone](conditions.gusts, conditions.seed, conditions.along_x)
    noise, memory = random.Random(conditions.seed), Memory(random=random.Random(conditions.seed + 9))
    now_s, statistics = 0.0, SimpleNamespace(counts=Counter[str](), record_duration=lambda name, seconds: None)
    observed, hold = ObservedMotion(lambda: now_s), _Hold()
    limits: Any = Limits(LimitParameters(fence_radius=conditions.fence_radius), observed)
    arbiter: Any = Arbiter(hold, limits, lambda: 0.5, statistics)  # type: ignore[arg-type]
    pilot = TiltPilot(arbiter, made.drone, hovers=made.hovers)
    feedback = Feedback(observed, limits, pilot)
    pilot.restart(0.0)
    late, estimating_s = list[tuple[float, int, Measurement]](), 0.0
    report_s = command_s = follow_s = 0.0
    moments, said_at, reasons = list[Moment](), None, dict[str, None]()
    for number in range(round(duration_s / STEP_S)):
        now_s = number * STEP_S
        is_paused = conditions.pause_s > 0.0 and now_s > 2.0 and now_s % 5.0 < conditions.pause_s
        wanted, hold.held = conditions.command(now_s), now_s >= conditions.stop_at_s
        if now_s >= command_s - 1e-9:
            command_s = now_s + COMMAND_PERIOD_S
            arbiter.put(Arrival(wanted, now_s))
        is_lie = conditions.lie_from_s <= now_s < conditions.lie_until_s
        if now_s >= report_s - 1e-9 and not is_paused:
            report_s = max(report_s, now_s - 0.02) + 1.0 / made.rate
            report = made.report(noise)
            if is_lie and conditions.lie:
                report = conditions.lie(report, memory)
            elif not is_lie:
                late.clear()
            late.append((now_s + conditions.late_s * is_lie, number, report))
        while late and late[0][0] <= now_s + 1e-9:
            feedback.measured(late.pop(0)[2], now_s)
        if now_s >= follow_s - 1e-9:
            follow_s += made.period_s
            made.follow(pilot.shares(now_s))
        if not is_paused:
            made.advance(STEP_S * conditions.pace)
            conditions.touch(made.body, now_s)
        is_doubted = bool(pilot.doubts)
        reasons.update(dict.fromkeys(pilot.doubts))
        estimating_s = estimating_s + STEP_S if pilot.is_estimating or pilot.is_drifting else 0.0
        is_lied_to = conditions.lie_from_s < now_s < conditions.lie_until_s
        if said_at is None and is_lied_to and (is_doubted or estimating_s > ESTIMATING_S):
            said_at = now_s - conditions.lie_from_s
        body, error = made.body, 0.0
        if not hold.held and now_s > 2.0:
            cosine, sine = math.cos(body.yaw), math.sin(body.yaw)
            forward = cosine * body.velocity[0] + sine * body.velocity[1] - wanted.forward
            error = math.hypot(forward, cosine * body.velocity[1] - sine * body.velocity[0] - wanted.left)
        moments.append(
            Moment(
                now_s,
                tuple(body.position.tolist()),
                tuple(body.velocity.tolist()),
                is_doubted,
                error,
                math.hypot(body.roll, body.pitch) / made.drone.max_tilt,
                conditions.fence_radius > 0.0 and arbiter.rank(now_s, arbiter.newest) is Rank.BLIND,
            )
        )
    return Flown(moments, said_at, tuple(reasons))


class _Hold:
    held, attended_s = False, -math.inf

    def control(self, now_s: float) -> InControl:
        return InControl.HELD_BY_PERSON if self.held else InControl.FREE


# Lies about the motion of tilted drones.


def _velocity(report: Measurement, forward: float, left: float) -> Measurement:
    assert report.velocity is not None
    return replace(report, velocity=replace(report.velocity, forward=forward, left=left))


def _scaled(share: float) -> Lie:
    def lie(report: Measurement, memory: Memory) -> Measurement:
        assert report.velocity is not None
        return _velocity(report, share * report.velocity.forward, share * report.velocity.left)

    return lie


def _about_zero(deviation: float) -> Lie:
    return lambda report, memory: _velocity(
        report, memory.random.gauss(0.0, deviation), memory.random.gauss(0.0, deviation)
    )


def _kept(report: Measurement, memory: Memory) -> Measurement:
    memory.first = getattr(memory, "first", report)
    first: Measurement = memory.first
    return first


def _frozen(report: Measurement, memory: Memory) -> Measurement:
    return replace(report, velocity=_kept(report, memory).velocity)


#: Lies by name, with the lateness of the reports, s.
LIES: Mapping[str, tuple[Lie | None, float]] = {
    "velocity 0": (_scaled(0.0), 0.0),
    "velocity 0, noise 1 mm/s": (_about_zero(0.001), 0.0),
    "velocity 0, noise 20 mm/s": (_about_zero(0.02), 0.0),
    "velocity 0, noise 100 mm/s": (_about_zero(0.1), 0.0),
    "sign": (_scaled(-1.0), 0.0),
    "frozen": (_frozen, 0.0),
    "the same report": (_kept, 0.0),
    "late by 1 s": (None, 1.0),
}


#: Commands by name; STOP is pressed STOP_AFTER_S after the begin of the lie.
COMMANDS: Mapping[str, Callable[[float], BodyVelocity]] = {
    "0.3 m/s": lambda now_s: BodyVelocity(0.3),
    "STOP": lambda now_s: BodyVelocity(0.3),
    "zero": lambda now_s: STILL,
}


def lied_to(drone: str, lie: str | None, command: str, begin_s: float) -> Flown:
    """Fly a command, with a lie for LIE_S. Returns the flight from the begin of the lie on."""
    told, late_s = LIES[lie] if lie else (None, 0.0)
    conditions = Conditions(
        COMMANDS[command],
        told,
        late_s,
        begin_s,
        begin_s + LIE_S,
        begin_s + STOP_AFTER_S if command == "STOP" else math.inf,
    )
    flown = fly(drone, conditions, begin_s + LIE_S + AFTER_S)
    return replace(flown, moments=[moment for moment in flown.moments if moment.time >= begin_s])


class Effect(NamedTuple):
    """Effect of a lie, in comparison with an honest flight."""

    way: float  # m, from where the honest drone is
    speed: float  # m/s, at most
    said_s: float | None  # after which diagnostics report it; None: never
    back_s: float | None  # after the lie; None: not within AFTER_S


def effect(lied: Flown, honest: Flown) -> Effect:
    """Compare two flights of which the moments begin with the lie."""
    way = speed = back_s = 0.0
    begin_s = honest.moments[0].time
    for one, other in zip(lied.moments, honest.moments, strict=True):
        if one.time < begin_s + LIE_S:
            way = max(way, math.dist(one.place[:2], other.place[:2]))
            speed = max(speed, math.hypot(*one.velocity[:2]))
        elif one.is_doubted or math.dist(one.velocity[:2], other.velocity[:2]) > BACK_M_S + 0.1 * other.is_doubted:
            back_s = one.time - begin_s - LIE_S
    return Effect(way, speed, lied.said_at, None if back_s > AFTER_S - 1.0 else back_s)


FENCE_M = 5.0


def farthest_in_fence(drone: str, lie: str) -> float:
    """Return how far a drone flies, m, at 0.3 m/s outwards for 40 s, with a lie from 12 to 22 s."""
    conditions = Conditions(COMMANDS["0.3 m/s"], *LIES[lie], 12.0, 22.0, fence_radius=FENCE_M)
    moments = fly(drone, conditions, 40.0).moments
    return max(math.dist(each.place[:2], moments[0].place[:2]) for each in moments)


# Bounds.


class Bounds(NamedTuple):
    """Largest allowed effect of a lie while a velocity is commanded, or STOP pressed. None: no bound."""

    way: float | None = None  # m
    speed: float | None = None  # m/s
    said_s: float | None = None
    back_s: float | None = 15.0
    in_fence: float = FENCE_M + 1.0  # m from the start, with a fence of FENCE_M


#: Bounds by the begin of a lie's name. The first one that fits applies.
BOUNDS = {
    "velocity 0, noise": Bounds(7.0, 1.5, 9.0, 6.0, 15.0),
    "velocity 0": Bounds(3.0, 1.2, 3.0, 9.0, 7.0),
    "sign": Bounds(6.0, 2.5, 3.0, in_fence=17.5),
    "frozen": Bounds(3.0, 1.0, 3.0, 9.0),
    "the same report": Bounds(3.0, 0.8, 2.0, 3.0),
    "late": Bounds(2.5, 2.0, None, 12.0, 7.0),
}


def bounds_of(lie: str) -> Bounds:
    """Return the bounds of a lie."""
    return next(bounds for name, bounds in BOUNDS.items() if lie.startswith(name))


def violations(effect: Effect, bounds: Bounds) -> list[str]:
    """Return which bounds an effect exceeds, as text."""
    pairs: Sequence[tuple[str, float | None, float | None]] = (
        ("m off", effect.way, bounds.way),
        ("m/s", effect.speed, bounds.speed),
        ("s until it is said", effect.said_s, bounds.said_s),
        ("s until it is back", effect.back_s, bounds.back_s),
    )
    return [
        f"{'never' if value is None else f'{value:.1f}'} {unit} (bound {bound:g})"
        for unit, value, bound in pairs
        if bound is not None and (value is None or value > bound)
    ]


# Honest flights.


def rounded(step: float) -> Lie:
    """Return a velocity in steps, m/s."""
    return lambda report, memory: _velocity(
        report, *(round(each / step) * step for each in (report.level_velocity or (0.0, 0.0))[:2])
    )


HONEST_S = 45.0
#: Conditions of honest flights by name.
HONEST: Mapping[str, Conditions] = {
    "gusts 2 m/s": Conditions(gusts=2.0),
    "wind 3 m/s at once": Conditions(along_x=lambda now_s: 3.0 * (now_s > 15.0)),
    "wind 5 m/s at once": Conditions(along_x=lambda now_s: 5.0 * (now_s > 15.0)),
    "velocity in steps of 0.1 m/s": Conditions(lie=rounded(0.1)),
    "pauses of 0.8 s": Conditions(pause_s=0.8),
    "60 % of real time": Conditions(pace=0.6),
}


def _square(now_s: float) -> BodyVelocity:
    return BodyVelocity((0.3, 0.0, -0.3, 0.0)[int(now_s / 3.0) % 4], (0.0, 0.3, 0.0, -0.3)[int(now_s / 3.0) % 4])


class Calm(NamedTuple):
    """Doubts of an honest flight."""

    doubts_per_minute: float
    doubted_share: float  # of the time
    refused_share: float  # of the time, with a fence


def honest(drone: str, name: str, command: str, fence_radius: float = 0.0) -> Calm:
    """Fly `zero` or a `square` without lies."""
    wanted = _square if command == "square" else COMMANDS[command]
    return calm(fly(drone, replace(HONEST[name], command=wanted, fence_radius=fence_radius), HONEST_S).moments)


def calm(moments: Sequence[Moment]) -> Calm:
    """Return the doubts in a flight."""
    begins = sum(now.is_doubted and not before.is_doubted for before, now in pairwise(moments))
    return Calm(
        60.0 * begins / (moments[-1].time + STEP_S),
        sum(each.is_doubted for each in moments) / len(moments),
        sum(each.is_refused for each in moments) / len(moments),
    )


class Wall(NamedTuple):
    """Effect of a wall 2 m ahead that goes after 30 s."""

    tilt: float  # share of full, at most, from 3 s after the contact on
    said_s: float | None  # after the contact
    speed: float  # m/s, at most, once the wall has gone


def at_wall(drone: str) -> Wall:
    """Fly against a wall at 0.3 m/s."""

    def touch(body: Any, now_s: float) -> None:
        if now_s < 30.0 and body.position[0] > 2.0:
            body.position[0], body.velocity[0] = 2.0, min(0.0, body.velocity[0])

    moments = fly(drone, Conditions(COMMANDS["0.3 m/s"], gusts=0.1, touch=touch), 36.0).moments
    contact_s = next(each.time for each in moments if each.place[0] > 1.95)
    return Wall(
        max(each.tilt for each in moments if contact_s + 3.0 < each.time < 30.0),
        next((each.time - contact_s for each in moments if each.is_doubted and each.time > contact_s), None),
        max(each.velocity[0] for each in moments if each.time > 30.0),
    )
