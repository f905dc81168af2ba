# SPDX-License-Identifier: Apache-2.0
"""The complete simulator.launch.xml: a submarine dives, by its trajectory."""

import csv

import pytest
from composition import launch
from tf2_msgs.msg import TFMessage

from drone_bridge.msg import ControllerState

pytestmark = pytest.mark.exhaustive

TOLERANCE_M = 0.05
BUOYS = ("buoy_red", "buoy_green", "buoy_yellow", "gate_left", "gate_right")
PLAN = """
/**/drone_controller:
  ros__parameters:
    behaviour: waypoints
    waypoints.points: ["x=0 y=0 z=-1 yaw=0"]
    waypoints.position_tolerance: 0.05
    waypoints.max_climb_speed: 1.0
"""


def test_the_submarine_dives_and_is_stopped_at_the_end(ros, tmp_path, free_port):
    plan, trajectory = tmp_path / "dive.yaml", tmp_path / "way.csv"
    plan.write_text(PLAN)
    states = ros.subscribe(ControllerState, "/s1/drone_controller/state", 100)
    transforms = ros.subscribe(TFMessage, "/tf")
    names = {"emulate": True, "control": True, "namespace": "s1", "frame_prefix": "s1/"}
    world = {"scene": "buoys", "port": free_port, "plan": plan, "trajectory": trajectory}
    arguments = {**names, **{f"simulator_{name}": value for name, value in world.items()}}
    with launch("simulator.launch.xml", **arguments) as composition:
        composition.wait_for_line("going: to waypoint 1 of 1: x 0.00 y 0.00 z -1.00 m, yaw 0°")
        assert states.wait(lambda state: state.state == "done").distance < 2 * TOLERANCE_M
        message = transforms.wait(lambda message: len(message.transforms) > len(BUOYS))
        assert {transform.header.frame_id for transform in message.transforms} == {"s1/odom"}
        frames = {transform.child_frame_id for transform in message.transforms}
        assert frames == {f"s1/{name}" for name in ("base_link", *BUOYS)}
    # The simulation outlives the bridge, which stops the vehicle.
    with trajectory.open() as file:
        last = list(csv.DictReader(file))[-1]
    assert float(last["z"]) == pytest.approx(1.0, abs=2 * TOLERANCE_M)
    assert max(abs(float(last[name])) for name in ("vx", "vy", "vz")) < 0.05
