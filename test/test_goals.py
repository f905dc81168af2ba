# SPDX-License-Identifier: Apache-2.0
"""The actions of drone_controller and rover_controller; the test plays the vehicle."""

import math
import os
import re
import signal
import time

import numpy as np
import pytest
from geometry_msgs.msg import Point32, Polygon, PolygonStamped, PoseStamped, TransformStamped, Twist, TwistStamped
from goal_client import Goals, pose_at
from nav_msgs.msg import Path
from played_vehicle import Vehicle
from processes import Process
from robot_peer import RobotPeer
from ros_session import repeating, wait_until
from std_msgs.msg import Bool
from std_srvs.srv import Trigger
from tf2_msgs.msg import TFMessage

from drone_bridge.motion.quaternions import quaternion_from_euler
from drone_bridge.robot.codec import SkidSteerUpdate
from drone_bridge.ros.qos import latched
from drone_bridge.ros.transforms import transform

STILL = Twist()
FAST = {"max_speed": 3.0, "max_climb_speed": 3.0, "max_turn_rate": 3.0}
LEFT = quaternion_from_euler(0.0, 0.0, math.pi / 2)


def controller(name="drone_controller", **parameters):
    full = {f"goals.{name}": value for name, value in {**FAST, **parameters}.items()}
    behaviour = {"behaviour": "goals"} if name == "drone_controller" else {}
    return Process.node(name, **behaviour, **full)


@pytest.fixture
def goals(ros):
    return Goals(ros)


def away(vehicle, *place):
    return np.linalg.norm(vehicle.position - place)


def test_a_goal_is_reached_with_its_heading_and_held(ros, goals):
    with controller() as process:
        vehicle = Vehicle(ros)
        sent = goals.send("go_to", pose=pose_at(2, -1, 1, yaw_quaternion=LEFT))
        first = sent.feedback.wait(lambda feedback: not feedback.waiting_for)
        assert first.distance_remaining == pytest.approx(math.sqrt(6), abs=0.3)
        assert first.time_remaining == pytest.approx(first.distance_remaining / 3.0)
        end, message = sent.end()
        assert end == "succeeded", message
        assert message.startswith("Reached x 2.00 y -1.00 z 1.00 m, yaw 90°")
        assert away(vehicle, 2, -1, 1) < 0.1
        assert vehicle.yaw == pytest.approx(math.pi / 2, abs=0.1)
        vehicle.position[0] += 1.0  # a gust
        wait_until(lambda: away(vehicle, 2, -1, 1) < 0.05, "being back")
        process.wait_for_line("go_to: Reached x 2.00")


def test_a_path_is_followed_through_each_of_its_poses(ros, goals):
    with controller():
        vehicle = Vehicle(ros)
        path = Path(poses=[pose_at(1, 0), pose_at(1, 1), pose_at(0, 1)])
        path.header.frame_id = "odom"
        sent = goals.send("follow_path", path=path, tolerance=0.05, speed=2.0)
        assert sent.feedback.wait(lambda feedback: not feedback.waiting_for).distance_remaining > 2.5
        assert sent.end()[0] == "succeeded"
    passed = np.array(vehicle.path)
    assert all(np.linalg.norm(passed - (x, y, 0), axis=1).min() < 0.06 for x, y in ((1, 0), (1, 1), (0, 1)))


def test_cancel_stops_and_another_goal_takes_its_place(ros, goals):
    with controller(max_speed=0.5):
        vehicle = Vehicle(ros)
        commands = ros.subscribe(Twist, "cmd_vel", 100)
        sent = goals.send("go_to", pose=pose_at(1000, 0))
        commands.wait(lambda twist: twist.linear.x == 0.5)
        sent.cancel()
        assert sent.end() == ("canceled", "Canceled.")
        commands.wait(lambda twist: twist == STILL)
        assert [commands.wait() for _ in range(5)] == 5 * [STILL]
        first = goals.send("go_to", pose=pose_at(1000, 0))
        commands.wait(lambda twist: twist.linear.x == 0.5)
        second = goals.send("go_to", pose=pose_at(*vehicle.position))
        assert first.end() == ("aborted", "Another goal came: go_to.")
        assert second.end()[0] == "succeeded"


