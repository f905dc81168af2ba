# SPDX-License-Identifier: Apache-2.0
"""Actions of drone_controller and rover_controller, without nodes, with a fake clock."""

import math
import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from geometry_msgs.msg import Point, Point32, PointStamped, Polygon, PolygonStamped, PoseStamped
from nav_msgs.msg import Odometry, Path
from sensor_msgs.msg import Range
from std_msgs.msg import Bool, UInt32
from tf2_msgs.msg import TFMessage

from drone_bridge.action import FollowPath, GoTo, Land, TakeOff
from drone_bridge.controllers.goals import server as module
from drone_bridge.controllers.goals.guides import GoalError, GoalParameters
from drone_bridge.controllers.goals.server import GoalServer
from drone_bridge.motion.body_velocity import STILL
from drone_bridge.motion.quaternions import quaternion_from_euler
from drone_bridge.msg import HoldStatus
from drone_bridge.ros.topics import frame_tree
from drone_bridge.ros.topics.covariances import UNKNOWN_VARIANCE
from drone_bridge.ros.topics.transforms import set_quaternion, transform

PERIOD_S = 0.02
TYPES = {"take_off": TakeOff, "land": Land, "go_to": GoTo, "follow_path": FollowPath, "navigate_to_pose": GoTo}
FAST = {"max_speed": 3.0, "max_climb_speed": 3.0, "max_turn_rate": 3.0}
LEFT = quaternion_from_euler(0.0, 0.0, math.pi / 2)
WELL = SimpleNamespace(success=True, message="")
OVERRULED = HoldStatus(commander="/cmd_vel")
TRIGGER, HOLD_STATUS = ["std_srvs/srv/Trigger"], ["drone_bridge/msg/HoldStatus"]


def pose_at(x, y, z=0.0, frame="", yaw_quaternion=(0.0, 0.0, 0.0, 0.0)):
    pose = PoseStamped()
    pose.header.frame_id = frame
    pose.pose.position.x, pose.pose.position.y, pose.pose.position.z = float(x), float(y), float(z)
    q = pose.pose.orientation
    q.x, q.y, q.z, q.w = yaw_quaternion
    return pose


class Handle:
    """Goal as passed by rclpy, with its result."""

    def __init__(self, request):
        self.request, self.is_cancel_requested = request, False
        self.end, self.message, self.error, self.feedback = None, None, None, []
        self.succeed, self.abort, self.canceled = (
            lambda end=end: setattr(self, "end", end) for end in ("succeeded", "aborted", "canceled")
        )

    def publish_feedback(self, feedback):
        self.feedback.append(feedback)

    @property
    def outcome(self):
        return self.end, self.message


