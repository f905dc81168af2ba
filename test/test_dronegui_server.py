# SPDX-License-Identifier: Apache-2.0
"""dronegui_server between a program that flies by the GUI and a drone of ROS, which the test is."""

import math

import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from dronegui_operator import FLYING, HOVERING, LANDED, DroneGuiOperator
from geometry_msgs.msg import Twist
from nav_msgs.msg import Odometry
from processes import Process
from rclpy.qos import DurabilityPolicy, QoSProfile
from ros_session import repeating, wait_until
from sensor_msgs.msg import BatteryState, Imu, Range
from std_msgs.msg import Bool, Empty
from std_srvs.srv import SetBool, Trigger
from twists import twist

from drone_bridge.msg import CommandAxes

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
ZERO = Twist()


@pytest.fixture
def operator(closing):
    return closing(DroneGuiOperator())


@pytest.fixture
def serve(start_child, operator):
    """Start a server that the operator calls, and return it."""

    def start(**parameters):
        node = Process.node("dronegui_server", port=0, navdata_port=operator.navdata_port, **parameters)
        nodes.append(node)
        operator.call(int(node.wait_for_line(r"Waiting for control packets on 127\.0\.0\.1:(\d+)")[1]))
        return node

    nodes = []
    yield start
    for node in nodes:
        node.end()


class Drone:
    """The services of a drone, and whether it flies."""

    def __init__(self, ros):
        self.told = []
        self.answer = True
        node = ros.node
        for name in ("takeoff", "land", "reset"):
            node.create_service(Trigger, f"dronegui_bridge/{name}", self._serve(name))
        node.create_service(SetBool, "dronegui_bridge/hover", self._serve_hover)
        self.flying = node.create_publisher(Bool, "flying", LATCHED)
        self.fly(False)

    def fly(self, is_flying):
        self.flying.publish(Bool(data=is_flying))

    def _serve(self, name):
        def serve(_, response):
            self.told.append(name)
            response.success, response.message = self.answer, "as the test wants"
            if self.answer:
                self.fly(name == "takeoff")
            return response

        return serve

    def _serve_hover(self, request, response):
        self.told.append(request.data)
        response.success = True
        return response

    def wait(self, *told):
        wait_until(lambda: [what for what in self.told if isinstance(what, str)] == list(told), f"{told}")


def commanded(ros, operator):
    """Return an inbox for cmd_vel which the server has found."""
    commands = ros.subscribe(Twist, "cmd_vel", 100)
    wait_until(lambda: operator.send() or len(commands), "the server's commands", period_s=0.05)
    return commands


def forward(message):
    return message.linear.x > 0


def test_packets_become_velocities_and_silence_becomes_zero_and_then_nothing(ros, serve, operator):
    server = serve(**{"full_scale.pitch": 2.0, "full_scale.yaw": 0.5})
    commands = commanded(ros, operator)
    operator.keep_sending(hover=False, pitch=-0.5, roll=0.25, yaw=1.0, gas=-0.125)
    command = commands.wait(forward)
    linear = command.linear
    assert (linear.x, linear.y, linear.z, command.angular.z) == (1.0, -0.25, -0.125, -0.5)
    operator.stop()
    server.wait_for_line("was silent for .* s: zero was commanded")
    commands.wait(lambda message: message == ZERO)
    assert len(commands) == 0
    operator.say(b"nonsense")
    server.wait_for_line("A packet from .* was refused")
    operator.send(hover=False, pitch=-1.0)  # it is there again
    commands.wait(lambda message: message.linear.x == 2.0)
    commands.wait(lambda message: message == ZERO)


def test_shares_go_to_who_takes_them_and_velocities_to_who_does_not(ros, serve, operator):
    serve(**{"full_scale.pitch": 2.0})
    velocities = commanded(ros, operator)
    operator.keep_sending(hover=False, pitch=-0.5, roll=0.25, yaw=1.0, gas=-0.125)
    velocities.wait(forward)
    shares = ros.subscribe(CommandAxes, "cmd_axes", 100)
    axes = shares.wait(lambda axes: axes.pitch > 0)
    assert (axes.thrust, axes.pitch, axes.roll, axes.yaw) == (-0.125, 0.5, 0.25, -1.0)
    assert axes.header.frame_id == "base_link"
    velocities.wait(lambda message: message == ZERO)  # whoever followed these is not left flying
    operator.stop()
    shares.wait(lambda axes: axes.pitch == axes.roll == axes.yaw == axes.thrust == 0.0)
    assert len(velocities) == 0


def test_hover_is_released_for_somebody_else_who_commands(ros, serve, operator):
    """While the operator is silent, and until it is back."""
    drone = Drone(ros)
    server = serve(command_timeout=0.3)
    server.wait_for_line("The drone's services are available")
    commands = commanded(ros, operator)
    with repeating(lambda _: operator.send(hover=False, pitch=-0.5)):  # one alone may be held up too long
        commands.wait(forward)
    server.wait_for_line("was silent for .* s: zero was commanded")
    wait_until(lambda: True in drone.told, "hover to be held in the silence")
    publisher = ros.publisher(Twist, "cmd_vel", subscribers=1)  # the server, which listens for others
    with repeating(lambda _: publisher.publish(twist(forward=0.5))):
        wait_until(lambda: drone.told[-1] is False, "hover to be let go")
    operator.send()
    wait_until(lambda: drone.told[-1] is True, "hover to be held for the operator")


