# SPDX-License-Identifier: Apache-2.0
"""The testbed in demonstrations: flights to a red sphere, and its drone under other protocols' operators."""

import math
import re
from collections.abc import Sequence

from drone_bridge.programs.demonstration import Arguments, Condition, Demonstration, Flights, Pose, Position, Row
from drone_bridge.testbed.emulator.world import World
from drone_bridge.testbed.topics import enu_from_testbed, enu_yaw_from_heading

FLEET = """\
  drone[1-{drones}]:
    protocol: testbed
    port: {port}
    parameters:
      attitude_layout: pose
      sync: lockstep # each frame waits for its command, however busy the machine is
      stamp_source: wire
    emulate:
      seed: "[1-{last}]"
      trajectory: "{folder}/drone[1-{drones}].csv"
      rate: 20
      width: 160
      height: 120
      vfov: 104.8
    control: true
"""
# In lockstep each frame waits for its reply, so the testbed need not keep to wall time.
PACES = {"latest": "--realtime", "lockstep": "--fast"}


def _pose(row: Row) -> Pose:
    """Of its own axes, degrees to the right."""
    x, y, z = enu_from_testbed(*(float(row[name]) for name in "xyz"))
    return Pose(x, y, z, enu_yaw_from_heading(math.radians(float(row["heading"]))))


def _targets(seed: int, rows: Sequence[Row]) -> Sequence[Position]:
    return [enu_from_testbed(*World.random(seed).targets[0].centre)] * len(rows)


def _condition(mode: str, pace: str) -> Condition:
    return Condition(
        {"testbed_bridge_role": "listen", "testbed_sync": mode, "stamp_source": "wire"},
        lambda seed: f"--role connect --seed {seed} {pace} --once --until-reached --duration 40",
    )


def _serving(reported: frozenset[str]) -> Arguments:
    """An autopilot gets what the vehicle can report."""
    return {
        "attitude_layout": "pose" if "odom" in reported else "pitch_roll",
        "testbed_cameras": "stereo" if "cameras" in reported else "none",
    }


DEMONSTRATION = Demonstration(
    pose=_pose,
    flights=Flights(
        story="A drone looks for a red sphere with its two cameras. Every frame and every command is a ROS 2 topic.",
        done=re.compile(r"target reached at t=(?P<time>[\d.]+) s"),
        columns={"time": "reached after (s)"},
        arguments={
            "attitude_layout": "pose",
            "publish_clock": True,
            "testbed_seed": 222,
            "obstacles": 6,
            "testbed_image_width": 320,
            "testbed_image_height": 240,
            "vertical_angle_of_view": 104.8,
        },
        picture="flight.png",
        targets=_targets,
        seed=222,  # the target is high to the left, with obstacles in view and none in the way
        series="worlds",
        conditions={mode: _condition(mode, pace) for mode, pace in PACES.items()},
        ready=("Waiting for a peer",),
        at_once=1,
        fleet=FLEET,
    ),
    # Pictures that nobody looks at are small, so that it keeps to the time on the wall, as other operators do.
    arguments={"attitude_layout": "pose", "testbed_image_width": 64, "testbed_image_height": 48},
    reports=frozenset({"cameras", "odom"}),
    serving=_serving,
)