class World:
    """Server of goals with its node's graph, and a vehicle that follows it."""

    def __init__(self, clock, monkeypatch, *, flies=True, **parameters):
        self._clock = clock
        self.heard, self.executing, self.lines = {}, {}, []
        self.topics, self.services, self.answers, self.called = {}, {}, {}, []
        self.position, self.yaw, self.path = np.zeros(3), 0.0, []
        self.speaks, self.obeys, self.running, self.awaited = True, True, [], {}
        self.commanders = ["teleop", "joy"]
        self.clients, self.publishers = 1, {"goal_pose": 0}
        self.messages, self.variance = {}, 0.0  # until they are taken, and of its x
        self.ground, self.shows = -math.inf, set()  # height of the ground that stops it, and topics that show it
        subscribe = lambda node, kind, topic, heard, qos: self.heard.__setitem__(topic, heard)  # noqa: E731
        monkeypatch.setattr(module, "subscribe", subscribe)
        monkeypatch.setattr(frame_tree, "subscribe", subscribe)
        take = lambda topic: lambda: self.messages.pop(topic, None)  # noqa: E731
        monkeypatch.setattr(module, "TopicStream", lambda node, kind, topic: SimpleNamespace(take=take(topic)))
        monkeypatch.setattr(module, "ActionServer", self._serve)
        monkeypatch.setattr(module.PROCESS, "running_s", lambda: math.inf)
        self.server = GoalServer(self._node(), GoalParameters(**{**FAST, **parameters}), flies=flies)

    def _node(self):
        logger = SimpleNamespace(info=self.lines.append, warning=self.lines.append)
        return SimpleNamespace(
            get_topic_names_and_types=lambda: list(self.topics.items()),
            get_service_names_and_types=lambda: list(self.services.items()),
            get_namespace=lambda: "/",
            resolve_service_name=lambda name: f"/{name}",
            resolve_topic_name=lambda name: f"/{name}",
            count_subscribers=lambda topic: 1,
            get_fully_qualified_name=lambda: "/drone_controller",
            get_publishers_info_by_topic=lambda topic: [
                SimpleNamespace(node_namespace="/", node_name=each) for each in self.commanders
            ],
            get_logger=lambda: logger,
            create_client=lambda kind, name: SimpleNamespace(call_async=lambda request: self._call(name)),
            destroy_client=lambda client: None,
            count_clients=lambda name: self.clients,
            count_publishers=lambda name: self.publishers.get(name, 1),
        )

    def _serve(self, node, kind, name, execute, cancel_callback):
        self.executing[name] = execute
        return SimpleNamespace(destroy=lambda: None)

    def _call(self, name):
        self.called.append(name)
        answer = self.answers[name]()
        future = SimpleNamespace(done=lambda: answer is not None, exception=lambda: None, result=lambda: answer)
        future.add_done_callback = lambda callback: callback(future)
        return future

    def say(self, topic, message):
        self.heard[topic](message)

    def send(self, name, **fields):
        handle = Handle(TYPES[name].Goal(**fields))
        self.running.append((handle, self.executing[name](handle)))
        self._advance()
        return handle

    def _advance(self):
        for each in tuple(self.running):
            handle, coroutine = each
            awaited = self.awaited.get(handle)
            if awaited and not awaited.done():  # which rclpy allows to await once
                continue
            try:
                self.awaited[handle] = coroutine.send(None)
            except StopIteration as ended:
                handle.message, handle.error = ended.value.message, GoalError(ended.value.error_code)
                self.running.remove(each)

    def step(self):
        """Advance by a moment. Return the command in it: a Step, or None."""
        self._clock[0] += PERIOD_S
        if self.speaks:
            odometry = Odometry()
            odometry.header.frame_id, odometry.pose.covariance[0] = "odom", self.variance
            at = odometry.pose.pose.position
            at.x, at.y, at.z = self.position.tolist()
            set_quaternion(odometry.pose.pose.orientation, quaternion_from_euler(0.0, 0.0, self.yaw))
            height = float(self.position[2]) - self.ground
            self.messages["odom"] = odometry
            if "height" in self.shows:
                self.messages["height"] = PointStamped(point=Point(z=height))
            if "range" in self.shows:
                self.messages["range"] = Range(range=height, max_range=10.0)
            if "flying" in self.shows:
                self.say("flying", Bool(data=height > 0.0))
        step = self.server.step()
        if step and self.obeys:
            (x, y, z), turn = step.velocity.linear, step.velocity.turn
            cos, sin = math.cos(self.yaw), math.sin(self.yaw)
            self.position = self.position + PERIOD_S * np.array([cos * x - sin * y, sin * x + cos * y, z])
            self.position[2] = max(self.position[2], self.ground)
            self.yaw += PERIOD_S * turn
        self.path.append(tuple(self.position))
        self._advance()
        return step

    def run(self, seconds):
        return [self.step() for _ in range(round(seconds / PERIOD_S))]

    def end_of(self, handle, at_most_s=60.0):
        """Advance until a goal has ended. Return its state and the sentence."""
        for _ in range(round(at_most_s / PERIOD_S)):
            if handle.end:
                return handle.outcome
            self.step()
        raise AssertionError(f"{handle.request} has not ended: {self.server.session.state}")

    def reaches(self, x, y, z=0.0, **options):
        """Send a goal, and advance until it has ended. Return whether it was reached."""
        return self.end_of(self.send("go_to", pose=pose_at(x, y, z, **options)))[0] == "succeeded"

    def aborts(self, handle):
        """Advance until a goal was aborted. Return the sentence."""
        end, message = self.end_of(handle)
        assert end == "aborted"
        return message

    def away(self, *place):
        return np.linalg.norm(self.position - place)


@pytest.fixture
def make_world(clock, monkeypatch):
    return lambda **options: World(clock, monkeypatch, **options)


@pytest.fixture
def world(make_world):
    return make_world()


