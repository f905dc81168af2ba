# SPDX-License-Identifier: Apache-2.0
"""simulator.launch.xml, all of it: a submarine dives and swims around a box, by its odometry."""

import csv
import itertools
import math

import numpy as np
from composition import launch
from nav_msgs.msg import Odometry
from ros_session import wait_until
from tf2_msgs.msg import TFMessage

from drone_bridge.msg import ControllerState
from drone_bridge.ros.time import seconds_between

CORNERS = [(0.0, 0.0, -1.0), (2.0, 0.0, -1.0), (2.0, 2.0, -1.0), (0.0, 2.0, -1.0), (0.0, 0.0, -1.0)]
TOLERANCE_M = 0.2
BUOYS = ("buoy_red", "buoy_green", "buoy_yellow", "gate_left", "gate_right")
PLAN = """
/**/drone_controller:
  ros__parameters:
    behaviour: waypoints
    waypoints.points: ["z=-1 x=0 y=0 yaw=0", "x=2 y=0 z=-1", "x=2 y=2 z=-1 yaw=1.57", "x=0 y=2 z=-1", "x=0 y=0 z=-1"]
    waypoints.position_tolerance: 0.2
    waypoints.max_speed: 1.0
    waypoints.max_climb_speed: 1.0
    waypoints.max_turn_rate: 1.0
"""


def place(odometry):
    position = odometry.pose.pose.position
    return np.array([position.x, position.y, position.z])


def away_from_line(path, start, end):
    """The largest distance, m, of places (n x 3) from a line."""
    direction = np.subtract(end, start) / np.linalg.norm(np.subtract(end, start))
    offsets = path - np.array(start)
    return float(np.linalg.norm(offsets - np.outer(offsets @ direction, direction), axis=1).max())


def test_the_submarine_swims_around_a_box_and_is_left_standing(ros, tmp_path, free_port):
    plan, trajectory = tmp_path / "box.yaml", tmp_path / "way.csv"
    plan.write_text(PLAN)
    odometry = []
    ros.node.create_subscription(Odometry, "/s1/odom", odometry.append, 1000)
    states = ros.subscribe(ControllerState, "/s1/drone_controller/state", 100)
    transforms = ros.subscribe(TFMessage, "/tf")
    arguments = {
        "emulate": True,
        "control": True,
        "namespace": "s1",
        "frame_prefix": "s1/",
        "simulator_scene": "buoys",
        "simulator_port": free_port,
        "simulator_plan": plan,
        "simulator_trajectory": trajectory,
    }
    with launch("simulator.launch.xml", **arguments) as composition:
        composition.wait_for_line("going: to waypoint 1 of 5: x 0.00 y 0.00 z -1.00 m, yaw 0°")
        at_depth = states.wait(lambda state: state.reason.startswith("to waypoint 2")).header.stamp
        done = states.wait(lambda state: state.state == "done")
        assert done.distance < 2 * TOLERANCE_M
        is_whole = lambda: seconds_between(odometry[-1].header.stamp, done.header.stamp) > 0  # noqa: E731
        wait_until(is_whole, "the odometry of the whole way")
        swum = [message for message in odometry if seconds_between(message.header.stamp, at_depth) > 0]
        message = transforms.wait(lambda message: len(message.transforms) > len(BUOYS))
        assert {transform.header.frame_id for transform in message.transforms} == {"s1/odom"}
        frames = {transform.child_frame_id for transform in message.transforms}
        assert frames == {f"s1/{name}" for name in ("base_link", *BUOYS)}
    path = np.array([place(message) for message in swum])
    assert {(message.header.frame_id, message.child_frame_id) for message in swum} == {("s1/odom", "s1/base_link")}
    # Every corner is reached, one after the other, along the straight line from the one before.
    reached = [0]
    for start, end in itertools.pairwise(CORNERS):
        near = np.flatnonzero(np.linalg.norm(path[reached[-1] :] - end, axis=1) < TOLERANCE_M + 0.05)
        assert near.size, f"{end} was not reached"
        side = path[reached[-1] : reached[-1] + near[0] + 1]
        assert away_from_line(side, start, end) < TOLERANCE_M + 0.1
        reached.append(reached[-1] + int(near[0]))
    speeds = [math.hypot(*(getattr(message.twist.twist.linear, axis) for axis in "xyz")) for message in swum]
    assert 0.9 < max(speeds) < 1.05
    # The simulation outlives the bridge, which leaves the vehicle standing still.
    with trajectory.open() as file:
        last = list(csv.DictReader(file))[-1]
    assert max(abs(float(last[name])) for name in ("vx", "vy", "vz")) < 0.05
