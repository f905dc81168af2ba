# SPDX-License-Identifier: Apache-2.0
"""Conversations of a client of rosbridge, without a socket or ROS graph."""

import base64
import json
import math
from types import SimpleNamespace

import pytest
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import TwistStamped
from hypothesis import given
from hypothesis import strategies as st
from nav_msgs.msg import Odometry
from sensor_msgs.msg import Image, LaserScan

pytest.importorskip("foxglove", reason="web_bridge needs foxglove-sdk, for which rosdep has no key")

from rosbridge_talk import NOW, Talk

from drone_bridge.action import GoTo
from drone_bridge.tools.web.rosbridge import client
from drone_bridge.tools.web.rosbridge.json_messages import plain

GO_TO = {"op": "send_action_goal", "action": "/go_to", "action_type": "drone_bridge/action/GoTo"}


@pytest.fixture
def talk():
    return Talk()


def test_a_program_publishes_by_names_of_ros_1_and_2_and_without_advertising(talk):
    for kind in ("geometry_msgs/Twist", "geometry_msgs/msg/Twist"):
        assert talk.say(op="advertise", topic="/cmd_vel", type=kind) == []
    assert talk.say(op="publish", topic="/cmd_vel", msg={"linear": {"x": 1}}) == []
    ((topic, twist),) = talk.node.sent
    assert (topic, twist.linear.x, twist.angular.z) == ("/cmd_vel", 1.0, 0.0)
    assert talk.say(op="unadvertise", topic="/cmd_vel") == []
    assert talk.node.publishers == []
    assert talk.say(op="publish", topic="cmd_vel", msg={}) == []
    assert len(talk.node.sent) == 2


def test_a_header_without_stamp_gets_the_time(talk):
    stamped = {"topic": "/robot/cmd_vel_stamped", "type": "geometry_msgs/TwistStamped"}
    talk.say(op="publish", msg={}, **stamped)
    talk.say(op="publish", msg={"header": {"frame_id": "odom", "stamp": {"sec": 3}}}, **stamped)
    assert [message.header.stamp.sec for _, message in talk.node.sent] == [NOW.sec, 3]
    assert all(isinstance(message, TwistStamped) for _, message in talk.node.sent)


def test_messages_are_json_as_clients_read_them():
    scan = plain(LaserScan(ranges=[1.5, math.inf, math.nan]))
    assert scan["ranges"] == [1.5, None, None]
    assert base64.b64decode(plain(Image(data=[1, 255]))["data"]) == b"\x01\xff"
    assert plain(DiagnosticStatus(level=b"\x02"))["level"] == 2


def test_a_throttled_subscription_keeps_its_rate_and_the_least_period_counts(talk):
    def heard(now_s, number):
        talk.now_s = now_s
        talk.arrives("/scan", LaserScan(angle_min=float(number)), number)
        return [each["msg"]["angle_min"] for each in talk.heard()]

    assert talk.say(op="subscribe", id="a", topic="/scan", throttle_rate=200, type="sensor_msgs/LaserScan") == []
    assert [heard(10.0 + number / 20, number) for number in range(1, 6)] == [[1.0], [], [], [], [5.0]]
    talk.say(op="subscribe", id="b", topic="/scan")
    assert [heard(10.5 + number / 20, number) for number in (6, 7, 8)] == [[6.0], [7.0], [8.0]]
    assert talk.say(op="unsubscribe", id="b", topic="/scan") == []
    assert talk.node.subscriptions
    assert talk.say(op="unsubscribe", topic="/scan") == []
    assert not talk.node.subscriptions


def test_a_slow_client_gets_the_newest_message_of_each_topic(talk):
    talk.say(op="subscribe", topic="/scan")
    talk.say(op="subscribe", topic="/odom", type="nav_msgs/Odometry")
    for number in range(1, 200):
        talk.arrives("/scan", LaserScan(ranges=[float(number)] * 2000), number)
        talk.arrives("/odom", Odometry(child_frame_id=str(number)), number)
    assert talk.outbox._large_bytes < 20_000
    assert [each["topic"] for each in talk.heard()] == ["/scan", "/odom"]