@pytest.fixture
def far(make_world):
    """Return a world that is on its way to a far goal, slowly."""
    world = make_world(patience=0.3, max_speed=0.5)
    world.goal = world.send("go_to", pose=pose_at(1000, 0))
    world.run(1.0)
    return world


def is_still(step):
    return step is not None and step.velocity == STILL


def moves(step):
    return step is not None and any(step.velocity.linear)


# Motion to a goal.


def test_a_goal_is_reached_with_its_heading_and_held(world):
    sent = world.send("go_to", pose=pose_at(2, -1, 1, yaw_quaternion=LEFT))
    world.run(0.1)
    first = next(each for each in sent.feedback if not each.waiting_for)
    assert first.distance_remaining == pytest.approx(math.sqrt(6), abs=0.1)
    assert first.time_remaining == pytest.approx(first.distance_remaining / 3.0)
    end, message = world.end_of(sent)
    assert (end, message[:43]) == ("succeeded", "Reached x 2.00 y -1.00 z 1.00 m, yaw 90°, 0")
    assert world.away(2, -1, 1) < 0.1
    assert world.yaw == pytest.approx(math.pi / 2, abs=0.1)
    world.position[0] += 1.0  # a gust
    world.run(10.0)
    assert world.away(2, -1, 1) < 0.05
    assert any("go_to: Reached x 2.00" in line for line in world.lines)


def test_a_path_is_followed_through_each_of_its_poses(world):
    path = Path(poses=[pose_at(1, 0), pose_at(1, 1), pose_at(0, 1)])
    path.header.frame_id = "odom"
    sent = world.send("follow_path", path=path, tolerance=0.05, speed=2.0)
    assert world.end_of(sent)[0] == "succeeded"
    assert sent.feedback[1].distance_remaining > 2.5
    passed = np.array(world.path)
    assert all(np.linalg.norm(passed - (x, y, 0), axis=1).min() < 0.06 for x, y in ((1, 0), (1, 1), (0, 1)))


def test_a_rover_drives_to_goals_and_turns_on_the_spot(make_world):
    world = make_world(flies=False, max_speed=1.0)
    assert world.executing.keys() == {"go_to", "follow_path"}
    sent = world.send("go_to", pose=pose_at(-1, 1, 5, yaw_quaternion=LEFT))
    assert world.end_of(sent)[0] == "succeeded"
    assert world.away(-1, 1, 0) < 0.15
    assert world.yaw % math.tau == pytest.approx(math.pi / 2, abs=0.15)
    path = Path(poses=[pose_at(0, 1), pose_at(0, 0)])
    assert world.end_of(world.send("follow_path", path=path))[0] == "succeeded"
    assert world.away(0, 0, 0) < 0.15


def test_a_goal_in_another_frame_is_transformed_by_tf(world):
    sent = world.send("go_to", pose=pose_at(10, 2, 0.5, frame="map", yaw_quaternion=LEFT))
    world.run(0.1)
    world.say("/tf_static", TFMessage(transforms=[transform("map", "odom", (10.0, 0.0, 0.0), LEFT)]))
    assert world.end_of(sent)[0] == "succeeded"
    assert world.away(2, 0, 0.5) < 0.1
    assert world.yaw == pytest.approx(0.0, abs=0.1)


def test_a_goal_without_a_height_keeps_that_at_its_acceptance(world):
    world.position[2] = 1.5
    assert world.reaches(1, 1, math.nan)
    assert world.away(1, 1, 1.5) < 0.1
    sent = world.send("go_to", pose=pose_at(10, 2, math.nan, frame="map"))
    world.run(0.1)
    world.say("/tf_static", TFMessage(transforms=[transform("map", "odom", (10.0, 0.0, 0.0), LEFT)]))
    assert world.end_of(sent)[0] == "succeeded"
    assert world.away(2, 0, 1.5) < 0.1


def test_a_rover_goes_to_a_goal_without_a_height(make_world):
    world = make_world(flies=False, max_speed=1.0)
    assert world.reaches(1, 0, math.nan)


def test_a_negative_height_is_refused(world):
    assert world.aborts(world.send("take_off", height=-1.0)).startswith("height is -1.0 but ")


def test_a_reached_goal_is_held_while_a_client_of_any_action_is_there(world):
    world.end_of(world.send("go_to", pose=pose_at(1, 0)))
    assert all(world.run(5.0))
    world.clients = 0
    assert all(world.run(0.5)), "its connection may be interrupted"
    world.clients = 1
    assert all(world.run(5.0))
    world.clients = 0
    world.run(1.5)
    assert not any(world.run(5.0))
    assert world.server.session.is_idle
    world.clients = 1
    assert not any(world.run(5.0)), "a later client does not move it"


