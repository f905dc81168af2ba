# SPDX-License-Identifier: Apache-2.0
"""Cameras, triggers and streams of the emulated world."""

import math

import pytest
from offline_simulator import LEVEL, OfflineSimulator, entity

from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.vehicle.device.world import INVALID

ZERO = (0.0, 0.0, 0.0)
VEHICLE = 0
X, V, A, Q, W, CORPOREAL = sim.Attribute
QUARTER_ABOUT_Z = (math.sqrt(0.5), 0, 0, math.sqrt(0.5))


@pytest.fixture
def simulator():
    return OfflineSimulator()


def camera_on(simulator, number=VEHICLE, q=LEVEL, x=ZERO, f=1.0, enabled=True):
    return simulator.add(sim.AddCamera(number, q, x, f, enabled))


def view(simulator, camera, target):
    return simulator.world.view(camera, target)


# Cameras.


@pytest.mark.parametrize(
    ("place", "seen"),
    [
        ((2, 0, 0), (0, 0, 0.1, 2)),
        ((2, 1, 0), (0.5, 0, 0.1, 2)),  # right
        ((2, 0, 1), (0, 0.5, 0.1, 2)),  # down
        ((4, -1, -2), (-0.25, -0.5, 0.05, 4)),
        ((0, 1, 1), (0, 0, 0, 0)),  # beside the camera
        ((0, 0, 0), (0, 0, 0, 0)),  # where the camera is
        ((-2, 0, 0), (0, 0, 0, -2)),  # behind it
    ],
)
def test_a_camera_looks_along_x_with_y_to_the_right_and_z_down(simulator, place, seen):
    camera = camera_on(simulator)
    assert view(simulator, camera, simulator.add(entity(place, radius=0.2))) == pytest.approx(seen)


def test_a_camera_turns_and_moves_with_its_entity_s_model(simulator):
    """A vehicle at (10, 0, 0) faces east, with a camera 0.5 m ahead that faces down."""
    carrier = simulator.add(entity((10, 0, 0), btom=QUARTER_ABOUT_Z))
    simulator.get(sim.SetEntity(carrier, Q, QUARTER_ABOUT_Z))
    down = (math.sqrt(0.5), 0, -math.sqrt(0.5), 0)
    camera = camera_on(simulator, carrier, q=down, x=(0.5, 0, 0))
    target = simulator.add(entity((9.5, 1.0, 2.0), radius=0.2))  # to the south, which is right, and ahead, which is up
    assert view(simulator, camera, target) == pytest.approx((0.25, -0.25, 0.1, 2), abs=1e-6)
    simulator.get(sim.SetCamera(camera, sim.CameraAttribute.POSITION, (1.0, 0, 0)))
    assert view(simulator, camera, target) == pytest.approx((0.25, 0, 0.1, 2), abs=1e-6)
    simulator.get(sim.SetCamera(camera, sim.CameraAttribute.POSITION, ZERO))
    simulator.get(sim.SetCamera(camera, sim.CameraAttribute.ORIENTATION, LEVEL))
    assert view(simulator, camera, target) == pytest.approx((0.5, 2.0, 0.2, 1.0), abs=1e-6)


def test_views_that_do_not_fit_a_float32_are_clamped(simulator):
    camera = camera_on(simulator, f=1e300)
    x, y, radius, depth = view(simulator, camera, simulator.add(entity((1e-200, 1, -1))))
    assert (x, y) == pytest.approx((3.4e38, -3.4e38), rel=0.01)
    assert radius > 3e38
    assert depth < 1e-100


def test_a_disabled_camera_does_not_stream(simulator):
    camera = camera_on(simulator)
    target = simulator.add(entity((4, 0, 0)))
    simulator.add(sim.StreamCamera(camera, 1, target))
    assert len(simulator.step(2)) == 2
    simulator.get(sim.SetCamera(camera, sim.CameraAttribute.ENABLED, False))
    simulator.get(sim.SetEntity(VEHICLE, X, (1.0, 0, 0)))
    assert simulator.step(5) == []
    simulator.get(sim.SetCamera(camera, sim.CameraAttribute.ENABLED, True))
    assert simulator.step()[0].depth == pytest.approx(3)


def test_errors_of_cameras_are_reported(simulator):
    first, other = camera_on(simulator), simulator.add(entity())
    assert simulator.code(sim.AddCamera(9, LEVEL, ZERO, 1.0)) == 0
    assert simulator.code(sim.AddCamera(VEHICLE, (0, 0, 0, 0), ZERO, 1.0)) == INVALID
    assert simulator.code(sim.AddCamera(VEHICLE, LEVEL, ZERO, math.nan)) == INVALID
    assert simulator.code(sim.SetCamera(9, sim.CameraAttribute.ENABLED, True)) == 0
    assert simulator.code(sim.SetCamera(first, 4, b"")) == 1
    assert simulator.code(sim.SetCamera(first, sim.CameraAttribute.POSITION, (0, 0, math.inf))) == INVALID
    for camera, target, code in ((9, other, 0), (first, 9, 1), (first, VEHICLE, 2)):
        assert simulator.code(sim.StreamCamera(camera, 1, target)) == code


# Triggers.