BAD = (
    ({"pose": pose_at(math.nan, 0)}, r"The position is \(nan, 0.0, 0.0\), and has to be within 1e\+06 m"),
    ({"pose": pose_at(0, 0, yaw_quaternion=(0.0, 0.0, 0.0, 7.0))}, "The orientation is .* has to have length 1"),
    ({"pose": pose_at(1, 0), "tolerance": math.inf}, "tolerance is inf, and has to be a finite number"),
    ({"pose": pose_at(1, 0, frame="nowhere")}, "There is no transform from nowhere to odom after 0.3 s"),
)


def test_what_cannot_be_followed_is_refused_with_a_sentence_and_disturbs_no_other_goal(ros, goals):
    with controller(patience=0.3, max_speed=0.5):
        Vehicle(ros)
        commands = ros.subscribe(Twist, "cmd_vel", 100)
        good = goals.send("go_to", pose=pose_at(1000, 0))
        commands.wait(lambda twist: twist.linear.x == 0.5)
        for fields, sentence in BAD:
            end, message = goals.send("go_to", **fields).end()
            assert end == "aborted"
            assert re.match(sentence, message), message
        end, message = goals.send("follow_path", path=Path()).end()
        assert (end, message) == ("aborted", "The path has 0 poses, and has to have 1 to 10000.")
        commands.clear()
        commands.wait(lambda twist: twist.linear.x == 0.5)
        good.cancel()
        assert good.end()[0] == "canceled"


def test_a_goal_in_another_frame_is_turned_by_tf(ros, goals):
    with controller():
        vehicle = Vehicle(ros)
        publisher = ros.node.create_publisher(TFMessage, "/tf_static", latched())
        message: TransformStamped = transform("map", "odom", (10.0, 0.0, 0.0), LEFT)
        publisher.publish(TFMessage(transforms=[message]))
        sent = goals.send("go_to", pose=pose_at(10, 2, 0.5, frame="map", yaw_quaternion=LEFT))
        assert sent.end()[0] == "succeeded"
        assert away(vehicle, 2, 0, 0.5) < 0.1
        assert vehicle.yaw == pytest.approx(0.0, abs=0.1)


def test_hold_the_helm_and_a_stale_odometry_end_a_goal_with_the_reason(ros, goals):
    with controller(max_speed=0.5):
        end, message = goals.send("go_to", pose=pose_at(1, 0)).end()
        assert (end, message) == ("aborted", "There is no odometry after 5 s.")
        vehicle = Vehicle(ros)
        held = ros.node.create_publisher(Bool, "held", latched())
        commands = ros.subscribe(Twist, "cmd_vel", 100)
        sent = goals.send("go_to", pose=pose_at(1000, 0))
        commands.wait(lambda twist: twist.linear.x == 0.5)
        held.publish(Bool(data=True))
        assert sent.end() == (
            "aborted",
            "The vehicle is held: call its service hold with false, or press Resume on the page.",
        )
        assert goals.send("go_to", pose=pose_at(1, 0)).end()[0] == "aborted"
        held.publish(Bool(data=False))
        helm = ros.node.create_publisher(TwistStamped, "some_bridge/helm", 1)
        commands.clear()
        sent = goals.send("go_to", pose=pose_at(1000, 0))
        commands.wait(lambda twist: twist.linear.x == 0.5)
        with repeating(lambda _: helm.publish(TwistStamped())):
            assert sent.end() == ("aborted", "Somebody is at the helm.")
        wait_until(
            lambda: goals.send("go_to", pose=pose_at(*vehicle.position)).end()[0] == "succeeded", "the helm's end"
        )
        sent = goals.send("go_to", pose=pose_at(1000, 0))
        sent.feedback.wait(lambda feedback: not feedback.waiting_for)
        vehicle.fall_silent()
        assert sent.end() == ("aborted", "There is no odometry for 0.5 s.")


