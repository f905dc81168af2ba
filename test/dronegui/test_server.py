# SPDX-License-Identifier: Apache-2.0
"""dronegui_server between an operator of the GUI and a ROS drone, which the test simulates."""

import math

import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from dronegui_operator import FLYING, HOVERING, LANDED, DroneGuiOperator
from geometry_msgs.msg import Twist
from nav_msgs.msg import Odometry
from processes import Process
from rclpy.qos import DurabilityPolicy, QoSProfile
from ros_session import wait_until
from sensor_msgs.msg import BatteryState, Imu, Range
from std_msgs.msg import Bool, Empty

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


@pytest.fixture
def operator(closing):
    return closing(DroneGuiOperator())


@pytest.fixture
def serve(operator, start_child):
    """Start a server for the operator, and return it."""

    def start(**parameters):
        node = start_child(
            "dronegui_server", make=Process.node, port=0, navdata_port=operator.navdata_port, video_port=0, **parameters
        )
        operator.call(int(node.wait_for_line(r"Waiting for control packets on 127\.0\.0\.1:(\d+)")[1]))
        return node

    return start


def test_buttons_as_empty_messages_for_drivers_that_have_topics(ros, serve, operator):
    names = {"takeoff": "ardrone/takeoff", "land": "ardrone/land", "reset": "ardrone/reset"}
    topics = {name: ros.subscribe(Empty, topic) for name, topic in names.items()}
    serve(buttons_as="topics", **{f"target.{name}": topic for name, topic in names.items()})
    wait_until(lambda: all(ros.node.count_publishers(topic) for topic in names.values()), "publishers")
    # The test can't observe whether the server has discovered its subscribers.
    wait_until(lambda: operator.press("reset") or len(topics["reset"]), "reset", period_s=0.2)
    # The state of flight is unknown. A press is dropped right after a stall of the server.
    wait_until(lambda: operator.press("take_off") or len(topics["takeoff"]), "takeoff", period_s=1.0)
    wait_until(lambda: operator.press("take_off") or len(topics["land"]), "land", period_s=1.0)


def test_navdata_follows_the_topics_and_ends_with_them(ros, serve, operator):
    flying = ros.node.create_publisher(Bool, "flying", LATCHED)
    flying.publish(Bool(data=False))
    reports = ros.subscribe(DiagnosticArray, "/diagnostics")
    ros.subscribe(Twist, "cmd_vel")  # as a drone's node
    server = serve()
    operator.keep_sending()
    server.wait_for_line("no topic provides the drone's motion.* imu/data")
    imu, odometry = ros.publisher(Imu, "imu/data"), ros.publisher(Odometry, "odom")
    altitude, battery = ros.publisher(Range, "altitude"), ros.publisher(BatteryState, "battery_state")
    attitude = Imu()
    attitude.orientation.z = attitude.orientation.w = math.sqrt(0.5)  # a quarter turn to the left
    moving = Odometry()
    moving.pose.pose.position.z = 9.0
    moving.twist.twist.linear.x, moving.twist.twist.linear.y = 0.5, 0.25

    def tell():
        altitude.publish(Range(range=1.25))
        battery.publish(BatteryState(percentage=0.5))
        odometry.publish(moving)
        imu.publish(attitude)

    telling = ros.node.create_timer(0.05, tell)
    wanted = {"ctrl_state", "vbat_flying_percentage", "vx", "psi", "altitude"}
    # Without an imu, psi is odom's, and without a range, the altitude is, too.
    demo = operator.demo(lambda demo: wanted <= set(demo) and demo["psi"] and demo["altitude"] == 1250)
    assert demo["psi"] == pytest.approx(-90_000)
    assert demo["vbat_flying_percentage"] == 50
    assert (demo["vx"], demo["vy"]) == pytest.approx((500, -250))
    assert demo["ctrl_state"] >> 16 == LANDED
    flying.publish(Bool(data=True))
    operator.state(HOVERING)
    operator.keep_sending(hover=False)
    operator.state(FLYING)
    reports.wait(lambda report: report.status[0].level == DiagnosticStatus.OK)
    telling.cancel()
    operator.forget()
    # The topics fall silent. Data of the last second may still be in transit; after that nothing arrives.
    wait_until(lambda: operator.hears_nothing_for(0.5), "silence")
    reports.wait(lambda report: "no topic provides the drone's motion" in report.status[0].message)
