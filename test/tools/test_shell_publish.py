# SPDX-License-Identifier: Apache-2.0
"""`drone-bridge topic pub` and `service call` without DDS: how they end."""

from types import SimpleNamespace

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from geometry_msgs.msg import Twist
from std_srvs.srv import Trigger

from drone_bridge.msg import HoldStatus
from drone_bridge.robots.tello import Tello
from drone_bridge.ros.hold import hold_services
from drone_bridge.ros.hold.hold_services import CommandRefusals
from drone_bridge.tools.shell import node as shell_node
from drone_bridge.tools.shell import topic


class Publisher:
    """A publisher whose subscriber hangs, so that a wait for its acknowledgement has no end of its own."""

    topic_name, published, timeouts = "/told", (), ()

    def get_subscription_count(self):
        return 1

    def publish(self, message):
        self.published += (message.data,)

    def wait_for_all_acked(self, timeout=None):
        self.timeouts += (timeout,)


def test_a_hanging_subscriber_does_not_block_the_publisher(monkeypatch, capsys):
    publisher = Publisher()
    node = SimpleNamespace(
        create_publisher=lambda kind, name, depth: publisher,
        get_subscriptions_info_by_topic=lambda topic: [],
        count_subscribers=lambda topic: topic == "/tell",
        create_subscription=lambda *_: None,
        resolve_topic_name=lambda name: f"/{name.strip('/')}",
        get_topic_names_and_types=lambda: [("/told", []), ("/tell", []), ("/tolds", [])],
    )
    monkeypatch.setattr(topic, "spin_until", lambda node, condition, timeout_s: condition())
    words = SimpleNamespace(
        rate=1.0, once=True, times=0, topic="told", type="std_msgs/msg/String", message="{data: once}"
    )
    assert topic._publish(node, words) == 0
    assert publisher.published == ("once",)
    assert "No node subscribes to /told, did you mean '/tell'?" in capsys.readouterr().err
    (timeout,) = publisher.timeouts
    assert timeout is not None


def test_a_topic_without_subscribers_is_reported_after_the_time_of_discovery(monkeypatch):
    now_s = [100.0]
    monkeypatch.setattr(hold_services, "elapsed_s", lambda: now_s[0])
    node = SimpleNamespace(count_subscribers=lambda _: 0, create_subscription=lambda *_: 0, resolve_topic_name=str)
    refusals = CommandRefusals(node, Twist, "cmd_vel")
    said = []
    for now_s[0] in range(101, 107):
        said += refusals.changes() or [""]
    assert said == ["", "", "No node subscribes to cmd_vel.", "", "", ""]


def test_a_subscriber_is_named_with_its_link_and_its_hold():
    takers, publishers = {}, []
    subscriber = SimpleNamespace(node_namespace="/d1", node_name="robot_bridge", topic_type="geometry_msgs/msg/Twist")
    node = SimpleNamespace(
        get_subscriptions_info_by_topic=lambda topic: [subscriber],
        count_subscribers=lambda topic: 1,
        create_subscription=lambda kind, topic, take, qos: takers.update({topic: take}),
        resolve_topic_name=lambda name: f"/{name}",
        get_fully_qualified_name=lambda: "/driver",
        get_publishers_info_by_topic=lambda topic: publishers,
    )
    refusals = CommandRefusals(node, Twist, "cmd_vel")

    def report(message, silence):
        values = [KeyValue(key="peer_silent_s", value=silence)]
        status = DiagnosticStatus(name="d1/robot_bridge: link", message=message, values=values)
        takers["/diagnostics"](DiagnosticArray(status=[status]))
        return refusals.changes()

    assert refusals.changes() == []
    takers["/d1/robot_bridge/hold_status"](HoldStatus())
    assert refusals.changes() == [], "its link is not known yet"
    reason = "waiting for a peer; there is no link: connection refused"
    assert report(reason, "") == [f"/d1/robot_bridge: It has no link: {reason}."]
    assert report(reason, "") == []
    assert report("connected", "0.1") == ["/d1/robot_bridge: It follows commands."]
    for name, followed in (("driver", "commands"), ("joy", "commands on /cmd_vel by /driver or /joy")):
        publishers.append(SimpleNamespace(node_namespace="/", node_name=name))
        takers["/d1/robot_bridge/hold_status"](HoldStatus(commander="/cmd_vel"))
        refusals.changes()
        assert refusals._said["/d1/robot_bridge"] == f"It follows {followed}."
    takers["/d1/robot_bridge/hold_status"](HoldStatus(held=True, reason="Anne pressed STOP"))
    (held,) = refusals.changes()
    assert "Anne pressed STOP" in held
    assert refusals.refusal() in held
    subscriber.node_name = "another_bridge"  # the held one has gone
    assert refusals.refusal() == ""
    subscriber.topic_type = "geometry_msgs/msg/TwistStamped"
    (other_type,) = refusals.changes()
    assert other_type.startswith(
        "/d1/another_bridge: It subscribes to /cmd_vel with type geometry_msgs/msg/TwistStamped"
    )
    assert refusals.changes() == []


def test_a_call_waits_longer_than_a_takeoff_takes(monkeypatch):
    waited_s, future = [], SimpleNamespace(done=lambda: True, result=lambda: "it flies")
    client = SimpleNamespace(wait_for_service=lambda timeout_s: True, call_async=lambda request: future)
    node = SimpleNamespace(create_client=lambda *_: client, destroy_client=id, resolve_topic_name=str)
    monkeypatch.setattr(shell_node, "types_of", lambda *_: ["std_srvs/srv/Trigger"])
    monkeypatch.setattr(shell_node, "spin_until", lambda _, condition, limit_s: waited_s.append(limit_s) or condition())
    assert shell_node.call(node, Trigger, "/takeoff", None) == "it flies"
    assert waited_s[0] > max(request.timeout_s for request in Tello.requests.values())