def test_a_goal_goes_on_after_its_controller_stood_still(ros, goals):
    with controller(max_speed=0.5) as process:
        vehicle = Vehicle(ros)
        sent = goals.send("go_to", pose=pose_at(2, 0))
        wait_until(lambda: vehicle.position[0] > 0.2, "being on the way")
        process.send(signal.SIGSTOP)
        wait_until(process.is_stopped, "the controller to stand still")
        time.sleep(1.0)  # twice its odometry_timeout
        process.send(signal.SIGCONT)
        end, message = sent.end()
        assert end == "succeeded", message


def test_a_goal_outside_of_the_fence_is_refused_at_once(ros, goals):
    fence = ros.node.create_publisher(PolygonStamped, "fence", latched())
    square = Polygon(points=[Point32(x=x, y=y) for x, y in ((3.0, -3.0), (3.0, 3.0), (-3.0, 3.0), (-3.0, -3.0))])
    message = PolygonStamped(polygon=square)
    message.header.frame_id = "odom"
    fence.publish(message)
    with controller():
        vehicle = Vehicle(ros)
        end, sentence = goals.send("go_to", pose=pose_at(2.9, -2.9, 1)).end()
        assert end == "succeeded", sentence
        path = Path(poses=[pose_at(0, 0), pose_at(0, -4)])
        reaches = "is outside of the fence of the vehicle's bridge, which reaches from (-3, -3) to (3, 3) m."
        assert goals.send("follow_path", path=path).end() == ("aborted", f"x 0.00 y -4.00 z 0.00 m {reaches}")
        assert away(vehicle, 2.9, -2.9, 1) < 0.1


STAND_IN = "from drone_bridge.action import GoTo as NavigateToPose, GoTo as FollowWaypoints"


def test_where_there_are_nav2s_messages_its_names_are_served_too(ros, goals, tmp_path):
    """With a stand-in of another type, which has a pose as well: of Nav2's own messages there is no wheel."""
    (tmp_path / "nav2_msgs").mkdir()
    (tmp_path / "nav2_msgs" / "__init__.py").touch()
    (tmp_path / "nav2_msgs" / "action.py").write_text(STAND_IN)
    path = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
    with Process.node("drone_controller", behaviour="goals", env={"PYTHONPATH": path}):
        vehicle = Vehicle(ros)
        assert goals.send("navigate_to_pose", pose=pose_at(0.5, 0)).end()[0] == "succeeded"
        assert away(vehicle, 0.5, 0, 0) < 0.1


def test_a_goal_that_something_keeps_the_vehicle_from_is_given_up(ros, goals):
    parameters = {"behaviour": "goals", "goals.stuck_time": 1.0, "goals.odometry_timeout": 10.0}
    with Process.node("drone_controller", remap=("cmd_vel:=nowhere",), **parameters):
        Vehicle(ros)
        end, message = goals.send("go_to", pose=pose_at(3, 0)).end()
    assert end == "aborted"
    assert message.startswith("It has come no nearer for 1 s, and is 3.0 m away: a fence")


def test_goal_pose_is_a_go_to(ros):
    with controller() as process:
        vehicle = Vehicle(ros)
        publisher = ros.publisher(PoseStamped, "goal_pose")
        publisher.publish(pose_at(1, 1, 1))
        process.wait_for_line("go_to: Reached x 1.00 y 1.00 z 1.00 m")
        assert away(vehicle, 1, 1, 1) < 0.1
        publisher.publish(pose_at(math.inf, 1, 1))
        process.wait_for_line(r"go_to: The position is \(inf, 1.0, 1.0\)")


