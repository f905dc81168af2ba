# SPDX-License-Identifier: Apache-2.0
import math

import numpy as np
import pytest
from rotations import of_testbed_angles

from drone_bridge.testbed.vehicle.device.drone_state import DroneState
from drone_bridge.testbed.vehicle.emulator.world import RED, Sphere, StereoCamera


def at(position=(0, 0, 0), heading=0.0, pitch=0.0, roll=0.0):
    return DroneState(np.array(position, dtype=float), np.zeros(3), of_testbed_angles(heading, pitch, roll))


def traced(camera_arguments, state, spheres, side):
    """Reference rendering: intersect each pixel's ray, in the world frame, with each sphere.

    It also returns which pixels are too close to an outline to be certain.
    """
    width, height, horizontal, vertical, separation = camera_arguments
    columns, rows = np.meshgrid(np.arange(width), np.arange(height))
    across = ((columns + 0.5) / width * 2 - 1) * math.tan(math.radians(horizontal / 2))
    down = ((rows + 0.5) / height * 2 - 1) * math.tan(math.radians(vertical / 2))
    rays = np.stack([across, -down, -np.ones_like(across)], axis=-1)
    rays /= np.linalg.norm(rays, axis=-1, keepdims=True)
    rays = np.einsum("ij,rcj->rci", state.rotation, rays)
    pinhole = state.position + state.rotation @ [side * separation / 2, 0, 0]

    image = np.full((height, width, 3), 255, np.uint8)
    nearest = np.full((height, width), np.inf)
    unsure = np.zeros((height, width), bool)
    for sphere in spheres:
        offset = pinhole - np.array(sphere.centre)
        half_b = rays @ offset
        discriminant = half_b**2 - (offset @ offset - sphere.radius**2)
        unsure |= np.abs(discriminant) < 1e-9
        root = np.sqrt(np.maximum(discriminant, 0))
        near, far = -half_b - root, -half_b + root
        depth = np.where(near > 0, near, far)
        hit = (discriminant >= 0) & (depth > 0) & (depth < nearest)
        nearest[hit] = depth[hit]
        image[hit] = sphere.colour
    return image, unsure


def disjoint_spheres(generator, count, spread):
    spheres = []
    while len(spheres) < count:
        centre, radius = tuple(generator.normal(0, spread, 3)), generator.uniform(0.1, 1.5)
        sphere = Sphere(centre, radius, tuple(generator.integers(0, 255, 3).tolist()))
        if all(math.dist(sphere.centre, other.centre) > sphere.radius + other.radius for other in spheres):
            spheres.append(sphere)
    return spheres


@pytest.mark.parametrize(
    ("width", "height", "horizontal", "vertical"),
    [(1, 1, 90, 90), (2, 1, 120, 60), (1, 7, 30, 120), (64, 48, 60, 45), (101, 37, 150, 20), (33, 80, 120, 170)],
)
@pytest.mark.parametrize("spread", [1, 4])
def test_every_pixel_is_what_tracing_its_ray_gives(width, height, horizontal, vertical, spread):
    generator = np.random.default_rng(width + spread)
    arguments = (width, height, horizontal, vertical, 0.25)
    camera = StereoCamera(*arguments)
    coloured = 0
    for _ in range(30):
        spheres = disjoint_spheres(generator, 6, spread)
        state = at(generator.normal(0, 1, 3), *generator.uniform(-180, 180, 3))
        for image, side in zip(camera.render(state, spheres), (-1, 1), strict=True):
            expected, unsure = traced(arguments, state, spheres, side)
            assert np.array_equal(image[~unsure], expected[~unsure])
            assert unsure.mean() < 0.01
            coloured += np.count_nonzero((image != 255).any(axis=2))
    assert coloured > 0


def test_the_ground_is_a_checkerboard_below_the_horizon_and_behind_spheres():
    """Looking straight down from 10 m, a tile of 2 m is a fifth of an image with 90 degrees of view."""
    camera = StereoCamera(300, 300, 90, 90, 0.0)
    image = camera.render(at(), [Sphere((0.0, 0.0, -5.0), 0.5, RED)], -10.0)[0]
    assert (image[:150] == 255).all(axis=-1).sum() + (image[:150] == RED).all(axis=-1).sum() == 150 * 300  # the sky
    assert {tuple(pixel) for pixel in image[149:151, 145:155].reshape(-1, 3)} == {RED}
    assert (image[153:, 0] < 255).all()
    image = camera.render(at(pitch=90.0), [], -10.0)[0]
    row = image[160, :, 0].astype(int)
    tiles = np.flatnonzero(np.diff(row > (row.min() + row.max()) / 2))
    assert set(np.diff(tiles)) <= {29, 30, 31}
    assert len(tiles) >= 8


def test_without_a_ground_or_below_it_all_is_white():
    camera = StereoCamera(30, 30, 90, 90, 0.0)
    assert (camera.render(at(), [])[0] == 255).all()
    assert (camera.render(at(), [], 1.0)[0] == 255).all()
