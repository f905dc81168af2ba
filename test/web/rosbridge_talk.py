# SPDX-License-Identifier: Apache-2.0
"""Conversation with a RosbridgeClient: JSON in, JSON out, with a graph, services and actions played by the test."""

import json
from concurrent.futures import Future
from types import SimpleNamespace

from builtin_interfaces.msg import Time
from rclpy.serialization import serialize_message
from std_srvs.srv import SetBool

from drone_bridge.action import GoTo
from drone_bridge.tools.web.client_goals import ClientGoals
from drone_bridge.tools.web.outbox import Outbox
from drone_bridge.tools.web.rosbridge.client import RosbridgeClient

TOPICS = {"/cmd_vel": "geometry_msgs/msg/Twist", "/scan": "sensor_msgs/msg/LaserScan", "/odom": "nav_msgs/msg/Odometry"}
SERVICES = {
    "/robot_bridge/hold": "std_srvs/srv/SetBool",
    "/go_to/_action/send_goal": "drone_bridge/action/GoTo_SendGoal",
    "/land/_action/send_goal": "drone_bridge/action/Land_SendGoal",
}
NOW = Time(sec=7, nanosec=5)


class Graph:
    """Node whose endpoints are noted: publishers and subscriptions that exist, and messages."""

    def __init__(self):
        self.publishers, self.subscriptions, self.sent = [], [], []
        self.served = dict(SERVICES)

    def get_name(self):
        return "web_bridge"

    def get_node_names_and_namespaces(self):
        return [("robot", "/"), ("web_bridge", "/")]

    def get_service_names_and_types_by_node(self, *_):
        return [(name, [kind]) for name, kind in self.served.items()]

    def resolve_topic_name(self, name):
        if " " in name:
            raise ValueError(name)
        return name if name.startswith("/") else f"/{name}"

    def get_topic_names_and_types(self):
        return [(name, [kind]) for name, kind in TOPICS.items()]

    def get_service_names_and_types(self):
        return [(name, [kind]) for name, kind in SERVICES.items()]

    def get_publishers_info_by_topic(self, _):
        return []

    def get_clock(self):
        return SimpleNamespace(now=lambda: SimpleNamespace(to_msg=lambda: NOW))

    def create_publisher(self, kind, topic, _):
        publish = lambda message: self.sent.append((topic, message))  # noqa: E731
        self.publishers.append(made := SimpleNamespace(topic=topic, msg_type=kind, publish=publish))
        return made

    def destroy_publisher(self, publisher):
        self.publishers.remove(publisher)

    def create_subscription(self, kind, topic, take, profile, *, raw):
        assert raw
        self.subscriptions.append(made := SimpleNamespace(topic=topic, take=take))
        return made

    def destroy_subscription(self, subscription):
        self.subscriptions.remove(subscription)


class Actions:
    """Action servers that respond when the test says so."""

    def __init__(self):
        self.goals, self.canceled, self.clients, self.are_there = [], [], [], False

    def make(self, _, kind, name):
        def send(goal, on_feedback):
            serialize_message(goal)
            self.goals.append(sent := SimpleNamespace(name=name, goal=goal, feedback=on_feedback, response=Future()))
            return sent.response

        there, destroy = lambda: self.are_there, lambda: self.clients.remove(client)
        client = SimpleNamespace(name=name, send_goal_async=send, destroy=destroy, server_is_ready=there)
        self.clients.append(client)
        return client

    def accept(self, sent):
        sent.result = Future()
        cancel = lambda: self.canceled.append(sent.name)  # noqa: E731
        handle = SimpleNamespace(accepted=True, get_result_async=lambda: sent.result, cancel_goal_async=cancel)
        sent.response.set_result(handle)

    def end(self, sent, status=4):
        sent.result.set_result(SimpleNamespace(status=status, result=GoTo.Result(message="there")))


class Talk:
    """One client."""

    def __init__(self, *, may_change=True, response=None):
        self.node, self.actions, self.called = Graph(), Actions(), []
        self.response = response or SetBool.Response(success=True)
        self.outbox, self.now_s = Outbox(lambda: None, large_bytes=0), 0.0
        inbox = SimpleNamespace(put=lambda work: work())
        goals = ClientGoals(self.node, inbox, self.actions.make)
        self.client = RosbridgeClient(
            self.node,
            self,
            goals,
            self.outbox,
            may_change=may_change,
            run=lambda work: work(),
            now_s=lambda: self.now_s,
        )

    def call(self, service, _, request):
        self.called.append((service, request))
        return self.response

    def say(self, frame=None, **asked):
        """Send a request or a frame, and return all answers."""
        self.client.receive(json.dumps(asked) if frame is None else frame)
        return self.heard()

    def heard(self):
        """Return what is due for the client."""
        texts = [self.client.text(waiting) for waiting in iter(self.outbox.pop, None)]
        return [json.loads(text, parse_constant=_refuse) for text in texts]

    def arrives(self, topic, message, number=0):
        """Let a message arrive at the node's subscriptions."""
        data = serialize_message(message)
        for subscription in self.node.subscriptions:
            if subscription.topic == topic:
                subscription.take(data, {"source_timestamp": number})


def _refuse(name):
    raise AssertionError(f"{name} is not JSON")
