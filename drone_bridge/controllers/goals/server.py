# SPDX-License-Identifier: Apache-2.0
"""GoalServer: the node's part of a GoalSession: the actions of a controller, the topic goal_pose, and reports."""

import functools
import math
import time
from collections.abc import Callable, Iterator
from typing import Any

from geometry_msgs.msg import PointStamped, PolygonStamped, PoseStamped
from nav_msgs.msg import Odometry
from rclpy.action import ActionServer, CancelResponse
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.task import Future
from sensor_msgs.msg import Range
from std_msgs.msg import Bool, UInt32
from std_srvs.srv import Trigger

from drone_bridge.action import FollowPath, GoTo, Land, TakeOff
from drone_bridge.controllers.goals import guides
from drone_bridge.controllers.goals.guides import GoalError, GoalParameters, GuideStep
from drone_bridge.controllers.goals.requests import LAND, TAKE_OFF, GoalFence, GoalPose, GoalRequest
from drone_bridge.controllers.goals.session import Goal, GoalSession
from drone_bridge.controllers.messages import ErrorLog, read_odometry
from drone_bridge.controllers.vehicle_pose import VehiclePose
from drone_bridge.motion.quaternions import Quaternion
from drone_bridge.msg import HoldStatus
from drone_bridge.ros.commands.cmd_vel_type import goal_topics, names_of
from drone_bridge.ros.distributions import count_clients
from drone_bridge.ros.hold.hold_services import commands_of
from drone_bridge.ros.node.limit_reports import FENCE
from drone_bridge.ros.node.log_limiter import LogLimiter
from drone_bridge.ros.node.pose_restarts import ODOM_RESTARTS
from drone_bridge.ros.node.stall_watch import PROCESS
from drone_bridge.ros.qos import latched
from drone_bridge.ros.streams import TopicStream
from drone_bridge.ros.subscriptions import subscribe
from drone_bridge.ros.topics.covariances import UNKNOWN_VARIANCE
from drone_bridge.ros.topics.frame_tree import FrameTree

GOAL_POSE = "goal_pose"
#: Methods of a goal handle by outcome; for all others it is aborted.
_ENDS = {GoalError.NONE: "succeed", GoalError.CANCELED: "canceled"}


