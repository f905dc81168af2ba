# SPDX-License-Identifier: Apache-2.0
"""GoalServer: the actions of a controller and the topic goal_pose.

Every goal is accepted. One that can't be followed is aborted at once, since a rejected goal can't carry a reason.
"""

import functools
import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from geometry_msgs.msg import PointStamped, PolygonStamped, PoseStamped, TwistStamped
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
from drone_bridge.controllers.goals.guides import GoalError, GoalFailedError, GoalParameters, Guide, GuideStep
from drone_bridge.controllers.messages import ErrorLog, read_odometry
from drone_bridge.controllers.vehicle_pose import VehiclePose
from drone_bridge.controllers.waypoints.waypoint import Waypoint
from drone_bridge.motion.quaternions import IDENTITY, euler_from_quaternion, multiplied, rotated, unit_quaternion
from drone_bridge.ros.distributions import count_clients
from drone_bridge.ros.node.limit_reports import FENCE
from drone_bridge.ros.node.log_limiter import LogLimiter
from drone_bridge.ros.node.pose_restarts import ODOM_RESTARTS
from drone_bridge.ros.node.stall_watch import PROCESS
from drone_bridge.ros.qos import latched
from drone_bridge.ros.streams import TopicStream
from drone_bridge.ros.subscriptions import subscribe
from drone_bridge.ros.topics.covariances import UNKNOWN_VARIANCE
from drone_bridge.ros.topics.frame_tree import FrameTree, Placed
from drone_bridge.session.hold_state import HELM_ENDS_AFTER_S
from drone_bridge.session.obstacles import Obstacle

GOAL_POSE = "goal_pose"
NEARER_M = 0.05  # smallest decrease of the distance that counts as progress
#: Duration of zero commands after a goal has ended early.
STOPPING_S = 0.5
#: How long a reached goal is held after the last client of the actions has gone, s.
_LEFT_S, _LOOK_S = 1.0, 0.25  # and the period of looking for clients
MAX_POSES = 10_000  # of a path
POSE_RESTARTED = "The vehicle's own pose began again, such as by a reset of its board: its place is uncertain."
DOUBTED = "The vehicle's place is unknown: its bridge doubts the reported motion, and its diagnostics say why."
_FARTHEST_M = 1e6
_ORIGIN: Placed = (0.0, 0.0, 0.0), IDENTITY


STILL = GuideStep()


class GoalOutcome(NamedTuple):
    """Outcome of a goal."""

    code: GoalError
    message: str

    @property
    def end(self) -> str:
        """Name of the goal handle's method for this outcome."""
        return {GoalError.NONE: "succeed", GoalError.CANCELED: "canceled"}.get(self.code, "abort")


@dataclass(eq=False)
class Goal:
    """Goal, from its arrival to its outcome."""

    name: str
    request: Any
    handle: Any  # None for a goal from the topic
    began_s: float
    outcome: Any = field(default_factory=Future)  # Future of a GoalOutcome


