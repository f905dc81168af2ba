# SPDX-License-Identifier: Apache-2.0
"""The emulated water and what swims in it, against closed forms."""

import math
import random

import numpy as np
import pytest

from drone_bridge.motion.wxyz import IDENTITY, conjugate, multiply, rotate, unit
from drone_bridge.simulator.emulator.bodies import Body, Motion
from drone_bridge.simulator.emulator.forces import Buoyancy, DragPlane, Gravity, Turbulence, TurbulenceLimits
from drone_bridge.simulator.emulator.physics import Physics

pytestmark = pytest.mark.slow

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


def test_a_quarter_turn_about_z_takes_x_to_y_and_back():
    quarter = about((0, 0, 1), 90)
    assert rotate(quarter, (1, 0, 0)) == pytest.approx((0, 1, 0))
    assert rotate(conjugate(quarter), (0, 1, 0)) == pytest.approx((1, 0, 0))
    assert rotate(multiply(quarter, about((1, 0, 0), 90)), (0, 1, 0)) == pytest.approx((0, 0, 1))


@pytest.mark.parametrize("q", [(0, 0, 0, 0), (math.nan, 0, 0, 1), (math.inf, 0, 0, 0)])
def test_a_zero_quaternion_is_no_rotation(q):
    with pytest.raises(ValueError, match="not a rotation"):
        unit(q)


@pytest.mark.parametrize(
    "properties",
    [{"mass": 0}, {"mass": math.nan}, {"radius": -1}, {"inertia": (1, 0, 1)}, {"inertia": (1, 1, math.inf)}],
)
def test_unphysical_bodies_are_refused(properties):
    with pytest.raises(ValueError, match="finite and above 0"):
        Body(**properties)


@pytest.mark.parametrize("q", [(1e-320, 0, 1e-320, 0), (1.7e308, 0, 1.7e308, 0), (3, 0, 3, 0)])
def test_rotations_of_any_length_are_made_unit_quaternions(q):
    assert unit(q) == pytest.approx((math.sqrt(0.5), 0, math.sqrt(0.5), 0), abs=1e-15)


# Translation.


def test_free_fall():
    fall = run(physics_with(motion=Motion(x=(1, 2, 3), v=(0.5, 0, -2)), forces=[Gravity()]), 300)
    t = 3.0
    assert fall.x == pytest.approx((1 + 0.5 * t, 2, 3 - 2 * t + 9.81 * t**2 / 2), rel=1e-12)
    assert fall.v == pytest.approx((0.5, 0, -2 + 9.81 * t), rel=1e-12)
    assert fall.a == pytest.approx((0, 0, 9.81), rel=1e-9)


def test_all_masses_fall_alike_and_what_has_no_body_does_not_fall():
    physics = physics_with(Body(mass=0.1), forces=[Gravity()])
    physics.bodies.add(1, Body(mass=1e4), Motion(), True)
    physics.bodies.add(2, Body(), Motion(v=(1, 0, 0), w=(0, 0, 1)), False)
    run(physics, 100)
    assert physics.bodies.motion(0).x == pytest.approx(physics.bodies.motion(1).x)
    assert physics.bodies.motion(0).x[2] == pytest.approx(9.81 / 2)
    without = physics.bodies.motion(2)
    assert without.x == pytest.approx((1, 0, 0))  # it is still affected by its v
    assert without.q == pytest.approx(about((0, 0, 1), math.degrees(1)))


def test_drag_alone_slows_down_as_one_over_one_plus_k_v_t():
    plane = DragPlane(ZERO, (1, 0, 0), coefficient=1.0, area=0.2)
    k = 1000 * 0.2 / (2 * 50)  # 1/m
    motion = run(physics_with(Body(mass=50), Motion(v=(3, 0, 0)), plane), 400)
    assert motion.v[0] == pytest.approx(3 / (1 + k * 3 * 4.0), rel=1e-12)
    assert motion.x[0] == pytest.approx(math.log(1 + k * 3 * 4.0) / k, rel=1e-3)


def test_terminal_velocity_is_reached_as_a_hyperbolic_tangent():
    plane = DragPlane(ZERO, (0, 0, 1), coefficient=0.8, area=0.25)
    physics = physics_with(Body(mass=40), Motion(), plane, forces=[Gravity()])
    terminal = math.sqrt(2 * 40 * 9.81 / (1000 * 0.8 * 0.25))
    for step in range(1, 101):
        physics.step()
        expected = terminal * math.tanh(9.81 * step * STEP_S / terminal)
        assert physics.bodies.motion(0).v[2] == pytest.approx(expected, rel=2e-3)
    motion = run(physics, 400)
    assert motion.v[2] == pytest.approx(terminal, rel=1e-3)
    assert motion.a == pytest.approx(ZERO, abs=1e-9)


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


def test_a_drag_plane_off_the_centre_turns_the_body():
    physics = physics_with(Body(), Motion(v=(1, 0, 0)), DragPlane((0, 0.5, 0), (1, 0, 0), 1.0, 0.01))
    # Pushed back at its right side, it turns right.
    assert run(physics, 1).w[2] > 0


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


