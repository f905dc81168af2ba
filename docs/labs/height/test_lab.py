# SPDX-License-Identifier: Apache-2.0
"""The height that is asked for: within 0.2 m from the sixth second on, in every wind."""

import importlib
import os
import sys
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import drone_bridge.learn  # noqa: F401 # registers the environments

sys.path.insert(0, str(Path(__file__).parent))
lab = importlib.import_module(os.environ.get("LAB", "start"))


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_the_height_is_held(seed):
    env = gymnasium.make("drone_bridge/Testbed-v0", noise=0.5).unwrapped
    seen, _ = env.reset(seed=seed)
    pilot, away = lab.Pilot(), []
    for step in range(600):
        seen, _, is_over, _, _ = env.step(np.array(pilot.act(seen), np.float32))
        assert not is_over, "it was lost, or flew into the sphere"
        if step >= 360:
            away.append(abs(seen[7]))
    assert max(away) < 0.2