def test_a_goal_is_followed_also_without_its_client(world):
    handle = world.send("go_to", pose=pose_at(3, 0))
    world.clients = 0
    assert world.end_of(handle)[0] == "succeeded"


def test_a_reached_goal_of_the_topic_is_held_while_it_has_a_publisher(world):
    world.clients, world.publishers["goal_pose"] = 0, 1
    world.say("goal_pose", pose_at(1, 0))
    world.run(10.0)
    assert all(world.run(5.0))
    world.publishers["goal_pose"] = 0
    world.run(1.5)
    assert not any(world.run(5.0))


def test_goal_pose_is_a_go_to(world):
    world.say("goal_pose", pose_at(1, 1, 1))
    world.run(10.0)
    assert world.away(1, 1, 1) < 0.1
    assert world.lines[0].startswith("go_to: Reached x 1.00 y 1.00 z 1.00 m")
    world.say("goal_pose", pose_at(math.inf, 1, 1))
    assert world.lines[1].startswith("go_to: The position is (inf, 1.0, 1.0)")


def test_with_nav2s_messages_its_action_names_are_served_too(make_world, monkeypatch):
    """With stand-ins of another type with a pose, since Nav2's own messages have no wheel."""
    stand_in = SimpleNamespace(NavigateToPose=GoTo, FollowWaypoints=FollowPath)
    monkeypatch.setitem(sys.modules, "nav2_msgs", SimpleNamespace(action=stand_in))
    monkeypatch.setitem(sys.modules, "nav2_msgs.action", stand_in)
    world = make_world()
    assert world.end_of(world.send("navigate_to_pose", pose=pose_at(0.5, 0)))[0] == "succeeded"
    assert world.away(0.5, 0, 0) < 0.1
    assert "follow_waypoints" in world.executing


# Ends.


def test_cancel_stops_and_then_nothing_is_commanded(far):
    assert far.run(2.0)[-1].velocity.linear == pytest.approx((0.5, 0.0, 0.0))
    far.goal.is_cancel_requested = True
    commanded = far.run(1.0)
    assert far.goal.outcome == ("canceled", "Canceled.")
    stops = [step for step in commanded if step is not None]
    assert all(map(is_still, stops))
    assert len(stops) == pytest.approx(0.5 / PERIOD_S, abs=1)
    assert commanded[-1] is None  # so that others may command


def test_another_goal_replaces_it(far):
    second = far.send("go_to", pose=pose_at(*far.position))
    assert "another goal" in far.aborts(far.goal)
    assert far.end_of(second)[0] == "succeeded"


BAD = (
    ({"pose": pose_at(math.nan, 0)}, r"The position is \(nan, 0.0, 0.0\) but must be within 1e\+06 m"),
    ({"pose": pose_at(0, 0, yaw_quaternion=(0.0, 0.0, 0.0, 7.0))}, "The orientation is .* must have length 1"),
    ({"pose": pose_at(1, 0), "tolerance": math.inf}, "tolerance is inf but must be a finite number"),
    ({"pose": pose_at(1, 0), "speed": -0.5}, "speed is -0.5 but must be a finite number of at least 0"),
    ({"pose": pose_at(1, 0), "tolerance": -1.0}, "tolerance is -1.0 but must be"),
    ({"pose": pose_at(1, 0, math.inf)}, r"The position is \(1.0, 0.0, inf\) but must be"),
    ({"pose": pose_at(1, 0, frame="nowhere")}, "No transform from nowhere to odom"),
    ({"path": Path()}, "The path has 0 poses but must have 1 to 10000."),
)


@pytest.mark.parametrize(("fields", "sentence"), BAD)
def test_infeasible_goal_is_refused_without_effect_on_others(far, fields, sentence):
    sent = far.send("follow_path" if "path" in fields else "go_to", **fields)
    message = far.aborts(sent)
    assert re.match(sentence, message), message
    assert sent.error is (GoalError.NO_ODOMETRY if "transform" in sentence else GoalError.INVALID)
    assert far.goal.end is None
    assert moves(far.step())


