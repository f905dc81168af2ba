# SPDX-License-Identifier: Apache-2.0
"""ardrone_bridge as a process, with an emulated drone: topics, killed, suspended, and beside a second client."""

import signal
import socket

import pytest
from geometry_msgs.msg import Twist
from nav_msgs.msg import Odometry
from ports import free_ports
from processes import Process
from ros_session import repeating, wait_until
from sensor_msgs.msg import FluidPressure, Imu, Range
from std_msgs.msg import Bool
from std_srvs.srv import Trigger
from twists import twist

from drone_bridge.ardrone.codec import WAKE_UP


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


def test_a_bridge_that_is_killed_in_flight_and_started_again_lands_nothing(ros, drone):
    flying = ros.subscribe(Bool, "flying", 10)
    with bridge(drone) as process:
        takes_off(ros, drone)
        process.send(signal.SIGKILL)
        process.wait()
    drone.wait_for_line("the client is lost")
    with bridge(drone):
        flying.wait(lambda message: message.data)
        assert drone.count_lines("-> landing") == 0
        land = ros.node.create_client(Trigger, "ardrone_bridge/land")
        # A call may still reach the killed bridge.
        wait_until(lambda: ros.answer(land, Trigger.Request(), 5.0), "a service that has found the client")
        drone.wait_for_line("^landing -> landed")


def test_another_bridge_is_followed_while_the_first_one_is_suspended(ros, drone):
    """The first one's numbers were higher, also those of its last words."""
    odometry = ros.subscribe(Odometry, "odom")
    with bridge(drone) as first:
        takes_off(ros, drone)
        publisher = ros.publisher(Twist, "cmd_vel")
        with repeating(lambda _: publisher.publish(twist(forward=1.0))):
            odometry.wait(lambda message: message.twist.twist.linear.x > 0.5)
            first.send(signal.SIGSTOP)
            wait_until(first.is_stopped, "the bridge to stand still")
            drone.wait_for_line("the client is lost")
            odometry.clear()
            with bridge(drone):
                odometry.wait(lambda message: message.twist.twist.linear.x < 0.2)  # stopped by the last words
                odometry.wait(lambda message: message.twist.twist.linear.x > 0.5)
        first.send(signal.SIGKILL)
        first.wait()


def test_stalled_bridge_does_not_restart_motors_of_a_landed_drone(ros, drone):
    with bridge(drone) as process:
        takes_off(ros, drone)
        process.send(signal.SIGSTOP)
        wait_until(process.is_stopped, "the bridge to stand still")
        drone.send(signal.SIGUSR2)
        drone.wait_for_line("^landing -> landed")
        process.send(signal.SIGCONT)
        wait_until(lambda: ros.trigger("ardrone_bridge/land").message == "The drone is on the ground.", "its navdata")
        assert drone.count_lines("landed -> taking off") == 1


def test_a_second_client_of_navdata_does_not_silence_the_bridge(ros, drone):
    with bridge(drone), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        takes_off(ros, drone)
        for _ in range(3):
            other.sendto(WAKE_UP, ("127.0.0.1", drone.ports["navdata_port"]))
            assert other.recv(8192)
            ros.subscribe(Range, "altitude").wait(lambda message: message.range > 0.5)
        assert ros.trigger("ardrone_bridge/emergency").success
        drone.wait_for_line("-> emergency")
        drone.wait_for_line("emergency: on")
