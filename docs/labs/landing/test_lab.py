# SPDX-License-Identifier: Apache-2.0
"""Good landings, from each of three starts."""

import importlib
import os
import sys
from pathlib import Path

import numpy as np
import pytest

from drone_bridge.telemetry.environment import LandingEnv

sys.path.insert(0, str(Path(__file__).parent))
lab = importlib.import_module(os.environ.get("LAB", "start"))


@pytest.mark.parametrize("seed", [11, 12, 15])
def test_it_lands_on_the_pad(seed):
    env = LandingEnv(patterns=["stationary"])
    seen, _ = env.reset(seed=seed)
    pilot = lab.Pilot()
    for _ in range(1000):  # 40 s
        seen, _, is_over, _, info = env.step(np.array(pilot.act(seen), np.float32))
        if is_over:
            break
    assert "touchdown" in info, "it has not landed after 40 s, or was lost"
    assert info["touchdown"].is_good, info["touchdown"].describe()