def test_take_off_toggles_by_the_drones_own_state(ros, serve, operator):
    drone = Drone(ros)
    server = serve()
    server.wait_for_line("The drone's services are available")
    imu = ros.node.create_publisher(Imu, "imu/data", 1)
    telling = ros.node.create_timer(0.05, lambda: imu.publish(Imu()))
    operator.press("take_off")
    drone.wait("takeoff")
    server.wait_for_line("takeoff: as the test wants")
    operator.state(HOVERING)
    telling.cancel()
    operator.press("take_off")
    drone.wait("takeoff", "land")
    operator.press("reset")
    drone.wait("takeoff", "land", "reset")
    drone.answer = False
    operator.press("take_off")
    server.wait_for_line("takeoff was refused: as the test wants")


def test_a_press_in_flight_is_no_take_off_on_the_word_of_a_bridge_that_came_back(ros, serve, operator):
    """It was started while the drone flew, and may take it for landed."""
    drone = Drone(ros)
    server = serve()
    server.wait_for_line("The drone's services are available")
    imu = ros.node.create_publisher(Imu, "imu/data", 1)
    ros.node.create_timer(0.05, lambda: imu.publish(Imu()))
    drone.fly(True)
    operator.state(HOVERING)
    ros.node.destroy_publisher(drone.flying)
    drone.flying = ros.node.create_publisher(Bool, "flying", LATCHED)
    drone.fly(False)
    server.wait_for_line("/flying says that the drone is on the ground, but so may a node started while it flew")
    operator.press("take_off")
    drone.wait("land")
    operator.state(LANDED)
    operator.press("take_off")
    drone.wait("land", "takeoff")


def test_buttons_as_empty_messages_for_drivers_that_have_topics(ros, serve, operator):
    names = {"takeoff": "ardrone/takeoff", "land": "ardrone/land", "reset": "ardrone/reset"}
    topics = {name: ros.subscribe(Empty, topic) for name, topic in names.items()}
    serve(buttons_as="topics", **{f"target.{name}": topic for name, topic in names.items()})
    wait_until(lambda: all(ros.node.count_publishers(topic) for topic in names.values()), "publishers")
    # It can't be seen from here whether the server has found its subscribers.
    wait_until(lambda: operator.press("reset") or len(topics["reset"]), "reset", period_s=0.2)
    operator.press("take_off")
    topics["takeoff"].wait()
    # Nothing tells whether it flies, and it was told to. A press is dropped where the server has just stood still.
    wait_until(lambda: operator.press("take_off") or len(topics["land"]), "land", period_s=1.0)


def test_navdata_follows_the_topics_and_ends_with_them(ros, serve, operator):
    drone = Drone(ros)
    reports = ros.subscribe(DiagnosticArray, "/diagnostics")
    server = serve()
    operator.keep_sending()
    server.wait_for_line("no topic gives the drone's motion, so no navdata is sent: expected are imu/data")
    imu, odometry = ros.publisher(Imu, "imu/data"), ros.publisher(Odometry, "odom")
    altitude, battery = ros.publisher(Range, "altitude"), ros.publisher(BatteryState, "battery_state")
    attitude = Imu()
    attitude.orientation.z = attitude.orientation.w = math.sqrt(0.5)  # a quarter to the left
    moving = Odometry()
    moving.pose.pose.position.z = 9.0
    moving.twist.twist.linear.x, moving.twist.twist.linear.y = 0.5, 0.25

    def tell():
        altitude.publish(Range(range=1.25))
        battery.publish(BatteryState(percentage=0.5))
        odometry.publish(moving)
        imu.publish(attitude)

    telling = ros.node.create_timer(0.05, tell)
    demo = operator.demo(lambda demo: {"ctrl_state", "vbat_flying_percentage", "vx", "psi", "altitude"} <= set(demo))
    assert demo["psi"] == pytest.approx(-90_000)
    assert (demo["altitude"], demo["vbat_flying_percentage"]) == (1250, 50)  # and not odom's height
    assert (demo["vx"], demo["vy"]) == pytest.approx((500, -250))
    assert demo["ctrl_state"] >> 16 == LANDED
    drone.fly(True)
    operator.state(HOVERING)
    operator.keep_sending(hover=False)
    operator.state(FLYING)
    reports.wait(lambda report: report.status[0].level == DiagnosticStatus.OK)
    telling.cancel()
    operator.forget()
    # The topics fall silent. What was told in the last second may still be on its way; then nothing comes.
    wait_until(lambda: operator.hears_nothing_for(0.5), "silence")
    reports.wait(lambda report: "no topic gives the drone's motion" in report.status[0].message)
