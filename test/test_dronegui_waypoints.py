# SPDX-License-Identifier: Apache-2.0
"""A controller that knows nothing of the wire flies a square by the odometry that navdata gives."""

import csv
import math
import os

from ament_index_python.packages import get_package_share_directory
from ports import free_port
from processes import TIMEOUT_S, Process

from drone_bridge.msg import ControllerState

CORNERS = ((0, 0), (2, 0), (2, -2), (0, -2), (0, 0))


def nearest(rows, corner):
    """Return how near the drone came to a corner, m."""
    return min(math.dist((row["x"], row["y"]), corner) for row in rows)


def test_waypoints_are_flown_by_the_drones_own_odometry(ros, start_child, tmp_path):
    trajectory, navdata_port = tmp_path / "flight.csv", free_port()
    ports = ("--port", "0", "--navdata-port", navdata_port, "--navdata-source-port", "0", "--bootstrapped")
    states = ros.subscribe(ControllerState, "drone_controller/state")
    config = os.path.join(get_package_share_directory("drone_bridge"), "config", "dronegui_waypoints.yaml")
    arguments = ("--ros-args", "--params-file", config)
    with Process.module("drone_bridge.dronegui.emulator", *ports, "--trajectory", trajectory) as drone:
        port = drone.wait_for_line(r"listening on 127\.0\.0\.1:(\d+)")[1]
        with Process.node("dronegui_bridge", *arguments, port=port, navdata_port=navdata_port) as bridge:
            bridge.wait_for_line("Sending to")
            assert ros.trigger("dronegui_bridge/takeoff").success
            drone.wait_for_line("^taking off -> flying")
            with Process.node("drone_controller", *arguments):
                states.wait(lambda state: state.state == "done", timeout_s=2 * TIMEOUT_S)
            assert ros.trigger("dronegui_bridge/land").success
            drone.wait_for_line("^landing -> landed")
    with trajectory.open() as file:
        rows = [{key: float(value) for key, value in row.items() if key != "phase"} for row in csv.DictReader(file)]
    flown = [row for row in rows if row["z"] > 0.5]
    assert max(nearest(flown, corner) for corner in CORNERS) < 0.5
    assert math.dist((rows[-1]["x"], rows[-1]["y"]), (0, 0)) < 1.0