def test_a_goal_waits_for_odometry(make_world):
    world = make_world(max_speed=0.5)
    sent = world.send("go_to", pose=pose_at(1000, 0))
    for world.speaks in (True, False, True, False):
        assert (moves if world.speaks else is_still)(world.run(1.0)[-1])
    assert world.aborts(sent)
    assert sent.error is GoalError.NO_ODOMETRY
    assert sent.feedback[-1].waiting_for == "odometry"


def test_a_goal_outlives_a_stall_of_its_process(far, clock, monkeypatch):
    """Messages from the stall are received next."""
    clock[0] += 3.0
    monkeypatch.setattr(module.PROCESS, "running_s", lambda: 0.1)
    far.speaks = False
    assert moves(far.step())
    assert far.goal.end is None


def test_a_person_at_the_helm_ends_a_goal(world):
    world.topics = {"/some_bridge/hold_status": HOLD_STATUS, "/other/vehicle/hold_status": HOLD_STATUS}
    sent = world.send("go_to", pose=pose_at(1000, 0))
    world.run(1.0)
    assert "/other/vehicle/hold_status" not in world.heard
    world.say("/some_bridge/hold_status", HoldStatus(helm="a person is at the helm"))
    assert is_still(world.step())
    assert "helm" in world.aborts(sent)
    world.say("/some_bridge/hold_status", HoldStatus())
    world.run(1.0)
    assert world.reaches(*world.position)


def test_the_helm_of_a_bridge_that_was_killed_ends_no_goal_of_its_successor(world):
    world.topics = {"/some_bridge/hold_status": HOLD_STATUS}
    world.aborts(world.send("go_to", pose=pose_at(math.nan, 0)))
    world.say("/some_bridge/hold_status", HoldStatus(helm="a person is at the helm"))
    world.topics = {"/other_bridge/hold_status": HOLD_STATUS}
    world.publishers["/some_bridge/hold_status"] = 0
    assert world.reaches(1, 0)


def test_a_goal_waits_while_a_program_commands_the_vehicle(world):
    world.topics = {"/some_bridge/hold_status": HOLD_STATUS}
    sent = world.send("go_to", pose=pose_at(3, 0))
    world.run(0.5)
    world.say("/some_bridge/hold_status", OVERRULED)
    world.obeys = False
    world.run(5.0)
    assert sent.feedback[-1].waiting_for == "the end of commands on /cmd_vel by /joy or /teleop"
    world.obeys = True
    world.say("/some_bridge/hold_status", HoldStatus(commander="/cmd_vel_goal"))
    world.run(10.0)
    assert sent.end == "succeeded"


def test_a_reached_goal_is_no_longer_held_once_a_program_commands_the_vehicle(world):
    """Else both would steer it, and neither would arrive."""
    world.topics = {"/some_bridge/hold_status": HOLD_STATUS}
    assert world.reaches(1, 0)
    assert world.step()
    world.say("/some_bridge/hold_status", OVERRULED)
    assert world.step() is None
    assert world.server.session.state == ("idle", "the vehicle follows commands on /cmd_vel by /joy or /teleop")


def test_a_landing_does_not_wait_for_a_program(world):
    """One that was left open, and sends zeros, keeps no drone in the air."""
    world.topics = {"/some_bridge/hold_status": HOLD_STATUS}
    assert world.reaches(1, 0)
    sent = world.send("land")
    world.say("/some_bridge/hold_status", OVERRULED)
    assert world.step().velocity.up < 0.0
    assert world.server.session.lands
    assert sent.end is None


def test_a_goal_that_is_overruled_for_long_is_aborted(world):
    world.topics = {"/some_bridge/hold_status": HOLD_STATUS}
    sent, world.obeys = world.send("go_to", pose=pose_at(3, 0)), False
    world.say("/some_bridge/hold_status", OVERRULED)
    world.run(21.0)
    assert "it waits for the end of commands on /cmd_vel by /joy or /teleop" in world.aborts(sent)


@pytest.mark.parametrize(
    ("others", "cause"), [([], ": a fence"), (["drone_controller", "joy"], ": commands of /joy, a fence")]
)
def test_a_goal_without_progress_names_other_publishers_before_a_fence(world, others, cause):
    """A vehicle of another package does not report whom it follows."""
    world.commanders = others
    sent, world.obeys = world.send("go_to", pose=pose_at(3, 0)), False
    world.run(16.0)
    assert cause in world.aborts(sent)


