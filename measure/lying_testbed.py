# SPDX-License-Identifier: Apache-2.0
"""Flights of the testbed's drone whose positions lie, and of honest ones that are disturbed. With a fake clock."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from lying_flights import AFTER_S, GUSTS, LIE_S, Air, Calm, Flown, Memory, Moment, after, calm

from drone_bridge.motion.body_velocity import STILL, BodyVelocity
from drone_bridge.testbed.codec import AngleUnit, Constants, SensorFrame
from drone_bridge.testbed.device.drone_state import Airframe, DroneInput, DroneState
from drone_bridge.testbed.session.flight import TestbedFlight

TESTBED_CONSTANTS = Constants(90.0, 90.0, 1, 1, 0.25, 1.0, 9.81, 0.2, 25.0, 720.0, 720.0, 720.0)
TESTBED_RATE, TESTBED_BEGINS = 60.0, (3.0, 20.0)
Place = tuple[float, float, float]
#: Function from a position and a state for the flight, to the wrong position.
PlaceLie = Callable[[Place, Memory], Place]


def _place_noise(deviation: float, lie: PlaceLie = lambda place, memory: place) -> PlaceLie:
    def told(place: Place, memory: Memory) -> Place:
        x, y, z = lie(place, memory)
        add = memory.random.gauss
        return add(x, deviation), add(y, deviation), add(z, deviation)

    return told


def _stuck(place: Place, memory: Memory) -> Place:
    memory.first = getattr(memory, "first", place)
    first: Place = memory.first
    return first


def _times(share: float) -> PlaceLie:
    return lambda place, memory: (share * place[0], share * place[1], share * place[2])


def _half_way(place: Place, memory: Memory) -> Place:
    x, y, z = _stuck(place, memory)
    return (place[0] + x) / 2, (place[1] + y) / 2, (place[2] + z) / 2


def _jumping(place: Place, memory: Memory) -> Place:
    return place[0] + 3.0 * (memory.random.random() < 0.1), place[1], place[2]


def _in_steps(place: Place, memory: Memory) -> Place:
    return round(10 * place[0]) / 10, round(10 * place[1]) / 10, round(10 * place[2]) / 10


PLACE_LIES: Mapping[str, PlaceLie] = {
    "stuck": _stuck,
    "stuck, noise 1 mm": _place_noise(0.001, _stuck),
    "stuck, noise 5 cm": _place_noise(0.05, _stuck),
    "0": _times(0.0),
    "0, noise 1 mm": _place_noise(0.001, _times(0.0)),
    "sign": _times(-1.0),
    "height of the wrong sign": lambda place, memory: (place[0], -place[1], place[2]),
    "m for km": _times(1e3),
    "km for m": _times(1e-3),
    "half": _half_way,
    "jumps by 3 m": _jumping,
}
TESTBED_COMMANDS: Mapping[str, Callable[[float], BodyVelocity]] = {
    "0.3 m/s": lambda now_s: BodyVelocity(0.3),
    "1 m/s": lambda now_s: BodyVelocity(1.0),
    "zero": lambda now_s: STILL,
    "legs": lambda now_s: BodyVelocity(
        (1.0, 0.0, -1.0, 0.0)[int(now_s / 3.0) % 4], up=(0.0, 1.0, 0.0, -1.0)[int(now_s / 3.0) % 4]
    ),
}


@dataclass(frozen=True)
class TestbedConditions:
    """Conditions of a flight of the testbed's drone."""

    __test__ = False

    lie: PlaceLie | None = None
    lie_from_s: float = 0.0
    lie_until_s: float = math.inf
    gusts: float = GUSTS
    wind: float = 0.0  # m/s, from 10 s on
    rate: float = TESTBED_RATE
    drag: float = 0.2  # kg/s


