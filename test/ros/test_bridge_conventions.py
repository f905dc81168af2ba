# SPDX-License-Identifier: Apache-2.0
"""Clocks, frames and services, common to all bridges."""

import os

import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import TransformStamped, Twist, TwistStamped
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState, GetState
from nav_msgs.msg import Odometry
from processes import Process
from rcl_interfaces.msg import Parameter
from rcl_interfaces.srv import GetParameters, ListParameters, SetParameters
from ros_session import RosSession, nanoseconds, wait_until
from rosgraph_msgs.msg import Clock
from testbed_peer import TestbedPeer, bridge
from tf2_msgs.msg import TFMessage

from drone_bridge.robot.bridge.node import RobotBridge
from drone_bridge.robot.vehicle.server.node import RobotServer
from drone_bridge.ros.qos import latched
from drone_bridge.stop_signals import LAUNCHED
from drone_bridge.testbed.codec import AttitudeLayout


@pytest.fixture
def peer(closing):
    return closing(TestbedPeer(layout=AttitudeLayout.POSE))


def publishers(ros, topic):
    return [info.node_name for info in ros.node.get_publishers_info_by_topic(topic)]


def fly(peer):
    return peer.exchange(roll=0.0, yaw=0.0, position=(0.0, 0.0, 0.0))


def test_dumped_parameters_load_even_those_not_settable_now(ros, free_port):
    node = "robot_bridge"
    with Process.node(node, port=free_port):
        wait_until(lambda: state(ros, node) == "active", "the bridge to be active")
        names = ros.call(ListParameters, f"{node}/list_parameters", ListParameters.Request()).result.names
        values = ros.call(GetParameters, f"{node}/get_parameters", GetParameters.Request(names=names)).values
        same = [Parameter(name=name, value=value) for name, value in zip(names, values, strict=True)]
        answer = ros.call(SetParameters, f"{node}/set_parameters", SetParameters.Request(parameters=same))
        assert [result.reason for result in answer.results if not result.successful] == []
        (refused,) = ros.set_parameters(node, port=free_port + 1)
        assert "deactivate and clean it up" in refused.reason


def state(ros, node):
    return ros.call(GetState, f"{node}/get_state", GetState.Request()).current_state.label


@pytest.mark.parametrize("launched", ["", "true"])
def test_process_ends_with_its_lifecycle_unless_launch_would_restart_it(ros, free_port, launched):
    node = "robot_bridge"
    with Process.node(node, port=free_port, env={**os.environ, LAUNCHED: launched}) as process:
        wait_until(lambda: state(ros, node) == "active", "the bridge to be active")
        request = ChangeState.Request(transition=Transition(id=Transition.TRANSITION_ACTIVE_SHUTDOWN))
        assert ros.call(ChangeState, f"{node}/change_state", request).success
        if launched:
            assert state(ros, node) == "finalized"
            assert process.stop() == 0
        else:
            assert process.wait() == 0, process.output


def test_a_destroyed_bridge_leaves_the_graph_before_it_is_garbage(ros, free_port):
    session = RosSession("other")
    bridge = session.run(RobotBridge, port=free_port, autostart=False)
    name = bridge.get_name()
    wait_until(lambda: name in ros.node.get_node_names(), "the bridge")
    session.close()
    wait_until(lambda: name not in ros.node.get_node_names(), "its end")


def test_a_bridge_that_publishes_clock_stamps_with_it(ros, peer):
    clocks, odometry = ros.subscribe(Clock, "/clock"), ros.subscribe(Odometry, "odom")
    with bridge(peer, attitude_layout="pose", publish_clock=True):
        peer.open()
        wait_until(lambda: fly(peer) and len(odometry) and len(clocks), "odometry and the time")
        assert nanoseconds(odometry.wait().header.stamp) < 1e12  # simulated, not wall time


def test_a_second_publisher_of_clock_is_named(ros, peer):
    reports = ros.subscribe(DiagnosticArray, "/diagnostics")
    with bridge(peer, publish_clock=True) as node:
        other = ros.node.create_publisher(Clock, "/clock", 1)
        sentence = "/clock is published by /test_session and /testbed_bridge"
        reports.wait(lambda report: sentence in report.status[0].message)
        node.wait_for_line(sentence)
        ros.node.destroy_publisher(other)
        reports.wait(lambda report: sentence not in report.status[0].message)


def test_tf_and_map_to_odom_can_be_switched_off_and_frames_named(ros, peer):
    odometry, static = ros.subscribe(Odometry, "odom"), ros.subscribe(TFMessage, "/tf_static")
    switches = {"publish_tf": False, "publish_map_to_odom": False, "odom_frame": "world", "base_frame": "body"}
    with bridge(peer, attitude_layout="pose", frame_prefix="d1/", **switches):
        peer.open()
        wait_until(lambda: fly(peer) and len(odometry), "odometry")
        message = odometry.wait()
        assert (message.header.frame_id, message.child_frame_id) == ("d1/world", "d1/body")
        assert "testbed_bridge" not in publishers(ros, "/tf")
        wait_until(lambda: fly(peer) and publishers(ros, "/tf_static"), "sensors' transforms")
        assert static is not None


