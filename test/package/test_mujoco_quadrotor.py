# SPDX-License-Identifier: Apache-2.0
"""The quadrotor of examples/: a ROS vehicle that has nothing of the package, behind servers and under goals."""

import math
import os
import sys
from pathlib import Path

import pytest
from composition import launch
from nav_msgs.msg import Odometry
from ports import free_port
from processes import Process
from repository import ROOT
from ros_session import wait_until
from std_msgs.msg import Bool

import drone_bridge
from drone_bridge.ros.qos import latched

pytestmark = pytest.mark.exhaustive

pytest.importorskip("mujoco")  # `make setup` brings it, other installations need not have it

FOLDER = ROOT / "examples" / "mujoco_quadrotor"
HEIGHT = 1.54  # m, of its middle, at the start in the air
#: Where the operators' plan ends, by the clock on the wall: 2 m ahead, a turn of 1.5 rad to the left, 2 m ahead.
END = (2 + 2 * math.cos(1.5), 2 * math.sin(1.5), HEIGHT)


def place(odometry):
    position = odometry.pose.pose.position
    return position.x, position.y, position.z


@pytest.mark.parametrize("server", ["simulator", "testbed"])
def test_a_legacy_program_flies_it_behind_a_server(ros, server):
    places = []
    ros.node.create_subscription(Odometry, "odom", lambda message: places.append(place(message)), 10)
    file = FOLDER / "quadrotor.launch.xml"
    given = {"server": server, f"{server}_server_port": free_port()}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # on which the launch file finds Python
    with launch(file, env={"PATH": path}, **given) as composition:
        composition.wait_for_line("is required: stopping everything")
        assert composition.wait() == 0
    print(f"{server}: {math.dist(places[-1], END):.2f} m off")
    # How far it flies by a plan of seconds depends on who else needs the processor: that it went and turned does not.
    assert max(x for x, _, _ in places) > 0.5
    assert places[-1][1] > 0.2
    assert min(z for _, _, z in places) > HEIGHT - 0.2


def test_goals_fly_it_from_the_ground_and_back(ros):
    flying = ros.subscribe(Bool, "flying", latched())
    places = ros.subscribe(Odometry, "odom")
    with (
        Process(sys.executable, FOLDER / "quadrotor.py"),
        Process.node("drone_controller", behaviour="goals"),
        drone_bridge.Vehicle(patience_s=60.0) as drone,
    ):
        assert flying.wait().data is False
        drone.take_off(1.5)
        drone.go_to(2.0, 1.0, 1.5, yaw=1.57)
        places.clear()
        there = place(places.wait())
        print(f"goals: {math.dist(there, (2.0, 1.0, 1.5)):.3f} m off")
        assert math.dist(there, (2.0, 1.0, 1.5)) < 0.15
        assert drone.pose.yaw == pytest.approx(1.57, abs=0.15)
        assert drone.land() == "Has landed."
        wait_until(lambda: flying.wait().data is False, "the motors' end")
        assert drone.pose.z < 0.1
