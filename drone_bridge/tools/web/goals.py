# SPDX-License-Identifier: Apache-2.0
"""Goals set on the page, sent to the action `go_to` if it exists, else to the topic `goal_pose`."""

import importlib
import itertools
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from action_msgs.msg import GoalStatus
from geometry_msgs.msg import PoseStamped
from rclpy.node import Node

from drone_bridge.ros.distributions import count_services
from drone_bridge.tools.web.client_goals import ClientGoals
from drone_bridge.wire.json_numbers import is_number

ACTION, ACTION_TYPE = "go_to", "drone_bridge/action/GoTo_SendGoal"
TOPIC, TOPIC_TYPE = "goal_pose", "geometry_msgs/msg/PoseStamped"
#: Odometry, without which a vehicle can't reach a place.
ODOMETRY, ODOMETRY_TYPE = "odom", "nav_msgs/msg/Odometry"
FEEDBACK_PERIOD_S = 0.5

Tell = Callable[[str, dict[str, Any]], None]
"""Callback with the topic of a vehicle and the state of its goal, on the executor's thread."""


@dataclass(frozen=True, slots=True)
class Place:
    """Target pose in a tf frame. Without a yaw, the heading is free."""

    frame: str
    x: float
    y: float
    z: float
    yaw: float | None = None

    @classmethod
    def of(cls, request: Mapping[str, Any]) -> "Place":
        """Read a request of a page. Raises ValueError with a sentence."""
        frame = request.get("frame")
        numbers: list[float | None] = []
        if not isinstance(frame, str) or len(frame) > 200:
            raise ValueError("A goal needs a frame.")
        for name in ("x", "y", "z", "yaw"):
            value: Any = request.get(name)
            if name == "yaw" and value is None:
                numbers.append(None)
            elif not is_number(value) or not abs(value) < 1e6:
                raise ValueError(f"{name} of a goal is {value!r:.40}, not a number of metres or radians.")
            else:
                numbers.append(float(value))
        x, y, z, yaw = numbers
        return cls(frame, x or 0.0, y or 0.0, z or 0.0, yaw)

    def pose(self, node: Node, *, needs_heading: bool) -> PoseStamped:
        pose = PoseStamped()
        pose.header.frame_id = self.frame
        pose.header.stamp = node.get_clock().now().to_msg()
        pose.pose.position.x, pose.pose.position.y, pose.pose.position.z = self.x, self.y, self.z
        free = 1.0 if needs_heading else 0.0
        pose.pose.orientation.w = free if self.yaw is None else math.cos(self.yaw / 2)
        pose.pose.orientation.z = 0.0 if self.yaw is None else math.sin(self.yaw / 2)
        return pose


def goal_of(namespace: str, services: Mapping[str, Sequence[str]], node: Node) -> str:
    """Return the action or topic that accepts goals for the vehicle of a namespace; "" without, or without odometry."""
    publishers = node.get_publishers_info_by_topic(f"{namespace}/{ODOMETRY}")
    if not any(each.topic_type == ODOMETRY_TYPE for each in publishers):
        return ""
    action, topic = f"{namespace}/{ACTION}", f"{namespace}/{TOPIC}"
    request = f"{action}/_action/send_goal"  # listed also if only its clients exist
    if ACTION_TYPE in services.get(request, ()) and count_services(node, request):
        return action
    subscribers = node.get_subscriptions_info_by_topic(topic)
    return topic if any(each.topic_type == TOPIC_TYPE for each in subscribers) else ""


class Goals:
    """Sends goals and reports their state. For the executor's thread."""

    def __init__(self, node: Node, goals: ClientGoals, tell: Tell) -> None:
        self._node, self._goals, self._send = node, goals, tell
        self._publishers: dict[str, Any] = {}
        self._newest: dict[str, int] = {}  # number of the newest goal, by the vehicle's topic
        self._numbers = itertools.count(1)
        self._told_s: dict[str, float] = {}

    def show(self, names: set[str]) -> None:
        """Set the actions of the vehicles that a person sees on a page, by their names. To be called regularly.

        Each has a client, as its controller holds a reached goal only while a client is there. Others have one while a
        goal from here is followed.
        """
        shown = {name for name in names if name.endswith(f"/{ACTION}")}
        for name in shown:
            self._goals.use(name, _go_to())
        self._goals.keep(shown)
        self._goals.look()

    def set(self, vehicle: str, name: str, place: Place) -> None:
        """Send a goal to an action or a topic."""
        if not name:
            self._send(vehicle, {"state": "refused", "text": "Nothing accepts goals for this vehicle."})
        elif name.endswith(TOPIC):
            if name not in self._publishers:
                self._publishers[name] = self._node.create_publisher(PoseStamped, name, 1)
            self._publishers[name].publish(place.pose(self._node, needs_heading=True))
            self._send(vehicle, {"state": "sent", "text": f"Sent on {name}; this topic reports no progress."})
        else:
            self._send_goal(vehicle, name, place)

    def cancel(self, vehicle: str) -> None:
        """Cancel the goals of a vehicle, also one whose controller has not responded yet."""
        goals = {number: goal for (of, number), goal in self._goals.sent.items() if of == vehicle}
        newest = goals.get(self._newest.get(vehicle, 0))
        for goal in goals.values():
            goal.cancel()
        if newest and not newest.handle:
            del self._newest[vehicle]  # whatever becomes of it
            self._send(vehicle, {"state": "ended", "text": "Canceled."})
        elif not newest:
            self._send(vehicle, {"state": "ended", "text": "There is no goal to cancel."})

    def _send_goal(self, vehicle: str, name: str, place: Place) -> None:
        before = self._goals.sent.get((vehicle, self._newest.get(vehicle)))
        if before and not before.handle:  # else its controller ends it
            before.cancel()
        number = self._newest[vehicle] = next(self._numbers)

        def on_end(ended: Any) -> None:
            if self._newest.get(vehicle) != number:
                return  # a newer goal has replaced it
            if isinstance(ended, BaseException):
                self._send(vehicle, {"state": "refused", "text": str(ended)})
            else:
                is_done = ended.status == GoalStatus.STATUS_SUCCEEDED
                self._send(vehicle, {"state": "done" if is_done else "ended", "text": ended.result.message})

        def on_feedback(feedback: Any) -> None:
            if self._newest.get(vehicle) == number:
                self._on_feedback(vehicle, feedback)

        goal = _go_to().Goal(pose=place.pose(self._node, needs_heading=False))
        self._goals.send((vehicle, number), name, _go_to(), goal, on_feedback=on_feedback, on_end=on_end)

    def _on_feedback(self, vehicle: str, feedback: Any) -> None:
        now_s = time.monotonic()
        if now_s - self._told_s.get(vehicle, -math.inf) < FEEDBACK_PERIOD_S:
            return
        self._told_s[vehicle] = now_s
        left_s = feedback.time_remaining
        distance = feedback.distance_remaining
        progress = {"distance": distance if math.isfinite(distance) else None}
        progress["left_s"] = left_s if math.isfinite(left_s) else None
        text = f"waiting for {feedback.waiting_for}" if feedback.waiting_for else "going"
        self._send(vehicle, {"state": "going", "text": text, **progress})


def _go_to() -> Any:
    return importlib.import_module("drone_bridge.action").GoTo
