# SPDX-License-Identifier: Apache-2.0
"""The environments of Gymnasium: what they promise to whoever trains on them, and how fast they are."""

import hashlib
import sys
import time
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import drone_bridge.learn  # noqa: F401 # registers the environments
from drone_bridge.testbed.device import Motion

sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))

NAMES = ("Testbed", "Landing")
HOVER = {"Testbed": [0.0, 0.0, 0.0, 9.81], "Landing": [0.0] * 4}
each_name = pytest.mark.parametrize("name", NAMES)


def make(name, **options):
    return gymnasium.make(f"drone_bridge/{name}-v0", **options)


def as_bytes(observation):
    parts = observation.values() if isinstance(observation, dict) else [observation]
    return b"".join(part.tobytes() for part in parts)


def digest(name, seed, **options):
    """Return a digest of all that 100 steps of random actions show."""
    env, actions = make(name, **options), np.random.default_rng(7)
    found = hashlib.sha256(as_bytes(env.reset(seed=seed)[0]))
    low, high = env.action_space.low, env.action_space.high
    for _ in range(100):
        observation, reward, is_over, is_late, info = env.step(actions.uniform(low, high).astype(np.float32))
        found.update(as_bytes(observation) + repr((reward, is_over, info)).encode())
        if is_over or is_late:
            found.update(as_bytes(env.reset()[0]))
    return found.digest()


@pytest.mark.filterwarnings("ignore:.*we recommend:UserWarning")
@each_name
@pytest.mark.parametrize("images", [False, True])
def test_gymnasium_finds_nothing_wrong(name, images):
    check_env(make(name, images=images, render_mode="rgb_array").unwrapped)


@each_name
def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(name):
    assert digest(name, 3) == digest(name, 3)
    assert digest(name, 3) != digest(name, 4)


@each_name
def test_images_change_nothing_but_the_images(name):
    plain, seeing = make(name), make(name, images=True)
    for _ in range(2):
        assert np.array_equal(plain.reset(seed=5)[0], seeing.reset(seed=5)[0]["state"])
        for _ in range(12):
            one, *_ = plain.step(np.array(HOVER[name], np.float32))
            other, *_ = seeing.step(np.array(HOVER[name], np.float32))
            assert np.array_equal(one, other["state"])


@each_name
def test_a_picture_shows_something(name):
    env = make(name, render_mode="rgb_array")
    pictures = []
    for seed in range(8):  # the testbed's target is not always in view
        env.reset(seed=seed)
        pictures.append(env.render())
    assert all(picture.dtype == np.uint8 and picture.shape[2] == 3 for picture in pictures)
    assert max(len(np.unique(picture.reshape(-1, 3), axis=0)) for picture in pictures) > 1


def test_commands_come_late_by_as_much_as_the_seed_says():
    """A command of full thrust shows in the velocity after one step, or one later per step of delay."""
    firsts = set()
    for seed in range(12):
        env = make("Testbed", noise=0.0, gusts=0.0, delay=2)
        env.reset(seed=seed)
        climbs = [env.step(np.array([0, 0, 0, 25.0], np.float32))[0][4] for _ in range(4)]
        firsts.add(next(number for number, climb in enumerate(climbs) if climb > 0.1))
    assert firsts == {0, 1, 2}


def test_the_target_is_where_the_observation_says():
    env = make("Testbed", noise=0.0, gusts=0.0, delay=0)
    state, info = env.reset(seed=2)
    assert np.linalg.norm(state[5:8]) == pytest.approx(info["distance"], abs=1e-3)
    before = state[5:8].copy()
    for _ in range(30):  # turn left by a quarter of a radian: what was ahead is to the right
        state, *_ = env.step(np.array([0, 0, 0.5, 9.81], np.float32))
    angle = np.arctan2(state[6], state[5]) - np.arctan2(before[1], before[0])
    assert (angle + np.pi) % (2 * np.pi) - np.pi == pytest.approx(-0.25, abs=0.05)


def test_a_drone_that_gets_lost_ends_the_episode():
    env = make("Testbed")
    env.reset(seed=1)
    rewards = []
    is_over = False
    while not is_over:
        _, reward, is_over, is_late, _ = env.step(np.zeros(4, np.float32))  # it falls
        rewards.append(reward)
        assert not is_late
    assert rewards[-1] < -9


@pytest.mark.parametrize(
    "options", [{"patterns": []}, {"patterns": ["follow"]}, {"delay": -1}, {"render_mode": "human"}]
)
def test_what_can_not_be_is_refused_with_what_is_allowed(options):
    with pytest.raises(ValueError, match=r"allowed|at least"):
        make("Landing", disable_env_checker=True, **options).reset()


def ratio_to_bare_physics(name):
    """Return steps per second, and their time by that of the bare physics: the best of interleaved blocks."""
    env = make(name, **({"patterns": ["circular"]} if name == "Landing" else {}))
    env.reset(seed=1)
    flight, hover, block = env.unwrapped.flight, np.array(HOVER[name], np.float32), 200
    hovering = Motion(thrust=9.81)
    stepping_s, bare_s = [], []
    for _ in range(8):
        began = time.thread_time()
        for _ in range(block):
            env.unwrapped.step(hover)
        stepping_s.append(time.thread_time() - began)
        began = time.thread_time()
        for _ in range(block):
            flight.advance(hovering) if name == "Testbed" else flight.world.advance(0.04)
        bare_s.append(time.thread_time() - began)
    return block / min(stepping_s), min(stepping_s) / min(bare_s)


def test_what_the_environment_adds_takes_less_than_half_of_the_physics():
    """Asked of Testbed: Landing's 1.44 leaves too little to 1.5 for a machine that does other things."""
    steps_per_s, ratio = min((ratio_to_bare_physics("Testbed") for _ in range(2)), key=lambda found: found[1])
    assert ratio < 1.5
    assert steps_per_s > 1000  # 2,000 on a machine that is not busy: docs/learn.md


def test_the_pilot_of_the_example_lands_where_a_policy_wants_to():
    """Without a learned policy: straight to the pad, and down."""
    from learn_to_land import land_inside

    def straight(seen):
        pad = np.arctanh(np.clip(seen[:3], -0.99, 0.99)) * 2
        is_above = np.hypot(*pad[:2]) < 0.25 + 0.2 * max(pad[2], 0)
        return [*(0.6 * pad[:2]), -0.33 - 0.4 * pad[2] if is_above else 0.0] if seen[-1] > 0.1 else [0, 0, 0.5]

    ((pattern, errors),) = land_inside(straight, ["circular"], 3)
    assert pattern == "circular"
    assert max(errors) < 0.25
