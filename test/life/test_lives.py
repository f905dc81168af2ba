# SPDX-License-Identifier: Apache-2.0
"""Lives in virtual time, by fixed seeds. `make lives` has others."""

import math
import subprocess
import sys
from pathlib import Path

import pytest
from geometry_msgs.msg import Point, Pose, PoseStamped
from home import Home, live
from house import built
from kinds import KINDS
from record import told
from virtual_ros import ActionGoal
from virtual_time import VirtualTime

from drone_bridge.action import GoTo

#: Seeds, with the mean time between disturbances, s.
SEEDS = ((1, 40.0), (2, math.inf))
#: Virtual hours of each life. Those of slow kinds are shorter.
HOURS = (
    dict.fromkeys(KINDS, 0.04)
    | dict.fromkeys(("telemetry", "testbed", "simulator", "ardrone", "dronegui"), 0.02)
    | dict.fromkeys(("neato", "hoverboard", "kobuki"), 0.03)
)


@pytest.mark.parametrize("kind", ["robot", "testbed", "simulator", "create2"])
def test_a_goal_ends_with_its_bridge(kind):
    """A new bridge counts the way anew, or begins a new simulation: the place is another one."""
    life = VirtualTime(1)
    with built(life):
        home = Home(life, KINDS[kind], mean_s=math.inf, limit=0)
        home.begin()
        life.run(5.0)
        goal = ActionGoal(GoTo.Goal(pose=PoseStamped(pose=Pose(position=Point(x=3.0)))))
        home.graph.actions["/go_to"].send(goal)
        home.intent.is_goal_open = True
        life.run(1.0)
        home.kill_bridge()
        home.start_bridge()
        life.run(20.0)
        assert goal.status == "aborted"


@pytest.mark.parametrize(("seed", "mean_s"), SEEDS)
@pytest.mark.parametrize("kind", KINDS)
def test_invariants_hold(kind, seed, mean_s):
    home, fault = live(KINDS[kind], seed, HOURS[kind], mean_s=mean_s)
    assert not fault, f"{fault}\n{told(home)}"


def test_a_night_is_of_all_kinds_unless_some_are_named():
    night = [sys.executable, Path(__file__).parent / "night.py", "--hours", "0"]
    lines = subprocess.run(night, capture_output=True, text=True, check=True).stdout.splitlines()
    assert [line.partition(":")[0] for line in lines] == [*KINDS]