@dataclass(frozen=True, slots=True)
class ActionKind:
    """Action: its type, the poses in its goals, and the factory of their guides."""

    type: Any
    poses: Callable[[Any], list[PoseStamped]]
    guide: Callable[[Any, list[Waypoint]], Guide]


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
        self._node, self._parameters, self._flies = node, parameters, flies
        self._frames = FrameTree(node)
        self._odometry, self._use_odometry, self._on_goal = TopicStream(node, Odometry, "odom"), on_odometry, on_goal
        self._errors, self._outcomes = ErrorLog(node), LogLimiter()
        self._measured: VehiclePose | None = None
        self._frame, self._received_s = "", -math.inf  # of the odometry
        self._was_located = self._is_doubted = False  # whether the variance of its x was known, and is not any more
        self._ground = guides.Ground()
        self._knows_restarts = False  # whether ODOM_RESTARTS was reported
        self._has_restarted = False  # while the current goal is followed
        self._is_held, self._helm_s, self._helms = False, -math.inf, set[str]()
        self._fence: PolygonStamped | None = None  # of the vehicle's bridge
        self._next: Goal | None = None  # pending until its prerequisites are met, then it replaces the current one
        self._goal: Goal | None = None
        self._guide: Guide | None = None  # kept after its goal was reached, to hold it
        # Of the goal: whether it came from the topic, when it last had a client, and when this was looked up, s.
        self._is_from_topic, self._attended_s, self._looked_s = False, -math.inf, -math.inf
        # At the last progress: m to go, time, and what was waited for.
        self._nearest, self._nearer_s, self._waits_for = math.inf, -math.inf, ""
        self._stop_until_s = -math.inf
        #: State, and the reason for it.
        self.state = ("idle", "there is no goal")
        subscribe(node, Bool, "held", self._on_held, latched())
        subscribe(node, PolygonStamped, FENCE, self._on_fence, latched())
        subscribe(node, UInt32, ODOM_RESTARTS, self._on_restart, latched())
        subscribe(node, PoseStamped, GOAL_POSE, self._on_goal_pose, 1)
        if flies:
            subscribe(node, Bool, "flying", self._on_flying, latched())
        self._heights = [TopicStream(node, *each) for each in ((PointStamped, "height"), (Range, "range")) if flies]
        self._kinds = self._flying_kinds() if flies else self._driving_kinds()
        self._servers = [
            ActionServer(
                node,
                kind.type,
                name,
                functools.partial(self._execute, name),
                cancel_callback=lambda _: CancelResponse.ACCEPT,
            )
            for name, kind in self._kinds.items()
        ]

    def destroy(self) -> None:
        """Destroy the action servers. To be called before the node is destroyed."""
        for server in self._servers:
            server.destroy()
        self._servers = []

    # Actions.

    def _driving_kinds(self, way: Any = guides.DriveGuide) -> dict[str, ActionKind]:
        def along(request: Any, points: list[Waypoint]) -> Guide:
            tolerance, speed = getattr(request, "tolerance", 0.0), getattr(request, "speed", 0.0)  # not in Nav2's
            guide: Guide = way(self._parameters, self._parameters.waypoints(tolerance, speed), points)
            return guide

        return {
            "go_to": ActionKind(GoTo, lambda request: [request.pose], along),
            "follow_path": ActionKind(FollowPath, _poses_of_path, along),
            **_kinds_of_nav2(along),
        }

    def _flying_kinds(self) -> Mapping[str, ActionKind]:
        def take_off(request: Any, _: list[Waypoint]) -> Guide:
            service = None if self._ground.is_flying else self._service("takeoff")
            return guides.TakeOffGuide(self._parameters, request.height, self._ground, service)

        def land(_: Any, __: list[Waypoint]) -> Guide:
            return guides.LandGuide(self._parameters, self._ground, self._service("land"))

        return {
            "take_off": ActionKind(TakeOff, lambda _: [], take_off),
            "land": ActionKind(Land, lambda _: [], land),
            **self._driving_kinds(guides.FlightGuide),
        }

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
        self._measured, self._received_s = measured, time.monotonic()
        self._frame = message.header.frame_id
        is_located = message.pose.covariance[0] < UNKNOWN_VARIANCE
        self._was_located |= is_located
        self._is_doubted = self._was_located and not is_located
        heights = [_height_in(each.take(), message.header.stamp.sec) for each in self._heights]
        height = next((each for each in heights if each is not None), None)
        self._ground.seen(float(measured.position[2]), height)

    def _on_held(self, message: Bool) -> None:
        self._is_held = message.data

    def _on_fence(self, message: PolygonStamped) -> None:
        self._fence = message

    def _on_restart(self, _: UInt32) -> None:
        """Handle a restart of the pose, or of the bridge, which reports its count again and may begin at 0, too."""
        lands = isinstance(self._guide, guides.LandGuide)
        self._has_restarted |= self._guide is not None and not lands and self._knows_restarts
        self._knows_restarts = True

    def _on_flying(self, message: Bool) -> None:
        self._ground.is_flying = message.data

    def _on_helm(self, _: TwistStamped) -> None:
        self._helm_s = time.monotonic()

    def _listen_for_helms(self) -> None:
        """Subscribe to the helm topics of bridges that have appeared."""
        for topic, types in self._node.get_topic_names_and_types():
            if "geometry_msgs/msg/TwistStamped" in types and topic not in self._helms and self._is_ours(topic, "helm"):
                self._helms.add(topic)
                subscribe(self._node, TwistStamped, topic, self._on_helm, 1)

    def _on_goal_pose(self, message: PoseStamped) -> None:
        goal = Goal("go_to", GoTo.Goal(pose=message), None, time.monotonic())
        goal.outcome.add_done_callback(lambda future: self._log(goal, future.result()))
        self._receive(goal)

    async def _execute(self, name: str, handle: Any) -> Any:
        goal = Goal(name, handle.request, handle, time.monotonic())
        self._receive(goal)
        outcome: GoalOutcome = await goal.outcome
        getattr(handle, outcome.end)()
        self._log(goal, outcome)
        kind = self._kinds[name].type.Result
        code = outcome.code and getattr(kind, "UNKNOWN", outcome.code)  # Nav2's results have codes of their own
        return _filled(kind, message=outcome.message, error_msg=outcome.message, error_code=int(code))

    def _log(self, goal: Goal, outcome: GoalOutcome) -> None:
        line = self._outcomes.admit(f"{goal.name}: {outcome.message}")
        is_failure = outcome.end == "abort" and outcome.code is not GoalError.REPLACED
        if line and is_failure:  # two calls, since rclpy ties each line of code to one severity
            self._node.get_logger().warning(line)
        elif line:
            self._node.get_logger().info(line)

    def _receive(self, goal: Goal) -> None:
        self._listen_for_helms()
        if problem := _problem_with(goal.request, self._kinds[goal.name].poses(goal.request)):
            _end(goal, GoalError.INVALID, problem)
            return
        if self._next:
            _end(self._next, GoalError.REPLACED, f"Replaced by another goal: {goal.name}.")
        self._next = goal
        self._on_goal()

    # Execution.

    def _is_left(self, now_s: float) -> bool:
        """Return whether no program and no page is there any more for a goal that was reached, and is held.

        A held goal is no command: a drone that nobody flies has to land (`limits.land_unattended`).
        """
        if self._goal:
            self._attended_s = now_s
        elif now_s >= self._looked_s + _LOOK_S:
            self._looked_s, node = now_s, self._node
            has_client = any(count_clients(node, f"{name}/_action/send_goal") for name in self._kinds)
            if has_client or (self._is_from_topic and node.count_publishers(GOAL_POSE)):
                self._attended_s = now_s
        return now_s - self._attended_s > _LEFT_S

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to do until a goal arrives."""
        return self._next is None and self._guide is None and time.monotonic() >= self._stop_until_s

    def step(self) -> GuideStep | None:
        """Return the current step, or None to publish no command, so that other nodes can steer."""
        now_s = time.monotonic()
        if message := self._odometry.take():
            self._on_odometry(message)
        self._begin_next(now_s)
        if self._guide is None:
            return STILL if now_s < self._stop_until_s else None
        if self._goal and self._goal.handle and self._goal.handle.is_cancel_requested:
            return self._give_up(GoalError.CANCELED, "Canceled.", now_s)
        if self._is_left(now_s):
            self._guide = None
            self.state = ("idle", "the client of the last goal has gone")
            return None
        assert self._measured
        try:
            if self._has_restarted:
                raise GoalFailedError(GoalError.POSE_RESTARTED, POSE_RESTARTED)
            self._check_obstacles(self._guide, now_s)
            if self._silent_s(now_s) > self._parameters.odometry_timeout:
                step = GuideStep(waiting_for="odometry", commands=self._guide.steers)
            else:
                step = self._guide.step(now_s, self._measured)
            self._check_progress(step, now_s)
        except GoalFailedError as error:
            return self._give_up(error.code, str(error), now_s)
        if self._goal:
            self._follow_up(self._goal, step)
        if not step.commands:
            return None
        if self._guide is None:
            self._stop_until_s = now_s + STOPPING_S
        return step if self._guide else STILL

    def _begin_next(self, now_s: float) -> None:
        """Replace the current goal by the pending one once that can be followed."""
        goal = self._next
        if goal is None:
            return
        if goal.handle and goal.handle.is_cancel_requested:
            self._next = None
            _end(goal, GoalError.CANCELED, "Canceled.")
            return
        is_late = now_s - goal.began_s > self._parameters.patience
        try:
            missing, guide = self._guide_to(goal)
            if guide:
                self._check_obstacles(guide, now_s)
        except GoalFailedError as error:
            self._next = None
            _end(goal, error.code, str(error))
            return
        if guide is None:
            if is_late:
                self._next = None
                _end(goal, GoalError.NO_ODOMETRY, f"No {missing} was received within {self._parameters.patience:g} s.")
            elif goal.handle:
                self._publish_feedback(goal, GuideStep(waiting_for=missing))
            return
        self._next = None
        if self._goal:
            if (goal.name, goal.request) == (self._goal.name, self._goal.request):  # sent again by an impatient client
                guide = self._guide
            _end(self._goal, GoalError.REPLACED, f"Replaced by another goal: {goal.name}.")
        self._goal, self._guide, self._is_from_topic = goal, guide, goal.handle is None
        self._nearest, self._has_restarted = math.inf, False
        self.state = (goal.name, "begins")

    def _guide_to(self, goal: Goal) -> tuple[str, Guide | None]:
        """Return the missing prerequisite of a goal, or an empty string and its guide. Raises GoalFailedError."""
        if self._measured is None:
            return "odometry", None
        kind = self._kinds[goal.name]
        poses = kind.poses(goal.request)
        origins: dict[str, Placed] = {}
        for frame in {pose.header.frame_id for pose in poses}:
            is_own = frame in ("", self._frame)
            origin = _ORIGIN if is_own else self._frames.seen_from(self._frame, frame)
            if origin is None:
                return f"transform from {frame} to {self._frame}", None
            origins[frame] = origin
        points = [self._point_of(pose, origins[pose.header.frame_id]) for pose in poses]
        self._check_fence(points)
        return "", kind.guide(goal.request, points)

    def _check_fence(self, points: Iterable[Waypoint]) -> None:
        """Raise GoalFailedError for a point outside of the bridge's fence, which the vehicle can't reach."""
        if self._fence is None or self._fence.header.frame_id != self._frame:
            return
        corners = [(corner.x, corner.y) for corner in self._fence.polygon.points]
        for point in points:
            x, y = point.x or 0.0, point.y or 0.0
            sides = zip(corners, [*corners[1:], *corners[:1]], strict=True)
            if any((bx - ax) * (y - ay) < (by - ay) * (x - ax) for (ax, ay), (bx, by) in sides):
                lowest, highest = (tuple(map(end, zip(*corners, strict=True))) for end in (min, max))
                reach = f"from ({lowest[0]:g}, {lowest[1]:g}) to ({highest[0]:g}, {highest[1]:g})"
                raise GoalFailedError(
                    GoalError.INVALID,
                    f"{point} is outside of the fence of the vehicle's bridge, which reaches {reach} m.",
                )

    def _point_of(self, stamped: PoseStamped, origin: Placed) -> Waypoint:
        """Transform a pose into the odometry frame. `origin` is the pose of its own frame there.

        A z of NaN is the vehicle's present height.
        """
        assert self._measured
        at, own = stamped.pose.position, unit_quaternion(stamped.pose.orientation)
        (x, y, z), turned = origin
        keeps_height = math.isnan(at.z)
        dx, dy, dz = rotated(turned, at.x, at.y, 0.0 if keeps_height else at.z)
        yaw = euler_from_quaternion(multiplied(turned, own))[2] if own else None
        height = float(self._measured.position[2]) if keeps_height else z + dz
        return Waypoint(x + dx, y + dy, height if self._flies else None, yaw)

    def _check_obstacles(self, guide: Guide, now_s: float) -> None:
        """Raise GoalFailedError while a guide can't be followed: no odometry, a hold, or a person at the helm."""
        if self._silent_s(now_s) > self._parameters.patience:
            raise GoalFailedError(
                GoalError.NO_ODOMETRY, f"No odometry was received for {self._parameters.patience:g} s."
            )
        if self._is_doubted and not isinstance(guide, guides.LandGuide):
            raise GoalFailedError(GoalError.NO_ODOMETRY, DOUBTED)
        if guide.steers and self._is_held:
            raise GoalFailedError(GoalError.HELD, f"The vehicle is held: {Obstacle.HOLD.remedy()}.")
        if guide.steers and now_s - self._helm_s < HELM_ENDS_AFTER_S:
            raise GoalFailedError(GoalError.HELD, Obstacle.HELM.sentence())
        if isinstance(guide, guides.FlightGuide) and self._ground.is_flying is False and self._service("takeoff"):
            raise GoalFailedError(GoalError.REFUSED, Obstacle.GROUNDED.sentence())

    def _silent_s(self, now_s: float) -> float:
        """Return the age of the last odometry, s, not counting a stall, whose messages are still to be handled."""
        return min(now_s - self._received_s, PROCESS.running_s())

    def _check_progress(self, step: GuideStep, now_s: float) -> None:
        """Raise GoalFailedError if a goal makes no progress for stuck_time, or waits for longer than answer_time.

        Where the distance is unknown, sinking is progress: it is that of a landing.
        """
        assert self._measured
        left = step.distance if math.isfinite(step.distance) else float(self._measured.position[2])
        is_new = self._goal is None or step.done or step.waiting_for != self._waits_for
        if is_new or left < self._nearest - NEARER_M:
            self._nearest, self._nearer_s, self._waits_for = left, now_s, step.waiting_for
        limit_s = self._parameters.answer_time if step.waiting_for else self._parameters.stuck_time
        if now_s - self._nearer_s > limit_s:
            away = f", {step.distance:.1f} m from the goal" if math.isfinite(step.distance) else ""
            cause = "a fence or another limit of the vehicle's bridge may be in the way."
            if step.waiting_for:
                cause = f"it waits for {step.waiting_for}; see the diagnostics of its bridge."
            raise GoalFailedError(GoalError.NO_PROGRESS, f"No progress for {limit_s:g} s{away}: {cause}")

    def _give_up(self, code: GoalError, message: str, now_s: float) -> GuideStep:
        goal, self._goal, self._guide, self._has_restarted = self._goal, None, None, False
        self._stop_until_s = now_s + STOPPING_S
        self.state = ("idle", message)
        if goal:
            _end(goal, code, message)
        return STILL

    def _follow_up(self, goal: Goal, step: GuideStep) -> None:
        if step.done:
            self.state = ("holding", step.done)
            self._goal = None
            if not step.commands or goal.name == "land":
                self._guide = None
                self.state = ("idle", step.done)
            _end(goal, GoalError.NONE, step.done)
            return
        self.state = (goal.name, f"waits for {step.waiting_for}" if step.waiting_for else "on the way")
        self._publish_feedback(goal, step)

    def _publish_feedback(self, goal: Goal, step: GuideStep) -> None:
        if goal.handle:
            left_s = step.time_s if math.isfinite(step.time_s) else 0.0
            feedback = {
                "distance_remaining": step.distance,
                "time_remaining": step.time_s,
                "waiting_for": step.waiting_for,
            }
            feedback["estimated_time_remaining"] = Duration(seconds=left_s).to_msg()
            goal.handle.publish_feedback(_filled(self._kinds[goal.name].type.Feedback, **feedback))


