# SPDX-License-Identifier: Apache-2.0
"""What a server leaves behind for the vehicle in ROS when its operator is gone, over real DDS."""

import pytest
from dronegui_operator import DroneGuiOperator
from geometry_msgs.msg import Twist
from processes import Process
from rclpy.qos import DurabilityPolicy, QoSProfile, qos_profile_sensor_data
from ros_session import repeating, wait_until
from std_msgs.msg import Bool
from std_srvs.srv import SetBool
from twists import twist

ZERO = Twist()
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


@pytest.fixture(autouse=True)
def runtime_directory(tmp_path, monkeypatch):
    """Where hold is kept, for one test."""
    monkeypatch.setenv("ROS_HOME", str(tmp_path))


@pytest.fixture
def operator(closing):
    return closing(DroneGuiOperator())


@pytest.fixture
def server(operator):
    options = {"port": 0, "navdata_port": operator.navdata_port}
    with Process.node("dronegui_server", command_timeout=0.3, **options) as process:
        operator.call(int(process.wait_for_line(r"Waiting for control packets on 127\.0\.0\.1:(\d+)")[1]))
        yield process


def steered_and_left(ros, operator, server):
    """An operator steers and is gone; return what a subscriber hears that came when all had been said."""
    commands = ros.subscribe(Twist, "cmd_vel")
    wait_until(lambda: operator.send(hover=False, pitch=-1.0) or len(commands), "a command", period_s=0.05)
    server.wait_for_line("zero was commanded")
    return ros.subscribe(Twist, "cmd_vel", qos_profile_sensor_data)


def falls_silent(inbox):
    """Return whether nothing comes for longer than between two repetitions, after two more of them at most."""
    for _ in range(3):
        try:
            inbox.wait(timeout_s=2.5)
        except AssertionError:
            return True
    return False


def test_the_neutral_command_is_repeated_for_who_has_missed_it(ros, operator, server):
    late = steered_and_left(ros, operator, server)
    for _ in range(3):
        assert late.wait() == ZERO


def test_it_is_repeated_until_its_time_is_over(ros, operator, server):
    late = steered_and_left(ros, operator, server)
    assert late.wait() == ZERO
    ros.set_parameters("dronegui_server", neutral_time=0.0)
    assert falls_silent(late)


def test_somebody_else_who_commands_ends_it(ros, operator, server):
    late = steered_and_left(ros, operator, server)
    assert late.wait() == ZERO
    publisher = ros.publisher(Twist, "cmd_vel", subscribers=2)
    assert late.wait() == ZERO  # who is only there has not said anything
    with repeating(lambda _: publisher.publish(twist(forward=0.5))):
        late.wait(lambda message: message != ZERO)
        wait_until(lambda: publisher.get_subscription_count() <= 2, "the server to leave it alone")
    late.clear()
    assert falls_silent(late)


def test_a_server_that_holds_refuses_its_operator_and_says_neutral(ros, operator, server):
    held = ros.subscribe(Bool, "dronegui_server/held", LATCHED)
    assert not held.wait().data
    commands = ros.subscribe(Twist, "cmd_vel")
    operator.keep_sending(hover=False, pitch=-1.0)
    commands.wait(lambda message: message != ZERO)
    assert ros.call(SetBool, "dronegui_server/hold", SetBool.Request(data=True)).success
    commands.wait(lambda message: message == ZERO)
    server.wait_for_line("Commands on the operator's topics do not move the vehicle: it is held")
    assert held.wait().data
    commands.clear()
    for _ in range(2):
        assert commands.wait() == ZERO
    assert ros.call(SetBool, "dronegui_server/hold", SetBool.Request(data=False)).success
    commands.wait(lambda message: message != ZERO)
    operator.stop()