def test_the_energy_of_a_spin_converges_with_the_square_of_the_step():
    def error(duration):
        physics = physics_with(Body(inertia=(1.0, 2.0, 3.0)), Motion(w=(1, 1, 1)), duration=duration)
        before = spin_of(physics)[0]
        worst = 0.0
        for _ in range(round(5 / duration)):
            physics.step()
            worst = max(worst, abs(spin_of(physics)[0] - before))
        return worst

    assert error(0.04) / error(0.02) == pytest.approx(4, rel=0.1)


def test_a_symmetric_top_precesses_at_the_known_rate():
    """The angular velocity of a top with Ix = Iy turns about its z at (Iz - Ix) / Ix times wz."""
    physics = physics_with(Body(inertia=(1.0, 1.0, 2.0)), Motion(w=(0.5, 0, 3.0)))
    motion = run(physics, 1000)
    angle = (2.0 - 1.0) / 1.0 * 3.0 * 10.0
    assert motion.w == pytest.approx((0.5 * math.cos(angle), 0.5 * math.sin(angle), 3.0), abs=0.01)


def test_a_spin_about_one_axis_turns_by_the_angle():
    motion = run(physics_with(Body(inertia=(1, 2, 3)), Motion(w=(0, 0.7, 0))), 200)
    assert motion.q == pytest.approx(about((0, 1, 0), math.degrees(1.4)))


def test_quaternions_stay_of_unit_length_in_the_longest_run():
    physics = physics_with(motion=Motion(w=(40, -31, 27)))
    for _ in range(20):
        physics.bodies.w += 0.1
        assert math.hypot(*run(physics, 1000).q) == pytest.approx(1, abs=1e-14)


def test_spins_of_any_speed_stay_finite():
    motion = run(physics_with(Body(inertia=(1, 2, 3)), Motion(w=(1e100, -1e100, 1))), 100)
    assert math.hypot(*motion.q) == pytest.approx(1)


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


def test_a_neutrally_buoyant_body_stays_where_it_is():
    motion = run(sinker(0, (0, 0, -0.1), Motion(x=(1, 2, 3))), 1000)
    assert motion.x == pytest.approx((1, 2, 3), abs=1e-9)
    assert motion.q == pytest.approx(IDENTITY, abs=1e-9)


def test_the_centre_of_buoyancy_comes_to_rest_above_the_centre_of_mass():
    centre = (0.06, -0.03, -0.1)
    motion = run(sinker(0, centre, Motion(q=about((1, 0, 0), 50))), 8000)
    assert np.array(rotate(motion.q, centre)) / math.hypot(*centre) == pytest.approx((0, 0, -1), abs=0.01)
    assert math.hypot(*motion.w) < 0.02


def test_a_light_body_rises_at_the_speed_where_drag_balances_buoyancy():
    motion = run(sinker(30.0, (0, 0, -0.1), Motion()), 3000)
    assert motion.v[2] == pytest.approx(-math.sqrt(2 * 30 / (1000 * 4 * 0.1)), rel=1e-3)


def test_small_swings_have_the_pendulum_s_period():
    """About x, with the torque of buoyancy b = 0.1 m above the centre of mass: I a = -F b sin(angle)."""
    buoyancy = Buoyancy(20 * 9.81, (0, 0, -0.1))
    physics = physics_with(Body(20), Motion(q=about((1, 0, 0), 1)), buoyancy, forces=[Gravity()])
    period = 2 * math.pi / math.sqrt(20 * 9.81 * 0.1 / 1.0)
    crossings, before = [], 1.0
    for step in range(1000):
        physics.step()
        now = physics.bodies.motion(0).q[1]
        if before > 0 >= now:
            crossings.append((step + before / (before - now)) * STEP_S)
        before = now
    assert np.diff(crossings) == pytest.approx(period, rel=2e-3)


# Turbulence.


def limits(force=0.0, torque=0.0, rate=0.0):
    zero = (0.0, 0.0, 0.0)
    return TurbulenceLimits(
        tuple(-force for _ in zero),
        (force,) * 3,
        (-rate, rate),
        tuple(-torque for _ in zero),
        (torque,) * 3,
        (-rate, rate),
    )


def test_equal_limits_make_a_constant_wrench_in_the_world_on_every_body():
    constant = TurbulenceLimits((3, 0, 0), (3, 0, 0), (0, 0), (0, 0, 0.5), (0, 0, 0.5), (0, 0))
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


@pytest.mark.parametrize("broken", [{"force_a": (1, 0, 0)}, {"torque_rate": (1, 0)}, {"force_b": (math.nan, 1, 1)}])
def test_invalid_limits_of_turbulence_are_refused(broken):
    fields = {"force_a": ZERO, "force_b": ZERO, "force_rate": (0, 0), "torque_a": ZERO, "torque_b": ZERO}
    with pytest.raises(ValueError, match="limits"):
        TurbulenceLimits(**{**fields, "torque_rate": (0, 0), **broken})


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