def _kinds_of_nav2(along: Callable[[Any, list[Waypoint]], Guide]) -> dict[str, ActionKind]:
    """Return the actions with Nav2's names and types, if nav2_msgs is installed. It has no wheel."""
    try:
        from nav2_msgs.action import FollowWaypoints, NavigateToPose
    except ImportError:
        return {}
    return {
        "navigate_to_pose": ActionKind(NavigateToPose, lambda request: [request.pose], along),
        "follow_waypoints": ActionKind(FollowWaypoints, lambda request: list(request.poses), along),
    }


def _filled(kind: Any, **values: Any) -> Any:
    """Return a message filled with the values for which it has fields."""
    known = kind.get_fields_and_field_types()
    return kind(**{name: value for name, value in values.items() if name in known})


def _end(goal: Goal, code: GoalError, message: str) -> None:
    goal.outcome.set_result(GoalOutcome(code, message))


def _poses_of_path(request: Any) -> list[PoseStamped]:
    """Return the poses of a path. Poses without a frame get the path's."""
    frame = request.path.header.frame_id
    for pose in request.path.poses:
        pose.header.frame_id = pose.header.frame_id or frame
    return list(request.path.poses)


def _problem_with(request: Any, poses: list[PoseStamped]) -> str:
    """Return the reason why a goal is invalid, or an empty string."""
    for name in ("tolerance", "speed", "height"):
        if not 0.0 <= getattr(request, name, 0.0) < math.inf:
            return f"{name} is {getattr(request, name)} but must be a finite number of at least 0."
    if (hasattr(request, "path") or hasattr(request, "poses")) and not 0 < len(poses) <= MAX_POSES:
        return f"The path has {len(poses)} poses but must have 1 to {MAX_POSES}."
    return next((problem for pose in poses if (problem := _problem_with_pose(pose))), "")


def _problem_with_pose(stamped: PoseStamped) -> str:
    at, q = stamped.pose.position, stamped.pose.orientation
    if not _are_within((at.x, at.y, 0.0 if math.isnan(at.z) else at.z), _FARTHEST_M):
        return f"The position is ({at.x}, {at.y}, {at.z}) but must be within {_FARTHEST_M:g} m of the origin."
    if any((q.x, q.y, q.z, q.w)) and unit_quaternion(q) is None:
        return f"The orientation is ({q.x}, {q.y}, {q.z}, {q.w}) but must have length 1, or be zero for any heading."
    return ""


def _height_in(message: Any, second: int) -> float | None:
    """Return the height above the ground, m, in a `height` or `range` that is about as new; None if it has none."""
    if message is None or abs(message.header.stamp.sec - second) > 1:
        return None
    is_height = isinstance(message, PointStamped)
    height: float = message.point.z if is_height else message.range
    least, most = (-math.inf, math.inf) if is_height else (message.min_range, message.max_range or math.inf)
    return height if least <= height < most else None


def _are_within(values: Iterable[float], limit: float) -> bool:
    return all(abs(value) <= limit for value in values)  # False for NaN