def test_the_numbers_of_a_clients_endpoints_are_limited(talk):
    for number in range(client.MAX_PUBLISHERS):
        assert talk.say(op="advertise", topic=f"/r{number}/cmd_vel", type="geometry_msgs/Twist") == []
    (refusal,) = talk.say(op="advertise", topic="/more/cmd_vel", type="geometry_msgs/Twist")
    assert "limit of 16" in refusal["msg"]
    for number in range(client.MAX_SUBSCRIPTIONS):
        assert talk.say(op="subscribe", topic=f"/t{number}", type="std_msgs/Bool") == []
    assert "limit of 64" in talk.say(op="subscribe", topic="/more", type="std_msgs/Bool")[0]["msg"]
    for number in range(client.MAX_SUBSCRIPTIONS - 1):
        assert talk.say(op="subscribe", id=number, topic="/t0", type="std_msgs/Bool") == []
    assert "limit of 64" in talk.say(op="subscribe", id="more", topic="/t0", type="std_msgs/Bool")[0]["msg"]
    for number in range(client.MAX_GOALS):
        assert talk.say(id=number, **GO_TO) == []
    assert "limit of 8" in talk.say(id="more", **GO_TO)[0]["values"]
    talk.client.close()
    assert (talk.node.publishers, talk.node.subscriptions) == ([], [])


def test_a_program_holds_and_never_resumes(talk):
    hold = {"op": "call_service", "service": "/robot_bridge/hold", "id": "1"}
    (held,) = talk.say(args={"data": True}, **hold)
    assert (held["result"], held["values"]["success"], held["id"]) == (True, True, "1")
    for args in ({"data": False}, {}, [], None):
        (refused,) = talk.say(args=args, **hold)
        assert refused["result"] is False
        assert "can't resume" in refused["values"]
    assert [request.data for _, request in talk.called] == [True]


@pytest.mark.parametrize(
    "asked",
    [
        {"op": "publish", "topic": "/robot_bridge/helm", "type": "geometry_msgs/TwistStamped", "msg": {}},
        {"op": "advertise", "topic": "/cmd_vel_goal", "type": "geometry_msgs/Twist"},
        {"op": "advertise", "topic": "/robot_bridge/hold_wish", "type": "drone_bridge/HoldWish"},
        {"op": "call_service", "service": "/robot_bridge/set_parameters"},
        {"op": "call_service", "service": "/tello_bridge/emergency"},
        {"op": "call_service", "service": "/go_to/_action/cancel_goal"},
        {"op": "send_action_goal", "action": "/dock", "action_type": "drone_bridge/GoTo"},
    ],
)
def test_what_is_not_on_the_list_is_refused(talk, asked):
    (refusal,) = talk.say(**asked)
    assert "may not" in refusal.get("msg", refusal.get("values"))
    assert (talk.node.publishers, talk.called, talk.actions.goals) == ([], [], [])


def test_a_client_that_may_only_watch_reads_and_nothing_else():
    talk = Talk(may_change=False)
    assert talk.say(op="subscribe", topic="/odom") == []
    assert talk.say(op="call_service", service="/rosapi/topics")[0]["values"]["topics"][0] == "/cmd_vel"
    for asked in (
        {"op": "publish", "topic": "/cmd_vel", "msg": {}},
        {"op": "call_service", "service": "/robot_bridge/hold", "args": {"data": True}},
        GO_TO,
    ):
        (refusal,) = talk.say(**asked)
        assert "view-only" in refusal.get("msg", refusal.get("values"))
    assert (talk.node.publishers, talk.called, talk.actions.goals) == ([], [], [])


def test_a_goal_reports_its_way_and_its_end(talk):
    assert talk.say(id="g", feedback=True, args={"speed": 1}, **GO_TO) == []
    (sent,) = talk.actions.goals
    assert sent.goal.speed == 1.0
    talk.actions.accept(sent)
    sent.feedback(_feedback(2.0))
    assert [each["values"]["distance_remaining"] for each in talk.heard()] == [2.0]
    assert talk.say(op="cancel_action_goal", id="g", action="/go_to") == []
    assert talk.actions.canceled == ["/go_to"]
    talk.actions.end(sent, status=5)
    (end,) = talk.heard()
    assert (end["op"], end["status"], end["values"]["message"], end["id"]) == ("action_result", 5, "there", "g")
    assert talk.say(op="cancel_action_goal", id="g", action="/go_to")[0]["level"] == "error"


def _feedback(distance):
    return SimpleNamespace(feedback=GoTo.Feedback(distance_remaining=distance))


def test_goals_end_with_their_connection_except_a_landing(talk):
    talk.say(id=1, **GO_TO)
    talk.say(op="send_action_goal", id=2, action="/land", action_type="drone_bridge/Land")
    talk.say(id=3, **GO_TO)
    first, landing, late = talk.actions.goals
    talk.actions.accept(first)
    talk.actions.accept(landing)
    talk.client.close()
    assert talk.actions.canceled == ["/go_to"]
    talk.actions.accept(late)  # its controller was slow
    assert talk.actions.canceled == ["/go_to", "/go_to"]
    talk.actions.end(first)
    assert len(talk.actions.clients) == 2
    talk.actions.end(late)
    talk.actions.end(landing)
    assert talk.actions.clients == []