def fly_testbed(command: str, conditions: TestbedConditions, duration_s: float) -> Flown:
    """Fly the testbed's drone, as its bridge does. Places are in axes of REP 103."""
    constants, unit, step_s = replace(TESTBED_CONSTANTS, drag=conditions.drag), AngleUnit.DEGREES, 1 / conditions.rate
    flight = TestbedFlight(constants, unit)
    state, air = DroneState.at_start(), Air(conditions.gusts, 1, after(10.0, 0.0, conditions.wind))
    memory, moments, said_at, reasons = Memory(random=random.Random(1)), list[Moment](), None, dict[str, None]()
    for number in range(round(duration_s / step_s)):
        now_s = number * step_s
        heading, pitch, roll = (float(np.float32(angle)) for angle in state.angles)
        x, y, z = (float(np.float32(value)) for value in state.position)
        is_lie = conditions.lie_from_s <= now_s < conditions.lie_until_s
        if conditions.lie and is_lie:
            x, y, z = conditions.lie((x, y, z), memory)
        frame = SensorFrame(b"", b"", float(np.float32(state.time)), pitch, roll, heading, (x, y, z))
        flight.reported(flight.measurement(frame), now_s)
        wanted = TESTBED_COMMANDS[command](now_s)
        motion = DroneInput.from_answer(flight.answer(wanted)[0], unit)
        state = state.advance(Airframe(drag=conditions.drag), motion, air.velocity, step_s, np.zeros(3))
        air.advance(step_s)
        is_doubted = bool(flight.doubts)
        reasons.update(dict.fromkeys(flight.doubts))
        if said_at is None and is_doubted and conditions.lie_from_s < now_s and is_lie:
            said_at = now_s - conditions.lie_from_s
        (right, up, back), (rightwards, upwards, backwards) = state.position.tolist(), state.velocity.tolist()
        error = math.hypot(-backwards - wanted.forward, rightwards) if now_s > 3.0 else 0.0
        place, velocity = (-back, -right, up), (-backwards, -rightwards, upwards)
        moments.append(Moment(now_s, place, velocity, is_doubted, error, 0.0, False))
    return Flown(moments, said_at, tuple(reasons))


def testbed_lied_to(lie: str | None, command: str, begin_s: float) -> Flown:
    """Fly a command, with a lie for LIE_S. Returns the flight from the begin of the lie on."""
    conditions = TestbedConditions(PLACE_LIES[lie] if lie else None, begin_s, begin_s + LIE_S)
    flown = fly_testbed(command, conditions, begin_s + LIE_S + AFTER_S)
    return replace(flown, moments=[moment for moment in flown.moments if moment.time >= begin_s])


testbed_lied_to.__test__ = False  # type: ignore[attr-defined]

TESTBED_HONEST: Mapping[str, TestbedConditions] = {
    "calm": TestbedConditions(),
    **{f"gusts {gusts:g} m/s": TestbedConditions(gusts=gusts) for gusts in (1.0, 2.0)},
    **{f"wind {wind:g} m/s at once": TestbedConditions(wind=wind) for wind in (3.0, 6.0, 10.0, 15.0)},
    **{
        f"noise {deviation:g} m": TestbedConditions(lie=_place_noise(deviation), lie_from_s=-1.0)
        for deviation in (0.001, 0.05, 0.1)
    },
    "noise 0.05 m, wind 3 m/s": TestbedConditions(lie=_place_noise(0.05), lie_from_s=-1.0, wind=3.0),
    "steps of 10 cm": TestbedConditions(lie=_in_steps, lie_from_s=-1.0),
    **{f"{rate:g} Hz": TestbedConditions(rate=rate) for rate in (3.0, 5.0, 10.0, 30.0)},
    "drag 30 % less": TestbedConditions(drag=0.14, gusts=1.0),
}


def testbed_honest(name: str, command: str) -> Calm:
    """Fly `zero` or `legs` without lies."""
    return calm(fly_testbed(command, TESTBED_HONEST[name], 40.0).moments)


testbed_honest.__test__ = False  # type: ignore[attr-defined]
