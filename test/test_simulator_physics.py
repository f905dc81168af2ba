# SPDX-License-Identifier: Apache-2.0
"""The emulated water and what swims in it, against closed forms."""

import math
import random
from dataclasses import replace

import numpy as np
import pytest

from drone_bridge.motion.wxyz import multiply, rotate, unit
from drone_bridge.simulator import codec as wire
from drone_bridge.simulator.emulator.physics import (
    Body,
    Buoyancy,
    DragPlane,
    Gravity,
    Motion,
    Physics,
    Turbulence,
    check_turbulence,
)

STEP_S = 0.01
ZERO = (0.0, 0.0, 0.0)


def physics_with(body=None, motion=None, *engines, forces=(), corporeal=True, duration=STEP_S):
    physics = Physics(duration)
    physics.bodies.add(0, body or Body(), motion or Motion(), corporeal)
    for force in forces:
        physics.add_force(force)
    for engine in engines:
        physics.attach(0, engine)
    return physics


def run(physics, steps):
    for _ in range(steps):
        assert physics.step() == []
    return physics.bodies.motion(0)


def about(axis, degrees):
    half = math.radians(degrees) / 2
    return (math.cos(half), *(math.sin(half) * component for component in axis))


def spin_of(physics):
    """Kinetic energy of the rotation, and the angular momentum in the world."""
    bodies = physics.bodies
    momentum = bodies.inertia * bodies.w
    return float((bodies.w * momentum).sum() / 2), np.array(rotate(bodies.q, momentum))[:, 0]


# Rotations.


@pytest.mark.parametrize(
    "properties",
    [{"mass": 0}, {"mass": math.nan}, {"radius": -1}, {"inertia": (1, 0, 1)}, {"inertia": (1, 1, math.inf)}],
)
def test_unphysical_bodies_are_refused(properties):
    with pytest.raises(ValueError, match="finite and above 0"):
        Body(**properties)


# Translation.


def test_free_fall():
    fall = run(physics_with(motion=Motion(x=(1, 2, 3), v=(0.5, 0, -2)), forces=[Gravity()]), 300)
    t = 3.0
    assert fall.x == pytest.approx((1 + 0.5 * t, 2, 3 - 2 * t + 9.81 * t**2 / 2), rel=1e-12)
    assert fall.v == pytest.approx((0.5, 0, -2 + 9.81 * t), rel=1e-12)
    assert fall.a == pytest.approx((0, 0, 9.81), rel=1e-9)


def test_drag_alone_slows_down_as_one_over_one_plus_k_v_t():
    plane = DragPlane(ZERO, (1, 0, 0), coefficient=1.0, area=0.2)
    k = 1000 * 0.2 / (2 * 50)  # 1/m
    motion = run(physics_with(Body(mass=50), Motion(v=(3, 0, 0)), plane), 400)
    assert motion.v[0] == pytest.approx(3 / (1 + k * 3 * 4.0), rel=1e-12)
    assert motion.x[0] == pytest.approx(math.log(1 + k * 3 * 4.0) / k, rel=1e-3)


def test_drag_takes_energy_away_at_any_speed():
    planes = [DragPlane((0.3, 0.2, 0.1), normal, 1.0, 1.0) for normal in ((1, 0, 0), (0, 1, 0), (0, 0, 1))]
    physics = physics_with(Body(), Motion(v=(1e6, -1e6, 1e6), w=(1e3, 0, -1e3)), *planes)
    energies = []
    for _ in range(1000):
        physics.step()
        motion = physics.bodies.motion(0)
        energies.append(math.hypot(*motion.v, *motion.w) ** 2 / 2)
    assert np.diff(energies).max() < 0
    assert energies[-1] < 1e-6 * energies[0]


def test_an_acceleration_set_from_outside_acts_for_one_step():
    physics = physics_with(corporeal=False)
    physics.bodies.push(0, (2, 0, 0))
    assert physics.bodies.motion(0).a == (2, 0, 0)
    first = run(physics, 1)
    assert first.v == pytest.approx((2 * STEP_S, 0, 0))
    assert first.a == pytest.approx((2, 0, 0))
    again = run(physics, 1)
    assert again.v == pytest.approx(first.v)
    assert again.a == pytest.approx(ZERO)


# Rotation.


@pytest.mark.parametrize("w", [(1.0, 0.2, -0.3), (0.01, 3.0, 0.01), (0.0, 0.0, 5.0)])
def test_a_free_spin_keeps_energy_and_momentum(w):
    q = unit((0.3, -0.2, 0.8, 0.1))
    physics = physics_with(Body(inertia=(1.0, 2.0, 2.5)), Motion(q=q, w=w))
    energy, momentum = spin_of(physics)
    for _ in range(5000):
        physics.step()
        now_energy, now_momentum = spin_of(physics)
        assert now_energy == pytest.approx(energy, rel=3e-4)
        assert now_momentum == pytest.approx(momentum, rel=1e-9, abs=1e-9)
    final = physics.bodies.motion(0)
    assert math.hypot(*final.q) == pytest.approx(1, abs=1e-14)


# Buoyancy.