def test_take_off_and_land_without_services_are_flown(ros, goals):
    with controller():
        vehicle = Vehicle(ros)
        end, message = goals.send("take_off", height=1.5).end()
        assert end == "succeeded"
        assert message.startswith("Hovers 1.")
        assert away(vehicle, 0, 0, 1.5) < 0.1
        commands = ros.subscribe(Twist, "cmd_vel", 100)
        assert goals.send("land").end() == ("succeeded", "Is at the height where it began.")
        assert away(vehicle, 0, 0, 0) < 0.1
        commands.wait(lambda twist: twist == STILL)


class Services:
    """takeoff and land of a vehicle that says whether it flies."""

    def __init__(self, ros):
        self.called, self.refusal = [], ""
        self.flying = ros.node.create_publisher(Bool, "flying", latched())
        self.flying.publish(Bool(data=False))
        for name in ("takeoff", "land"):
            ros.node.create_service(
                Trigger, f"some_bridge/{name}", lambda _, answer, name=name: self._serve(name, answer)
            )

    def _serve(self, name, answer):
        self.called.append(name)
        answer.success, answer.message = not self.refusal, self.refusal
        if not self.refusal:
            self.flying.publish(Bool(data=name == "takeoff"))
        return answer


def test_take_off_and_land_go_by_the_vehicles_own_services(ros, goals):
    with controller():
        vehicle, services = Vehicle(ros), Services(ros)
        services.refusal = "The battery is empty."
        assert goals.send("take_off", height=1.0).end() == (
            "aborted",
            "The service takeoff refused: The battery is empty.",
        )
        services.refusal = ""
        assert goals.send("take_off", height=1.0).end()[0] == "succeeded"
        assert away(vehicle, 0, 0, 1) < 0.1
        held = ros.node.create_publisher(Bool, "held", latched())
        held.publish(Bool(data=True))
        assert goals.send("land").end() == ("succeeded", "Has landed.")
        assert services.called == ["takeoff", "takeoff", "land"]


def test_a_rover_drives_to_goals_and_leaves_its_pattern_for_one(ros, goals):
    with controller("rover_controller", max_speed=1.0):
        vehicle = Vehicle(ros)
        assert ros.set_parameters("rover_controller", pattern="circular")[0].successful
        wait_until(lambda: vehicle.position[0] > 0.1, "driving")
        end, message = goals.send("go_to", pose=pose_at(-1, 1, 5, yaw_quaternion=LEFT)).end()
        assert end == "succeeded", message
        assert away(vehicle, -1, 1, 0) < 0.15
        assert vehicle.yaw == pytest.approx(math.pi / 2, abs=0.15)
        assert all(abs(y) < 3 for _, y, _ in vehicle.path)
        assert ros.parameters("rover_controller")["pattern"] == "stationary"
        path = Path(poses=[pose_at(0, 1), pose_at(0, 0)])
        assert goals.send("follow_path", path=path).end()[0] == "succeeded"
        assert away(vehicle, 0, 0, 0) < 0.15
        services = {name for name, _ in ros.node.get_service_names_and_types_by_node("rover_controller", "/")}
        assert not any("take_off" in name for name in services)


def drives(packet):
    return isinstance(packet, SkidSteerUpdate) and (packet.left or packet.right)


def stands(packet):
    return isinstance(packet, SkidSteerUpdate) and not packet.left and not packet.right


def test_after_cancel_and_stop_the_wire_stays_neutral(ros, goals, closing):
    """For longer than a command is in force, as a robot hears something twice a second."""
    peer = closing(RobotPeer())

    def assert_stands():
        peer.received.wait(stands)
        assert not any(drives(peer.received.wait()) for _ in range(4))

    with Process.node("robot_bridge", port=peer.port), controller("rover_controller"):
        sent = goals.send("go_to", pose=pose_at(1000, 0))
        peer.received.wait(drives)
        sent.cancel()
        assert sent.end() == ("canceled", "Canceled.")
        assert_stands()
        sent = goals.send("go_to", pose=pose_at(1000, 0))
        peer.received.wait(drives)
        assert ros.switch("robot_bridge/hold", True).success
        end, message = sent.end()
        assert (end, message.partition(":")[0]) == ("aborted", "The vehicle is held")
        assert_stands()
