# SPDX-License-Identifier: Apache-2.0
"""The example of a flying class, flown against another program of its protocol, whose physics judges."""

import cmath
import csv
import math
import os

import pytest
from geometry_msgs.msg import Twist
from nav_msgs.msg import Odometry
from ports import free_port
from processes import executable
from repository import ROOT
from ros_session import module_ros, repeating
from std_msgs.msg import Bool

from drone_bridge.ros.qos import latched

ros = module_ros()
KEYS, CHECK_S = ("x", "y", "z", "yaw", "vx", "vy"), 280.0
#: Ends of its check, in which no report has a picture or a rover.
CHECKED = """
import lander

class Checked(lander.Lander):
    name, latched, topics = "checked_lander", ("landed",), lander.Lander.topics[:8]

    def decode_report(self, packet):
        told = super().decode_report(packet)
        told.extra.pop("camera/camera_info", None)
        return told
"""
KINDS = {"lander": "lander:Lander", "listening_lander": "lander:ListeningLander", "checked_lander": "checked:Checked"}


@pytest.fixture
def start(start_child, tmp_path):
    """Start a program beside the installed classes."""
    (tmp_path / "checked.py").write_text(CHECKED)
    facts = tmp_path / "lander-1.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: lander\nVersion: 1\n")
    points = "".join(f"{name} = {place}\n" for name, place in KINDS.items())
    (facts / "entry_points.txt").write_text(f"[drone_bridge.protocols]\n{points}")
    paths = os.pathsep.join([str(tmp_path), str(ROOT / "examples"), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": paths.rstrip(os.pathsep)}
    return lambda name, *words, **given: start_child(executable(name), *words, env={**environment, **given})


@pytest.fixture
def fly(start, tmp_path):
    """Start the emulated drone of the protocol's own folder, and the bridge of a class, one of which sends first."""

    def begin(name, *words):
        number, role = free_port(), "connect" if name == "listening_lander" else "listen"
        given = ["--role", role, "--port", number, "--seed", 1, "--trajectory", tmp_path / "flown.csv", *words]
        drone = start("drone-bridge", "emulate", "telemetry", "--publish-rover", *given)
        return drone, start("robot_class_bridge", name, f"port:={number}", "--ros-args")

    return begin


@pytest.mark.parametrize("name", ["lander", "listening_lander"])
def test_the_emulated_drone_flies_ahead_and_stops(name, fly, ros, tmp_path):
    drone, bridge = fly(name, "--gusts", 0)
    odometry, rover = (ros.subscribe(Odometry, topic) for topic in ("odom", "rover/odom"))
    landed = ros.subscribe(Bool, "landed", latched())  # published once it is known
    twist, publisher = Twist(), ros.publisher(Twist, "cmd_vel")
    twist.linear.x = 0.5
    with repeating(lambda _: publisher.publish(twist)):
        odometry.wait(lambda told: math.hypot(told.pose.pose.position.x, told.pose.pose.position.y) > 1.5)
    odometry.wait(lambda told: math.hypot(told.twist.twist.linear.x, told.twist.twist.linear.y) < 0.05)
    assert (landed.wait().data, rover.wait().child_frame_id) == (False, "rover/base_link")
    assert (drone.stop(), bridge.stop()) == (0, 0)
    with (tmp_path / "flown.csv").open() as file:
        first, *_, last = ({key: float(each[key]) for key in KEYS} for each in csv.DictReader(file))
    ahead, turned = (math.radians(each["yaw"]) for each in (first, last))
    way = complex(last["x"] - first["x"], last["y"] - first["y"]) / cmath.rect(1.0, ahead)
    assert way.real > 1.0
    assert (way.imag, last["z"] - first["z"]) == pytest.approx((0.0, 0.0), abs=0.3)
    assert (math.hypot(last["vx"], last["vy"]), turned) == pytest.approx((0.0, ahead), abs=0.15)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["lander", "listening_lander"])
def test_it_lands_on_a_circling_rover_by_its_own_topics(name, fly, start):
    drone, _ = fly(name, "--rover", "circular", "--until-landed", "--duration", 120)
    start("drone_controller", "--ros-args", "-p", "behaviour:=land_on_pad")
    assert drone.wait(150.0) == 0, drone.output


@pytest.mark.exhaustive
def test_its_class_passes_the_check_for_every_kind(start):
    check = start("drone-bridge", "check", "checked_lander", "-m", "every_kind and not exhaustive")
    assert check.wait(CHECK_S) == 0, check.output