def sinker(surplus, centre, motion):
    """A vehicle of 20 kg whose drag damps every motion."""
    body = Body(mass=20, inertia=(1.0, 1.5, 2.0))
    planes = [
        DragPlane(place, normal, 1.0, 0.1)
        for normal in ((1, 0, 0), (0, 1, 0), (0, 0, 1))
        for place in ((0.3, 0.3, 0.3), (-0.3, -0.3, -0.3), (0.3, -0.3, -0.3), (-0.3, 0.3, 0.3))
    ]
    return physics_with(body, motion, Buoyancy(20 * 9.81 + surplus, centre), *planes, forces=[Gravity()])


def test_the_centre_of_buoyancy_comes_to_rest_above_the_centre_of_mass():
    centre = (0.06, -0.03, -0.1)
    motion = run(sinker(0, centre, Motion(q=about((1, 0, 0), 50))), 8000)
    assert np.array(rotate(motion.q, centre)) / math.hypot(*centre) == pytest.approx((0, 0, -1), abs=0.01)
    assert math.hypot(*motion.w) < 0.02


# Turbulence.


def limits(force=0.0, torque=0.0, rate=0.0):
    zero = (0.0, 0.0, 0.0)
    forces, torques = (tuple(-force for _ in zero), (force,) * 3), (tuple(-torque for _ in zero), (torque,) * 3)
    return wire.Turbulence(*forces, -rate, rate, *torques, -rate, rate)


def test_equal_limits_make_a_constant_wrench_in_the_world_on_every_body():
    constant = wire.Turbulence((3, 0, 0), (3, 0, 0), 0, 0, (0, 0, 0.5), (0, 0, 0.5), 0, 0)
    sideways = about((0, 1, 0), 90)  # its x axis points up
    physics = physics_with(Body(mass=2), Motion(q=sideways), forces=[Turbulence(constant, random.Random(0))])
    physics.bodies.add(1, Body(mass=6), Motion(), True)
    physics.bodies.add(2, Body(mass=6), Motion(), False)
    motion = run(physics, 100)
    assert motion.v == pytest.approx((1.5, 0, 0))
    assert motion.w == pytest.approx((-0.5, 0, 0))  # down in the world is -x here
    assert physics.bodies.motion(1).v == pytest.approx((0.5, 0, 0))
    assert physics.bodies.motion(1).w == pytest.approx((0, 0, 0.5))
    assert physics.bodies.motion(2).v == (0, 0, 0)


def test_turbulence_walks_within_its_limits_and_alike_for_the_same_seed():
    first, second, other = (Turbulence(limits(2.0, 0.1, rate=50.0), random.Random(seed)) for seed in (1, 1, 2))
    seen = []
    for _ in range(2000):
        for turbulence in (first, second, other):
            turbulence.begin_step(STEP_S)
        assert (first.force, first.torque) == (second.force, second.torque)
        seen.append((*first.force, *first.torque))
    assert np.abs(np.diff(seen, axis=0)).max() <= 50.0 * STEP_S
    assert np.abs(seen).max(axis=0) == pytest.approx((2, 2, 2, 0.1, 0.1, 0.1))
    assert other.force != first.force


@pytest.mark.parametrize("broken", [{"force_a": (1, 0, 0)}, {"torque_rate_a": 1}, {"force_b": (math.nan, 1, 1)}])
def test_invalid_limits_of_turbulence_are_refused(broken):
    with pytest.raises(ValueError, match="limits"):
        check_turbulence(replace(limits(), **broken))


# Frames.


def test_the_model_frame_differs_from_the_body_frame_by_btom():
    btom = about((0, 0, 1), 90)  # the body's x is the model's y
    physics = physics_with(Body(btom=btom, inertia=(1, 2, 3)))
    bodies = physics.bodies
    bodies.set_model_attitude(0, about((1, 0, 0), 180))
    bodies.set_model_rates(0, (0, 2.0, 0))
    motion = bodies.motion(0)
    assert motion.w == pytest.approx((2.0, 0, 0))
    assert bodies.model_rates(0) == pytest.approx((0, 2.0, 0))
    assert bodies.model_attitude(0) == pytest.approx(about((1, 0, 0), 180))
    assert motion.q == pytest.approx(multiply(about((1, 0, 0), 180), btom))


# What can't be computed.


def test_a_body_whose_state_leaves_what_is_finite_stops_where_it_was():
    physics = physics_with(motion=Motion(x=(1, 2, 3), v=(1e308, 0, 0)), duration=10.0)
    physics.bodies.add(1, Body(), Motion(v=(1, 0, 0)), True)
    physics.bodies.set_velocity(0, (1e308, 1e308, 0))
    physics.bodies.push(0, (1e308, 0, 0))
    assert physics.step() == [0]
    assert physics.bodies.motion(0) == Motion(x=(1, 2, 3))
    assert physics.bodies.motion(1).x == (10, 0, 0)
    assert physics.step() == []


def test_bodies_come_and_go_without_touching_the_others():
    physics = physics_with(Body(mass=2), Motion(x=(1, 0, 0)), Buoyancy(2 * 9.81, ZERO), forces=[Gravity()])
    for number in (1, 2):
        physics.bodies.add(number, Body(mass=number), Motion(x=(0, number, 0), v=(0, 0, number)), number == 2)
    engine = physics.attach(1, Buoyancy(1.0, ZERO))
    physics.remove_body(1)
    assert engine not in physics.engines
    physics.step()
    assert physics.bodies.ids == [0, 2]
    assert physics.bodies.motion(0).x == pytest.approx((1, 0, 0))
    assert physics.bodies.motion(2).v == pytest.approx((0, 0, 2 + 9.81 * STEP_S))