def test_only_the_first_count_of_restarts_ends_no_goal(world):
    """A restarted bridge has no earlier pose to go on from, and reports the same number."""
    sent = world.send("go_to", pose=pose_at(5, 0, 1))
    for end in (None, "aborted"):
        world.say("odom_restarts", UInt32(data=0))
        world.run(0.1)
        assert sent.end == end
    assert sent.error is GoalError.POSE_RESTARTED
    assert "began again" in sent.message


def test_a_place_whose_variance_was_known_and_is_not_any_more_ends_goals(world):
    """A place that was never known, as that of wheels, is no doubt."""
    for variance in (UNKNOWN_VARIANCE, 2.0, UNKNOWN_VARIANCE, 2.0):
        is_doubted = variance == UNKNOWN_VARIANCE and world.variance == 2.0
        world.variance = variance
        sent = world.send("go_to", pose=pose_at(0, 0, 1))
        assert world.end_of(sent)[0] == ("aborted" if is_doubted else "succeeded")
        assert ("doubt" in sent.message) is is_doubted


def test_a_goal_outside_of_the_fence_is_refused_at_once(world):
    square = Polygon(points=[Point32(x=x, y=y) for x, y in ((3.0, -3.0), (3.0, 3.0), (-3.0, 3.0), (-3.0, -3.0))])
    fence = PolygonStamped(polygon=square)
    fence.header.frame_id = "odom"
    world.say("fence", fence)
    assert world.reaches(2.9, -2.9, 1)
    path = Path(poses=[pose_at(0, 0), pose_at(0, -4)])
    reaches = "is outside of the fence of the vehicle's bridge, which reaches from (-3, -3) to (3, 3) m."
    assert world.end_of(world.send("follow_path", path=path)) == ("aborted", f"x 0.00 y -4.00 z 0.00 m {reaches}")
    assert world.away(2.9, -2.9, 1) < 0.1


@pytest.mark.parametrize("action", [FollowPath, GoTo, Land, TakeOff])
def test_every_result_has_the_same_codes(action):
    for error in GoalError:
        assert getattr(action.Result, error.name) == error.value


def test_a_goal_without_progress_is_aborted(make_world):
    world = make_world(stuck_time=1.0)
    world.obeys = False
    assert "3.0 m from the goal" in world.aborts(world.send("go_to", pose=pose_at(3, 0)))


# Taking off and landing.


GROUND_M = -2.0


def shown(make_world, topics, height):
    """Return the world of a drone at a height, m, above a ground that topics show, in whose flight the server began."""
    world = make_world()
    world.ground, world.shows = GROUND_M, set(topics.split())
    world.position = np.array([0.0, 0.0, GROUND_M + height])
    world.run(0.1)
    return world, lambda: world.position[2] - GROUND_M


@pytest.mark.parametrize("height", [0.0, 5.0])
@pytest.mark.parametrize("topics", ["height", "range", "flying", "height flying", ""])
def test_take_off_and_land_without_services_end_where_they_say(make_world, topics, height):
    world, height_now = shown(make_world, topics, height)
    end, message = world.end_of(world.send("take_off", height=1.5))
    is_known = topics not in ("", "flying") or (topics and not height)
    assert (end, message[:9]) == ("succeeded", "Hovers 1.")
    assert ("above the ground" in message) is bool(is_known)
    assert height_now() == pytest.approx(1.5 if is_known else height + 1.5, abs=0.1)
    assert world.end_of(world.send("land"))[0] == "succeeded"
    assert height_now() == 0.0
    assert is_still(world.step())
    assert world.end_of(world.send("land"))[0] == "succeeded"
    assert world.end_of(world.send("take_off"))[0] == "succeeded"
    assert height_now() == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize(
    ("topics", "is_known"), [("height", True), ("flying", True), ("range flying", True), ("", False)]
)
def test_take_off_without_a_height_leaves_a_drone_where_it_flies(make_world, topics, is_known):
    world, height_now = shown(make_world, topics, 5.0)
    assert world.end_of(world.send("take_off"))[0] == "succeeded"
    assert height_now() == pytest.approx(5.0 if is_known else 6.0, abs=0.1)


UP, FLIES, LANDS = "it waits for the vehicle to be up", "it waits for the vehicle to fly", "No progress for 15 s"