class GoalServer:
    """Action server for goals, one at a time. A new goal that can be followed replaces the current one.

    The owner calls `step` regularly, and publishes the velocities that it returns. Used by the executor's thread only.
    """

    def __init__(
        self,
        node: Node,
        parameters: GoalParameters,
        *,
        flies: bool,
        on_odometry: Callable[[VehiclePose], object] = lambda _: None,
        on_goal: Callable[[], object] = lambda: None,
    ) -> None:
        """Create the action servers: all actions if the vehicle flies, else those that a rover can follow.

        `on_odometry` is called with the newest pose at each step, and `on_goal` when a goal arrives.
        """
        self._node = node
        #: Decides what to do. Its `state` and `is_idle` are for the owner.
        self.session = GoalSession(
            parameters, self._service, FrameTree(node).seen_from, flies=flies, rivals=self._rivals
        )
        self._odometry, self._use_odometry, self._on_goal = TopicStream(node, Odometry, "odom"), on_odometry, on_goal
        self._errors, self._outcomes = ErrorLog(node), LogLimiter()
        self._statuses = dict[str, HoldStatus]()  # newest, by topic
        self._listened = set[str]()
        subscribe(node, Bool, "held", self._on_held, latched())
        subscribe(node, PolygonStamped, FENCE, self._on_fence, latched())
        subscribe(node, UInt32, ODOM_RESTARTS, lambda _: self.session.vehicle.restart(), latched())
        subscribe(node, PoseStamped, GOAL_POSE, self._on_goal_pose, 1)
        if flies:
            subscribe(node, Bool, "flying", self._on_flying, latched())
        self._heights = [TopicStream(node, *each) for each in ((PointStamped, "height"), (Range, "range")) if flies]
        of_drones = {TAKE_OFF: TakeOff, LAND: Land} if flies else {}
        self._types: dict[str, Any] = {**of_drones, "go_to": GoTo, "follow_path": FollowPath, **_types_of_nav2()}
        self._servers = [
            ActionServer(node, kind, name, functools.partial(self._execute, name), cancel_callback=_accept)
            for name, kind in self._types.items()
        ]

    def destroy(self) -> None:
        """Destroy the action servers. To be called before the node is destroyed."""
        for server in self._servers:
            server.destroy()
        self._servers = []

    def step(self) -> GuideStep | None:
        """Return the current step, or None to publish no command, so that other nodes can steer."""
        now_s = time.monotonic()
        if message := self._odometry.take():
            self._on_odometry(message)
        return self.session.step(now_s, PROCESS.running_s())

    # Services of the vehicle.

    def _service(self, name: str) -> guides.Service | None:
        """Return a caller of the vehicle's service, in its namespace or below its bridge's node; None if not found."""
        for found, types in self._node.get_service_names_and_types():
            if "std_srvs/srv/Trigger" in types and self._is_ours(found, name):
                return functools.partial(self._call, found)
        return None

    def _call(self, service: str) -> Any:
        client: Any = self._node.create_client(Trigger, service)
        future = client.call_async(Trigger.Request())
        future.add_done_callback(lambda _: self._node.destroy_client(client))
        return future

    def _is_ours(self, found: str, name: str) -> bool:
        own, namespace = self._node.resolve_service_name(name), self._node.get_namespace().rstrip("/")
        parts = found.removeprefix(f"{namespace}/").split("/")
        return found == own or (found.startswith(f"{namespace}/") and len(parts) == 2 and parts[1] == name)

    # Subscriptions.

    def _on_odometry(self, message: Odometry) -> None:
        if not (measured := read_odometry(message, self._errors)):
            return
        self._use_odometry(measured)
        heights = [_height_in(each.take(), message.header.stamp.sec) for each in self._heights]
        height = next((each for each in heights if each is not None), None)
        is_located = message.pose.covariance[0] < UNKNOWN_VARIANCE
        self.session.vehicle.move(time.monotonic(), measured, message.header.frame_id, height, is_located=is_located)

    def _on_held(self, message: Bool) -> None:
        self.session.vehicle.is_held = message.data

    def _on_fence(self, message: PolygonStamped) -> None:
        corners = tuple((corner.x, corner.y) for corner in message.polygon.points)
        self.session.vehicle.fence = GoalFence(message.header.frame_id, corners)

    def _on_flying(self, message: Bool) -> None:
        self.session.vehicle.ground.is_flying = message.data

    def _on_status(self, topic: str, status: HoldStatus) -> None:
        before, self._statuses[topic] = self._statuses.get(topic, HoldStatus()), status
        if (status.helm, status.commander) == (before.helm, before.commander):
            return
        vehicle, statuses = self.session.vehicle, self._statuses.values()
        vehicle.is_steered = any(each.helm for each in statuses)
        others = {
            commands_of(self._node, each) for each in statuses if each.commander not in ("", *goal_topics(self._node))
        }
        vehicle.overruled_by = " and ".join(sorted(others))

    def _rivals(self) -> str:
        """Return the other publishers of commands, as the beginning of a sentence; empty without any."""
        own = self._node.get_fully_qualified_name()
        topics = self._node.resolve_topic_name("cmd_vel"), *goal_topics(self._node)
        found = {name for each in topics for name in names_of(self._node.get_publishers_info_by_topic(each))} - {own}
        return f"commands of {' or '.join(sorted(found))}, " if found else ""

    def _listen_for_bridges(self) -> None:
        """Subscribe to the reports of bridges that have appeared, except vehicles without our entrance.

        What one has reported last is forgotten once it is gone: another one may steer the vehicle now.
        """
        for topic in [each for each in self._statuses if not self._node.count_publishers(each)]:
            self._on_status(topic, HoldStatus())
        for topic, types in self._node.get_topic_names_and_types():
            is_report = "drone_bridge/msg/HoldStatus" in types and self._is_ours(topic, "hold_status")
            if is_report and topic not in self._listened and self._node.count_subscribers(goal_topics(self._node)[0]):
                self._listened.add(topic)
                subscribe(self._node, HoldStatus, topic, functools.partial(self._on_status, topic), latched())

    # Goals.

    def _on_goal_pose(self, message: PoseStamped) -> None:
        def has_client() -> bool:
            return self._has_client() or self._node.count_publishers(GOAL_POSE) > 0

        log = functools.partial(self._log, "go_to")
        self._receive(Goal(_request("go_to", GoTo.Goal(pose=message)), time.monotonic(), log, has_client))

    async def _execute(self, name: str, handle: Any) -> Any:
        outcome: Any = Future()
        goal = Goal(
            _request(name, handle.request),
            time.monotonic(),
            lambda *each: outcome.set_result(each),
            self._has_client,
            lambda: handle.is_cancel_requested,
            functools.partial(self._report, name, handle),
        )
        self._receive(goal)
        code, message = await outcome
        getattr(handle, _ENDS.get(code, "abort"))()
        self._log(name, code, message)
        kind = self._types[name].Result
        code = code and getattr(kind, "UNKNOWN", code)  # Nav2's results have codes of their own
        return _filled(kind, message=message, error_msg=message, error_code=int(code))

    def _receive(self, goal: Goal) -> None:
        self._listen_for_bridges()
        if self.session.receive(goal):
            self._on_goal()

    def _has_client(self) -> bool:
        return any(count_clients(self._node, f"{name}/_action/send_goal") for name in self._types)

    def _report(self, name: str, handle: Any, step: GuideStep) -> None:
        left_s = step.time_s if math.isfinite(step.time_s) else 0.0
        feedback = {"distance_remaining": step.distance, "time_remaining": step.time_s, "waiting_for": step.waiting_for}
        feedback["estimated_time_remaining"] = Duration(seconds=left_s).to_msg()
        handle.publish_feedback(_filled(self._types[name].Feedback, **feedback))

    def _log(self, name: str, code: GoalError, message: str) -> None:
        line = self._outcomes.admit(f"{name}: {message}")
        is_failure = code not in (*_ENDS, GoalError.REPLACED)
        if line and is_failure:  # two calls, since rclpy ties each line of code to one severity
            self._node.get_logger().warning(line)
        elif line:
            self._node.get_logger().info(line)