def test_a_goal_whose_controller_is_killed_is_answered(talk):
    talk.say(id=1, **GO_TO)
    talk.actions.accept(talk.actions.goals[0])
    for talk.actions.are_there, answers in ((False, 0), (True, 0), (False, 1)):  # its client is discovered late
        talk.client.goals.look()
        heard = talk.heard()
        assert len(heard) == answers
    assert (heard[0]["result"], heard[0]["id"]) == (False, 1)
    assert "is gone" in heard[0]["values"]
    talk.actions.end(talk.actions.goals[0])  # late
    assert talk.heard() == []


def test_a_goal_that_cannot_be_sent_leaves_no_client_behind(talk):
    (refusal,) = talk.say(frame=json.dumps({"id": 1, "args": {"pose": {"header": {"frame_id": "\ud800"}}}, **GO_TO}))
    assert (refusal["result"], talk.actions.goals) == (False, [])
    talk.client.close()
    assert talk.actions.clients == []


def test_a_goal_is_refused_while_only_clients_know_its_action(talk):
    del talk.node.served["/go_to/_action/send_goal"]  # its controller has ended, and another client waits for it
    (refusal,) = talk.say(id=1, **GO_TO)
    assert "does not exist" in refusal["values"]
    assert talk.actions.goals == []


@pytest.mark.parametrize(
    "frame",
    [
        b"\x01binary",
        "",
        "[]",
        "null",
        "[" * 100_000,
        "{}",
        '{"op": 1}',
        '{"op": "fragment", "id": "1", "data": "a", "num": 0, "total": 1}',
        '{"op": "advertise_service", "service": "/a", "type": "std_srvs/Empty"}',
        '{"op": "subscribe", "topic": "/scan", "compression": "cbor"}',
        '{"op": "subscribe", "topic": "/scan", "fragment_size": 100}',
        '{"op": "subscribe", "topic": "/scan", "throttle_rate": "fast"}',
        '{"op": "subscribe", "topic": "/scan", "id": ["a"]}',
        json.dumps({"op": "subscribe", "topic": "/scan", "id": "a" * 10_000}),
        '{"op": "subscribe", "topic": "/scan", "type": "std_msgs/Bool"}',
        '{"op": "subscribe", "topic": "/unknown"}',
        '{"op": "subscribe", "topic": "a b", "type": "std_msgs/Bool"}',
        '{"op": "advertise", "topic": "/cmd_vel", "type": "os/path"}',
        '{"op": "publish", "topic": "/cmd_vel", "msg": {"lateral": 1}}',
        '{"op": "publish", "topic": "/cmd_vel", "msg": [1]}',
        '{"op": "call_service", "service": "/robot_bridge/hold", "args": {"data": true}, "id": 1e999}',
        '{"op": "call_service", "service": "/rosapi/get_param", "args": {"name": "a"}}',
        '{"op": "call_service", "service": "/rosapi/topic_type", "args": [1]}',
        '{"op": "send_action_goal", "action": "/go_to", "action_type": "drone_bridge/Land"}',
        '{"op": "\\ud800", "id": "\\ud800", "service": 1}',
    ],
    ids=lambda frame: str(frame)[:60],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(talk, frame):
    (refusal,) = talk.say(frame)
    assert refusal.get("level") == "error" or refusal["result"] is False
    assert 10 < len(refusal.get("msg", refusal.get("values"))) < 1000
    assert (talk.node.sent, talk.node.subscriptions, talk.called, talk.actions.goals) == ([], [], [], [])


_NAMES = ("/cmd_vel", "/scan", "geometry_msgs/Twist", "/robot_bridge/hold", "/go_to", "/rosapi/topic_type")
_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["/cmd_vel", "/scan"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
_FIELDS = ("id", "topic", "type", "msg", "service", "args", "action", "action_type", "throttle_rate", "queue_length")


@given(
    asked=st.fixed_dictionaries(
        {"op": st.sampled_from(["subscribe", "publish", "advertise", "call_service", "send_action_goal", "status"])},
        optional=dict.fromkeys(_FIELDS, _VALUES),
    )
)
def test_any_request_is_followed_or_refused(asked):
    talk = Talk()
    answers = talk.say(**asked)
    assert len(answers) <= 1
    assert bool(talk.node.publishers) == (not answers and asked["op"] in ("advertise", "publish"))
    talk.client.close()
    assert (talk.node.publishers, talk.node.subscriptions) == ([], [])