def approach(simulator, speed, start=-1.0, y=0.0):
    """Return an entity that moves along x, past the vehicle's former position."""
    number = simulator.add(entity((start, y, 5.0)))
    simulator.get(sim.SetEntity(number, V, (speed, 0, 0)))
    return number, simulator.add(entity((0, 0, 5.0)))


def test_a_collision_is_reported_once_when_it_begins_and_once_when_it_ends(simulator):
    a, b = approach(simulator, 1.0)
    trigger = simulator.add(sim.AddTrigger(sim.CollisionTrigger(a, b, 0.5)))
    assert simulator.step(45) == []
    assert simulator.step(10) == [sim.Triggered(trigger)]
    assert simulator.step(90) == []
    assert simulator.step(10) == [sim.Untriggered(trigger)]
    assert simulator.step(50) == []


def test_only_a_sweep_detects_a_collision_between_two_steps(simulator):
    a, b = approach(simulator, 150.0, start=-0.75, y=0.3)
    plain = simulator.add(sim.AddTrigger(sim.CollisionTrigger(a, b, -1)))
    sweep = simulator.add(sim.AddTrigger(sim.SweepCollisionTrigger(a, b)))
    assert plain != sweep
    assert simulator.step(3) == [sim.Triggered(sweep), sim.Untriggered(sweep)]


def test_a_path_is_started_and_ended_and_can_be_started_again(simulator):
    number = simulator.add(entity((-1, 0, 5)))
    simulator.get(sim.SetEntity(number, V, (1.0, 0, 0)))
    trigger = simulator.add(sim.AddTrigger(sim.PathTrigger(number, (0, 0, 5), (1, 0, 5), 0.2)))
    assert simulator.step(75) == []
    assert simulator.step(10) == [sim.PathStarted(trigger)]
    assert simulator.step(90) == []
    assert simulator.step(10) == [sim.PathEnded(trigger)]
    simulator.get(sim.SetEntity(number, X, (0, 0, 5)))
    assert simulator.step() == [sim.PathStarted(trigger)]


def test_errors_of_triggers_are_reported(simulator):
    number = simulator.add(entity())
    for kind in (lambda a, b: sim.CollisionTrigger(a, b, 1.0), sim.SweepCollisionTrigger):
        assert simulator.code(sim.AddTrigger(kind(number, number))) == 1
        assert simulator.code(sim.AddTrigger(kind(9, number))) == 2
        assert simulator.code(sim.AddTrigger(kind(number, 9))) == 3
    assert simulator.code(sim.AddTrigger(sim.CollisionTrigger(VEHICLE, number, math.nan))) == INVALID
    assert simulator.code(sim.AddTrigger(sim.PathTrigger(9, ZERO, ZERO, 1.0))) == 1
    for distance, code in ((0.0, 2), (-1.0, 2), (math.nan, INVALID)):
        assert simulator.code(sim.AddTrigger(sim.PathTrigger(number, ZERO, ZERO, distance))) == code
    assert simulator.code(sim.AddTrigger(sim.PathTrigger(number, ZERO, (math.nan, 0, 0), 1.0))) == INVALID
    assert simulator.code(sim.AddTrigger(sim.UnknownTrigger(4, b"abc"))) == 0
    assert simulator.step() == []


# Streams.


def test_a_stream_has_the_requested_attributes_in_order(simulator):
    number = simulator.add(entity((1, 2, 3), btom=QUARTER_ABOUT_Z))
    simulator.get(sim.SetEntity(number, W, (0.0, 0.0, 0.5)))
    stream = simulator.add(sim.StreamEntity(number, 1, (CORPOREAL, X, W, X)))
    [data] = simulator.step()
    assert isinstance(data, sim.EntityData)
    assert (data.id, data.attributes) == (stream, (CORPOREAL, X, W, X))
    assert data.values == (False, (1, 2, 3), pytest.approx((0, 0, 0.5)), (1, 2, 3))


def test_a_period_of_n_is_every_nth_step_and_0_is_never(simulator):
    streams = {period: simulator.add(sim.StreamEntity(VEHICLE, period, (X,))) for period in (0, 1, 2, 7)}
    counts = dict.fromkeys(streams, 0)
    for _ in range(14):
        for event in simulator.step():
            counts[next(period for period, number in streams.items() if number == event.id)] += 1
    assert counts == {0: 0, 1: 14, 2: 7, 7: 2}


def test_errors_of_streams_are_as_specified(simulator):
    assert simulator.code(sim.StreamEntity(VEHICLE, 1, (X, 6))) == 0
    assert simulator.code(sim.StreamEntity(9, 1, (X,))) == 1


@pytest.mark.parametrize(("is_real", "right_m"), [(False, 0.0), (True, -1.0)])
def test_the_cuauv_server_sets_cameras_in_the_principal_axes(is_real, right_m):
    turned = OfflineSimulator(btom=(0.5**0.5, 0.0, 0.0, 0.5**0.5))  # the principal axes face the model's right
    turned.context.is_real = is_real
    camera = turned.add(sim.AddCamera(VEHICLE, LEVEL, ZERO, 1.0))
    buoy = turned.add(entity(position=(5.0, 0.0, 0.0)))
    turned.get(sim.SetCamera(camera, sim.CameraAttribute.POSITION, (1.0, 0.0, 0.0)))
    x, _, _, depth = view(turned, camera, buoy)
    assert (depth, x * depth) == pytest.approx((5.0 if is_real else 4.0, right_m))
