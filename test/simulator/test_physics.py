# SPDX-License-Identifier: Apache-2.0
"""Physics of the emulated world, against closed forms."""

import itertools
import math
import random
from dataclasses import replace

import pytest

from drone_bridge.motion.wxyz import dot, rotate, unit
from drone_bridge.simulator import codec as wire
from drone_bridge.simulator.vehicle.emulator.physics import (
    Body,
    Buoyancy,
    DragPlane,
    Force,
    TurbulenceForce,
    check_turbulence,
    total,
)

STEP_S = 0.01
ZERO = (0.0, 0.0, 0.0)
GRAVITY = Force(acceleration=(0.0, 0.0, 9.81))


def run(body, steps, *forces):
    for _ in range(steps):
        for force in forces:
            force.begin_step(STEP_S)
        assert body.step(total(forces), STEP_S)
    return body


def about(axis, degrees):
    half = math.radians(degrees) / 2
    return (math.cos(half), *(math.sin(half) * component for component in axis))


def spin_of(body):
    """Kinetic energy of the rotation, and the angular momentum in the world."""
    momentum = [moment * rate for moment, rate in zip(body.inertia, body.w, strict=True)]
    return dot(momentum, body.w) / 2, rotate(body.q, momentum)


# Translation.


def test_free_fall():
    fall = run(Body(x=(1.0, 2.0, 3.0), v=(0.5, 0.0, -2.0)), 300, GRAVITY)
    t = 3.0
    assert fall.x == pytest.approx((1 + 0.5 * t, 2, 3 - 2 * t + 9.81 * t**2 / 2), rel=1e-12)
    assert fall.v == pytest.approx((0.5, 0, -2 + 9.81 * t), rel=1e-12)
    assert fall.a == pytest.approx((0, 0, 9.81), rel=1e-9)


def test_drag_alone_slows_down_as_one_over_one_plus_k_v_t():
    plane = DragPlane(ZERO, (1, 0, 0), coefficient=1.0, area=0.2)
    k = 1000 * 0.2 / (2 * 50)  # 1/m
    body = run(Body(mass=50, v=(3.0, 0.0, 0.0), engines=[plane]), 400)
    assert body.v[0] == pytest.approx(3 / (1 + k * 3 * 4.0), rel=1e-12)
    assert body.x[0] == pytest.approx(math.log(1 + k * 3 * 4.0) / k, rel=1e-3)


def test_an_acceleration_set_from_outside_acts_for_one_step():
    body = Body(a=(2.0, 0.0, 0.0), is_corporeal=False, is_pushed=True)
    first = run(body, 1).v
    assert (first, body.a) == (pytest.approx((2 * STEP_S, 0, 0)), pytest.approx((2, 0, 0)))
    assert (run(body, 1).v, body.a) == (first, pytest.approx(ZERO))


# Rotation.


@pytest.mark.parametrize("w", [(1.0, 0.2, -0.3), (0.01, 3.0, 0.01), (0.0, 0.0, 5.0)])
def test_a_free_spin_keeps_energy_and_momentum(w):
    body = Body(inertia=(1.0, 2.0, 2.5), q=unit((0.3, -0.2, 0.8, 0.1)), w=w)
    energy, momentum = spin_of(body)
    for _ in range(5000):
        now_energy, now_momentum = spin_of(run(body, 1))
        assert now_energy == pytest.approx(energy, rel=3e-4)
        assert now_momentum == pytest.approx(momentum, rel=1e-9, abs=1e-9)
    assert math.hypot(*body.q) == pytest.approx(1, abs=1e-14)


# Buoyancy.


def test_the_centre_of_buoyancy_comes_to_rest_above_the_centre_of_mass():
    centre = (0.06, -0.03, -0.1)
    planes = [
        DragPlane(place, normal, 1.0, 0.1)
        for normal in ((1, 0, 0), (0, 1, 0), (0, 0, 1))
        for place in ((0.3, 0.3, 0.3), (-0.3, -0.3, -0.3), (0.3, -0.3, -0.3), (-0.3, 0.3, 0.3))
    ]
    engines = [Buoyancy(20 * 9.81, centre), *planes]
    body = Body(mass=20, inertia=(1.0, 1.5, 2.0), q=about((1, 0, 0), 50), engines=engines)
    up = rotate(run(body, 8000, GRAVITY).q, centre)
    assert [part / math.hypot(*centre) for part in up] == pytest.approx((0, 0, -1), abs=0.01)
    assert math.hypot(*body.w) < 0.02


# Turbulence.


def limits(force=0.0, torque=0.0, rate=0.0):
    zero = (0.0, 0.0, 0.0)
    forces, torques = (tuple(-force for _ in zero), (force,) * 3), (tuple(-torque for _ in zero), (torque,) * 3)
    return wire.Turbulence(*forces, -rate, rate, *torques, -rate, rate)


def turbulence(limits, seed=0):
    return TurbulenceForce(limits=limits, random=random.Random(seed))


def test_equal_limits_make_a_constant_world_wrench_on_corporeal_bodies():
    constant = turbulence(wire.Turbulence((3, 0, 0), (3, 0, 0), 0, 0, (0, 0, 0.5), (0, 0, 0.5), 0, 0))
    light = run(Body(mass=2, q=about((0, 1, 0), 90)), 100, constant)  # its x axis points up
    assert light.v == pytest.approx((1.5, 0, 0))
    assert light.w == pytest.approx((-0.5, 0, 0))  # down in the world is -x in the body
    heavy = run(Body(mass=6), 100, constant)
    assert (heavy.v, heavy.w) == (pytest.approx((0.5, 0, 0)), pytest.approx((0, 0, 0.5)))
    assert run(Body(mass=6, is_corporeal=False), 100, constant).v == ZERO


def test_turbulence_walks_within_its_limits_and_is_reproducible():
    first, second, other = (turbulence(limits(2.0, 0.1, rate=50.0), seed) for seed in (1, 1, 2))
    seen = []
    for _ in range(2000):
        for each in (first, second, other):
            each.begin_step(STEP_S)
        assert (first.force, first.torque) == (second.force, second.torque)
        seen.append((*first.force, *first.torque))
    for part, limit in zip(zip(*seen, strict=True), (2, 2, 2, 0.1, 0.1, 0.1), strict=True):
        assert max(abs(after - before) for before, after in itertools.pairwise(part)) <= 50.0 * STEP_S
        assert max(map(abs, part)) == pytest.approx(limit)
    assert other.force != first.force


@pytest.mark.parametrize("broken", [{"force_a": (1, 0, 0)}, {"torque_rate_a": 1}, {"force_b": (math.nan, 1, 1)}])
def test_invalid_limits_of_turbulence_are_refused(broken):
    with pytest.raises(ValueError, match="limit"):
        check_turbulence(replace(limits(), **broken))


# Numerical overflow.


@pytest.mark.parametrize("beyond", [{"v": (1e308, 1e308, 0.0)}, {"w": (1e308, 0.0, 1.0)}])
def test_a_body_whose_state_overflows_stops_where_it_was(beyond):
    body = Body(x=(1.0, 2.0, 3.0), **beyond)
    assert not body.step(Force(), 100.0)
    assert body == Body(x=(1.0, 2.0, 3.0))
    assert body.step(Force(), 100.0)
