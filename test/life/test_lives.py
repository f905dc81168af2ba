# SPDX-License-Identifier: Apache-2.0
"""Lives in virtual time, by fixed seeds. `make lives` has others."""

import math

import pytest
from home import live
from kinds import KINDS
from record import told

#: Seeds, with the mean time between disturbances, s.
SEEDS = ((1, 40.0), (2, math.inf))
#: Virtual hours of each life. Those of slow kinds are shorter.
HOURS = (
    dict.fromkeys(KINDS, 0.2)
    | dict.fromkeys(("telemetry", "testbed", "simulator", "ardrone", "dronegui"), 0.04)
    | {"neato": 0.08}
)


@pytest.mark.parametrize(("seed", "mean_s"), SEEDS)
@pytest.mark.parametrize("kind", KINDS)
def test_invariants_hold(kind, seed, mean_s):
    home, fault = live(KINDS[kind], seed, HOURS[kind], mean_s=mean_s)
    assert not fault, f"{fault}\n{told(home)}"