@pytest.mark.parametrize(
    ("name", "topics", "height", "words", "services"),
    [
        *(("take_off", *each, {"/takeoff": TRIGGER}) for each in (("flying", 0.0, FLIES), ("", 0.0, UP))),
        *(("land", each, 1.0, LANDS, {"/land": TRIGGER}) for each in ("flying", "height")),
        *(("land", each, 5.0, LANDS, {}) for each in ("flying", "height")),
    ],
)
def test_a_goal_without_effect_is_aborted(make_world, name, topics, height, words, services):
    world, _ = shown(make_world, topics, height)
    world.obeys, world.services, world.answers = False, services, dict.fromkeys(services, lambda: WELL)
    sent = world.send(name)
    assert words in world.aborts(sent)
    assert sent.error is GoalError.NO_PROGRESS


def test_a_landing_above_no_ground_is_aborted(make_world):
    world = make_world(landing_speed=10.0)
    assert "no ground" in world.aborts(world.send("land"))


def test_a_takeoff_that_is_sent_again_goes_on(make_world):
    world, height_now = shown(make_world, "flying", 0.0)
    world.services, world.answers = {"/takeoff": TRIGGER}, {"/takeoff": lambda: WELL}
    first = world.send("take_off", height=1.0)
    world.run(0.1)
    again = world.send("take_off", height=1.0)
    world.run(0.1)
    world.position[2] += 0.5
    assert world.end_of(again)[0] == "succeeded"
    assert first.error is GoalError.REPLACED
    assert height_now() == pytest.approx(1.0, abs=0.1)
    assert world.called == ["/takeoff"]


def test_a_takeoff_at_the_end_of_a_landing_is_refused_and_the_next_takes_off(world):
    world.services, world.answers = {"/takeoff": TRIGGER}, {"/takeoff": lambda: WELL}
    world.say("flying", Bool(data=True))
    late = world.send("take_off", height=1.0)
    world.run(0.1)
    world.say("flying", Bool(data=False))
    world.run(0.1)
    assert late.error is GoalError.REFUSED
    assert not world.called
    world.send("take_off", height=1.0)
    world.run(0.1)
    assert world.called == ["/takeoff"]


def test_a_drone_on_the_ground_may_refuse_to_land(make_world):
    world, _ = shown(make_world, "flying", 0.0)
    refusal = SimpleNamespace(success=False, message="it is standing")
    world.services, world.answers = {"/land": TRIGGER}, {"/land": lambda: refusal}
    assert world.end_of(world.send("land")) == ("succeeded", "Has landed.")


def test_take_off_and_land_call_the_vehicles_services(world):
    world.say("flying", Bool(data=False))
    world.services = {f"/some_bridge/{name}": TRIGGER for name in ("takeoff", "land")}
    empty = SimpleNamespace(success=False, message="The battery is empty.")
    world.answers = {"/some_bridge/takeoff": lambda: empty, "/some_bridge/land": lambda: WELL}
    sent = world.send("take_off", height=1.0)
    assert world.aborts(sent).endswith("The battery is empty.")
    assert sent.error is GoalError.REFUSED
    world.answers["/some_bridge/takeoff"] = lambda: WELL
    sent = world.send("take_off", height=1.0)
    assert set(world.run(1.0)[1:]) == {None}  # the vehicle rises by itself
    assert sent.feedback[-1].waiting_for == "the vehicle to fly"
    world.say("flying", Bool(data=True))
    assert world.end_of(sent)[0] == "succeeded"
    assert world.away(0, 0, 1) < 0.1
    world.say("held", Bool(data=True))
    sent = world.send("land")
    world.run(1.0)
    assert sent.end is None
    world.say("flying", Bool(data=False))
    assert world.end_of(sent) == ("succeeded", "Has landed.")
    assert world.called == [f"/some_bridge/{name}" for name in ("takeoff", "takeoff", "land")]


@pytest.mark.parametrize("name", ["take_off", "land"])
def test_a_service_that_never_answers_ends_the_goal(world, name):
    service = name.replace("_", "")
    world.services, world.answers = {f"/{service}": TRIGGER}, {f"/{service}": lambda: None}
    sent = world.send(name)
    assert set(world.run(GoalParameters().answer_time - 1.0)) == {None}
    assert world.end_of(sent, 2.0) == ("aborted", f"The service {service} has not answered for 20 s.")
    assert world.called == [f"/{service}"]
