# SPDX-License-Identifier: Apache-2.0
"""ardrone_bridge as a process, with an emulated drone: topics, killed, suspended, and beside a second client."""

import pytest
from geometry_msgs.msg import Twist
from nav_msgs.msg import Odometry
from ports import free_ports
from processes import Process
from ros_session import repeating, wait_until
from sensor_msgs.msg import FluidPressure, Imu, Range
from twists import twist


@pytest.fixture
def drone(start_child):
    """Emulated drone with its `ports`, which was just switched on."""
    names = ("port", "navdata_port", "control_port", "video_port")
    ports = dict(zip(names, free_ports(4), strict=True))
    options = [word for name, port in ports.items() for word in (f"--{name.replace('_', '-')}", port)]
    with Process.module("drone_bridge.ardrone.emulator", *options) as process:
        process.wait_for_line("listening on")
        process.ports = ports
        yield process


def bridge(drone, **parameters):
    patient = {"navdata_timeout": 30.0, "confirm_timeout": 30.0}  # for a drone that is delayed by a busy machine
    process = Process.node("ardrone_bridge", **{"host": "127.0.0.1", **drone.ports, **patient, **parameters})
    process.wait_for_line("sends navdata")
    return process


def takes_off(ros, drone):
    wait_until(lambda: ros.trigger("ardrone_bridge/takeoff").success, "settings, and a take-off")
    drone.wait_for_line("^taking off -> flying")


def test_full_navdata_becomes_topics_and_cmd_vel_flies(ros, drone):
    topics = {"imu/data": Imu, "range": Range, "odom": Odometry, "fluid_pressure": FluidPressure}
    inboxes = {topic: ros.subscribe(kind, topic) for topic, kind in topics.items()}
    with bridge(drone, navdata="full", **{"drone.max_tilt": 0.3}):
        drone.wait_for_line("control:euler_angle_max = 0.3")
        assert ros.trigger("ardrone_bridge/flat_trim").success
        takes_off(ros, drone)
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
