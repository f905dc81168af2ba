# SPDX-License-Identifier: Apache-2.0
"""Metres per second through DDS and sockets, for the drones that are commanded by tilt; judged by their emulators."""

import contextlib
import math

import pytest
from geometry_msgs.msg import Twist
from ports import free_port
from processes import Process
from ros_session import wait_until
from sensor_msgs.msg import Imu
from trajectories import Trajectory, mean_motion
from twists import twist

#: Of the vehicle's own time: until a velocity is reached, for how long it is measured, and until it stands.
SETTLING_S, MEASURED_S, STOPPING_S, STANDING_S = 2.0, 3.0, 3.0, 5.0
#: So that a machine that holds the test up does not stop drones meanwhile.
PATIENT = {"command_timeout": 10.0}


def place(row):
    return float(row["x"]), float(row["y"]), math.radians(float(row["yaw"]))


@contextlib.contextmanager
def gui_drone(ros, path):
    """An AR.Drone behind its GUI that hovers, with its bridge."""
    port = free_port()
    ports = ("--port", "0", "--navdata-source-port", "0", "--navdata-port", port)
    with Process.module("drone_bridge.dronegui.emulator", *ports, "--bootstrapped", "--trajectory", path) as gui:
        address = {"port": int(gui.wait_for_line(r"listening on 127\.0\.0\.1:(\d+)")[1]), "navdata_port": port}
        with Process.node("dronegui_bridge", **address, **PATIENT):
            attitudes = ros.subscribe(Imu, "imu/data")
            attitudes.wait()
            assert ros.trigger("dronegui_bridge/takeoff").success
            yield attitudes, ros.publisher(Twist, "cmd_vel")


@contextlib.contextmanager
def landing_drone(ros, path):
    """The landing challenge's drone in the air, with its bridge."""
    with Process.node("telemetry_bridge", transport="udp", port=0, **PATIENT) as bridge:
        port = bridge.wait_for_line(r"Waiting for telemetry on 127\.0\.0\.1:(\d+)")[1]
        options = ("--port", port, "--no-images", "--gusts", "0", "--height", "2", "--trajectory", path)
        with Process.module("drone_bridge.telemetry.emulator", *options):
            attitudes = ros.subscribe(Imu, "imu/data")
            attitudes.wait()
            yield attitudes, ros.publisher(Twist, "cmd_vel")


@pytest.mark.parametrize(("drone", "begins_s"), [(gui_drone, 8.0), (landing_drone, 1.0)])
def test_metres_per_second_are_flown_and_zero_stops(ros, tmp_path, closing, drone, begins_s):
    path = tmp_path / "flown.csv"
    with drone(ros, path) as (attitudes, publisher):
        wait_until(path.exists, "the trajectory")
        flown = closing(Trajectory(path, place))

        def fly(forward, until_s):
            while flown.read() < until_s:
                publisher.publish(twist(forward=forward))
                attitudes.wait()

        fly(0.0, begins_s)
        began_s = flown.read()
        stopped_s = began_s + SETTLING_S + MEASURED_S
        fly(0.5, stopped_s)
        stopped_s = flown.read()
        fly(0.0, stopped_s + STOPPING_S + STANDING_S)
    forward, turned = mean_motion(flown.between(began_s + SETTLING_S, stopped_s))
    assert forward == pytest.approx(0.5, rel=0.1)
    assert turned == pytest.approx(0.0, abs=0.02)

    def way(from_s, to_s):
        places = [state[1:3] for state in flown.between(from_s, to_s)]
        return max(math.dist(places[0], each) for each in places)

    assert way(stopped_s, stopped_s + STOPPING_S) < 0.4
    assert way(stopped_s + STOPPING_S, stopped_s + STOPPING_S + STANDING_S) < 0.1
