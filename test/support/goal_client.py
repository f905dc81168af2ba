# SPDX-License-Identifier: Apache-2.0
"""Sends goals to a controller, and waits for what becomes of them."""

import threading

from action_msgs.msg import GoalStatus
from geometry_msgs.msg import PoseStamped
from processes import TIMEOUT_S
from rclpy.action import ActionClient
from ros_session import Inbox

from drone_bridge.action import FollowPath, GoTo, Land, TakeOff

TYPES = {"take_off": TakeOff, "land": Land, "go_to": GoTo, "follow_path": FollowPath}
ENDS = {
    GoalStatus.STATUS_SUCCEEDED: "succeeded",
    GoalStatus.STATUS_ABORTED: "aborted",
    GoalStatus.STATUS_CANCELED: "canceled",
}


def pose_at(x, y, z=0.0, frame=""):
    pose = PoseStamped()
    pose.header.frame_id = frame
    pose.pose.position.x, pose.pose.position.y, pose.pose.position.z = float(x), float(y), float(z)
    return pose


class Sent:
    """A goal that was accepted."""

    def __init__(self, handle, feedback):
        self._handle, self.feedback = handle, feedback
        self._result = handle.get_result_async()

    def cancel(self):
        self._handle.cancel_goal_async()

    def end(self, timeout_s=TIMEOUT_S):
        """Return how it ended, and the sentence."""
        response = wait_for(self._result, timeout_s)
        return ENDS[response.status], response.result.message


def wait_for(future, timeout_s=TIMEOUT_S):
    done = threading.Event()
    future.add_done_callback(lambda _: done.set())
    assert done.wait(timeout_s), f"no answer within {timeout_s} s"
    return future.result()


class Goals:
    """The actions of a namespace."""

    def __init__(self, ros, namespace=""):
        self._ros, self._namespace, self._clients = ros, namespace, {}

    def send(self, name, **fields):
        if name not in self._clients:
            # In the executor's thread: rclpy adds it to the node before it is whole.
            args = self._ros.node, TYPES[name], f"{self._namespace}{name}"
            self._clients[name] = wait_for(self._ros.create_task(ActionClient, *args))
        assert self._clients[name].wait_for_server(TIMEOUT_S), f"nobody serves {name}"
        feedback = Inbox()
        goal = TYPES[name].Goal(**fields)
        handle = wait_for(self._clients[name].send_goal_async(goal, lambda message: feedback.put(message.feedback)))
        assert handle.accepted
        return Sent(handle, feedback)