def _accept(_: Any) -> CancelResponse:
    return CancelResponse.ACCEPT


def _types_of_nav2() -> dict[str, Any]:
    """Return the actions with Nav2's names and types, if nav2_msgs is installed. It has no wheel."""
    try:
        from nav2_msgs.action import FollowWaypoints, NavigateToPose
    except ImportError:
        return {}
    return {"navigate_to_pose": NavigateToPose, "follow_waypoints": FollowWaypoints}


def _filled(kind: Any, **values: Any) -> Any:
    """Return a message filled with the values for which it has fields."""
    known = kind.get_fields_and_field_types()
    return kind(**{name: value for name, value in values.items() if name in known})


def _request(name: str, message: Any) -> GoalRequest:
    numbers = {each: getattr(message, each, 0.0) for each in ("tolerance", "speed", "height")}  # not all in Nav2's
    return GoalRequest(name, tuple(_poses(message)), original=message, **numbers)


def _poses(message: Any) -> Iterator[GoalPose]:
    """Yield the poses of a goal. Those of a path without a frame get the path's."""
    path = getattr(message, "path", message)
    frame = path.header.frame_id if hasattr(path, "header") else ""
    for each in getattr(path, "poses", [message.pose] if hasattr(message, "pose") else []):
        at, q = each.pose.position, each.pose.orientation
        yield GoalPose(each.header.frame_id or frame, at.x, at.y, at.z, Quaternion(q.x, q.y, q.z, q.w))


def _height_in(message: Any, second: int) -> float | None:
    """Return the height above the ground, m, in a `height` or `range` that is about as new; None if it has none."""
    if message is None or abs(message.header.stamp.sec - second) > 1:
        return None
    is_height = isinstance(message, PointStamped)
    height: float = message.point.z if is_height else message.range
    least, most = (-math.inf, math.inf) if is_height else (message.min_range, message.max_range or math.inf)
    return height if least <= height < most else None