def test_node_with_a_refused_parameter_stays_up_and_starts_once_it_is_set(ros, free_port):
    reports = ros.subscribe(DiagnosticArray, "/diagnostics")
    with Process.node("robot_bridge", port=70000, wheel_separation="'wide'") as node:
        status = reports.wait().status[0]
        assert status.level == DiagnosticStatus.ERROR
        assert "value: 70000" in status.message
        assert "wheel_separation" in status.message
        node.wait_for_line("ERROR.*The node stays unconfigured until its parameters are set")
        (result,) = ros.set_parameters("robot_bridge", port=free_port)
        assert result.successful
        reports.wait(lambda report: "70000" not in report.status[0].message)
        assert state(ros, "robot_bridge") == "unconfigured"
        (result,) = ros.set_parameters("robot_bridge", wheel_separation=0.5)  # the default
        assert result.successful
        wait_until(lambda: state(ros, "robot_bridge") == "active", "the node to start by itself")


def test_a_node_publishes_only_while_it_is_active(ros, free_port):
    node = ros.run(RobotBridge, port=free_port, autostart=False)
    ros.transition("robot_bridge", "configure")
    publisher = node.make_publisher(Odometry, "odometry", 10)
    inbox = ros.subscribe(Odometry, "odometry")
    wait_until(lambda: node.is_wanted(publisher), "the subscription")
    for state in ("configured", "active", "inactive", "active again"):
        if state != "configured":
            ros.transition("robot_bridge", "deactivate" if state == "inactive" else "activate")
        node.publish(publisher, Odometry(child_frame_id=state))
    assert [inbox.wait().child_frame_id for _ in range(2)] == ["active", "active again"]


def test_a_report_asks_nothing_of_the_context_that_ends_its_node(ros, free_port, monkeypatch):
    """Kilted's context destroys its nodes, which wait for their reports."""
    node = ros.run(RobotBridge, port=free_port)
    monkeypatch.setattr(type(node.context), "get_domain_id", lambda _: pytest.fail("it would wait"))
    node._report()


def test_a_listener_whose_address_is_no_longer_this_machine_s_says_so(ros, monkeypatch):
    node = ros.run(RobotServer, port=0, discovery=False)
    monkeypatch.setattr("drone_bridge.ros.node.protocol_node.is_own_address", "0.0.0.0".__eq__)
    node._report()
    assert "127.0.0.1, on which it listens" in node.report.status("link", "").message


def test_health_names_a_node_that_does_not_fit_a_topic(ros, free_port):
    node = ros.run(RobotBridge, port=free_port)
    ros.node.create_subscription(Odometry, "odom", lambda _: None, latched())
    sentence = "/odom does not fit /test_session: its QoS is incompatible"
    wait_until(lambda: node._report() or sentence in node.report.status("link", "").message, "the discovery")


def test_health_names_a_missing_link_in_each_state(ros, free_port):
    reports = ros.subscribe(DiagnosticArray, "/diagnostics")
    ros.run(RobotBridge, port=free_port, autostart=False)
    inactive, unreachable = "this node is not active: its log", "there is no link: "
    reports.wait(lambda report: inactive in report.status[0].message)
    for change, sentence in (("configure", inactive), ("activate", unreachable), ("deactivate", inactive)):
        ros.transition("robot_bridge", change)
        reports.wait(lambda report, sentence=sentence: sentence in report.status[0].message)


def test_a_filter_that_publishes_a_bridge_s_transform_is_named_until_it_ends(ros, free_port):
    node, other = ros.run(RobotBridge, port=free_port), ros.node.create_publisher(TFMessage, "/tf", 10)
    own = node._transforms

    def is_named(child, x):
        for publisher, frame, place in ((own, "base_link", 1.0), (other, child, x)):
            message = TFMessage(transforms=[TransformStamped(child_frame_id=frame)])
            message.transforms[0].transform.translation.x = place
            publisher.publish(message)
        return "second_transform" in node.report.conditions

    wait_until(lambda: is_named("base_link", 1.1), "the filter")
    assert f"by another: /{ros.node.get_name()}: set publish_tf:=false" in node.report.status("link", "").message
    wait_until(lambda: not is_named("laser", 1.1), "its end")


def test_of_another_vehicle_on_its_commands_only_that_is_named(ros, free_port):
    node = ros.run(RobotBridge, port=free_port)
    ros.node.create_publisher(Odometry, "odom", 1)
    ros.subscribe(Twist, "cmd_vel")
    ros.subscribe(TwistStamped, f"{ros.node.get_name()}/helm")

    def conditions():
        node._report()
        return node.report.conditions

    wait_until(lambda: "shared" in conditions() and node.count_publishers("odom") == 2, "the other one")
    assert "second_odometry" not in conditions()


@pytest.mark.parametrize("publishes_odometry", [True, False])
def test_a_second_publisher_of_a_bridge_s_odometry_is_named(ros, free_port, publishes_odometry):
    node = ros.run(RobotBridge, port=free_port, publish_odometry=publishes_odometry)
    topic = node.resolve_topic_name("odom")
    other = [ros.node.create_publisher(Odometry, "odom", 1) for _ in range(1 if publishes_odometry else 2)]
    wait_until(lambda: node.count_publishers(topic) == 2, "both publishers")
    node._report()
    message = node.report.status("link", "").message
    assert ("/odom is published by " in message and f"/{ros.node.get_name()}" in message) is publishes_odometry
    for each in other:
        ros.node.destroy_publisher(each)
    wait_until(lambda: node.count_publishers(topic) == publishes_odometry, "one publisher")
    node._report()
    assert "/odom is published" not in node.report.status("link", "").message
