# SPDX-License-Identifier: Apache-2.0
"""ardrone_bridge as a process, with an emulated drone."""

import pytest
from geometry_msgs.msg import Twist
from nav_msgs.msg import Odometry
from ports import free_ports
from processes import Process
from ros_session import repeating, wait_until
from sensor_msgs.msg import FluidPressure, Imu, Range
from twists import twist

NAMES = ("port", "navdata_port", "control_port", "video_port")
#: For a drone that is delayed by a busy machine.
PATIENT = {"navdata_timeout": 30.0, "confirm_timeout": 30.0}


def test_full_navdata_becomes_topics_and_cmd_vel_flies(ros, start_child):
    ports = dict(zip(NAMES, free_ports(4), strict=True))
    options = [word for name, port in ports.items() for word in (f"--{name.replace('_', '-')}", port)]
    drone = start_child("drone_bridge.ardrone.vehicle.emulator", *options, make=Process.module)
    drone.wait_for_line("listening on")
    parameters = {"host": "127.0.0.1", **ports, **PATIENT, "navdata": "full", "drone.max_tilt": 0.3}
    topics = {"imu/data": Imu, "range": Range, "odom": Odometry, "fluid_pressure": FluidPressure}
    inboxes = {topic: ros.subscribe(kind, topic) for topic, kind in topics.items()}
    with Process.node("ardrone_bridge", **parameters):
        drone.wait_for_line("control:euler_angle_max = 0.3")
        assert ros.trigger("ardrone_bridge/flat_trim").success
        wait_until(lambda: ros.trigger("ardrone_bridge/takeoff").success, "settings, and a take-off")
        drone.wait_for_line("^taking off -> flying")
        imu = inboxes["imu/data"].wait(lambda message: message.linear_acceleration_covariance[0] > 0)
        assert imu.linear_acceleration.z == pytest.approx(9.8, abs=0.5)
        inboxes["range"].wait(lambda message: message.range > 0.9)
        inboxes["fluid_pressure"].wait(lambda message: message.fluid_pressure > 90_000)
        publisher = ros.publisher(Twist, "cmd_vel")
        with repeating(lambda _: publisher.publish(twist(forward=1.0))):
            inboxes["odom"].wait(lambda message: message.twist.twist.linear.x > 0.5)
        assert not ros.trigger("ardrone_bridge/flat_trim").success
        assert ros.trigger("ardrone_bridge/land").success
        drone.wait_for_line("^landing -> landed")
