# SPDX-License-Identifier: Apache-2.0
"""Values from viewers: numbers and lists in JSON, which does not distinguish 1 from 1.0, or types of lists; calls."""

import asyncio
import contextlib
import json
import math
from types import SimpleNamespace
from unittest.mock import AsyncMock, Mock

import pytest
from rclpy.parameter import Parameter
from rclpy.task import Future

pytest.importorskip("foxglove", reason="rosdep has no key for it")

from foxglove.websocket import PlaybackCommand
from std_srvs.srv import SetBool
from websockets.exceptions import ConnectionClosedOK
from websockets.protocol import State

from drone_bridge.ros.node.parameter_values import parameter_like
from drone_bridge.tools.play.player import Player, Span
from drone_bridge.tools.web import calls
from drone_bridge.tools.web import fleet as fleets
from drone_bridge.tools.web import relay as relays
from drone_bridge.tools.web.bag_view import MAX_SPEED, MIN_SPEED, RecordingView
from drone_bridge.tools.web.landings import LandedPad
from drone_bridge.tools.web.outbox import Outbox
from drone_bridge.tools.web.relay import Relay
from drone_bridge.tools.web.vehicles import SteeredVehicle

KIND = Parameter.Type


@pytest.mark.parametrize(
    ("kind", "value", "after"),
    [
        (KIND.INTEGER, 8765.0, 8765),
        (KIND.INTEGER, 2, 2),
        (KIND.DOUBLE, 2, 2.0),
        (KIND.INTEGER_ARRAY, [2.0, 3], [2, 3]),
        (KIND.DOUBLE_ARRAY, [2, 3.5], [2.0, 3.5]),
        *((kind, [], []) for kind in (KIND.STRING_ARRAY, KIND.BOOL_ARRAY, KIND.DOUBLE_ARRAY, KIND.INTEGER_ARRAY)),
    ],
)
def test_a_parameter_is_set_with_the_type_that_it_has(kind, value, after):
    wanted = parameter_like("name", kind.value, value)
    assert (wanted.type_, repr(wanted.value)) == (kind, repr(after))


@pytest.mark.parametrize(
    ("kind", "value", "sent"),
    [(KIND.INTEGER, 1.5, KIND.DOUBLE), (KIND.INTEGER, True, KIND.BOOL), (KIND.DOUBLE, True, KIND.BOOL)],
)
def test_what_does_not_fit_goes_as_it_is_for_the_node_to_refuse(kind, value, sent):
    assert parameter_like("name", kind.value, value).type_ == sent


@pytest.mark.parametrize(("number", "is_taken"), [(3, True), (3.0, True), (True, False), (3.5, False), (-1, False)])
def test_a_viewer_subscribes_by_numbers_without_a_fraction(number, is_taken):
    subscribed = []
    relay = Relay("127.0.0.1", 1, lambda *told: subscribed.append(told))
    outbox = Outbox(lambda: None)
    request = {"op": "subscribe", "subscriptions": [{"id": number, "channelId": number}]}
    assert relay._subscribe(json.dumps(request), 1, outbox) == is_taken
    assert repr(subscribed) == repr([(1, 3, True)] * is_taken)


@pytest.mark.parametrize(("present", "is_admitted"), [({False: 2}, True), ({True: 1}, True), ({True: 2}, False)])
def test_viewers_that_may_only_watch_take_no_place_of_one_that_may_steer(monkeypatch, present, is_admitted):
    counts, close = [], AsyncMock()
    relay = Relay("127.0.0.1", 1, Mock())
    relay._present.update(present)

    def connect(*_, **__):
        counts.append((relay._present[True], relay.has_viewers))
        raise OSError

    monkeypatch.setattr(relays, "MAX_VIEWERS", 2)
    monkeypatch.setattr(relays, "connect", connect)
    with contextlib.suppress(OSError):
        asyncio.run(relay(Mock(close=close), True))
    assert counts == [(present.get(True, 0) + 1, True)] * is_admitted
    assert close.called != is_admitted
    assert (relay._present[True], relay.has_viewers) == (present.get(True, 0), False)


def test_next_request_waits_for_the_one_before_except_after_leaving():
    subscribed = []

    class Viewer:
        """It sends as fast as data is read, and has sent three more messages when it disconnects."""

        def __init__(self):
            self.transport = SimpleNamespace(abort=lambda: None)
            self.state = State.OPEN

        async def recv_streaming(self):
            channel = len(subscribed) + 1
            if channel > 5:
                raise ConnectionClosedOK(None, None)
            yield json.dumps({"op": "subscribe", "subscriptions": [{"id": channel, "channelId": channel}]})

    async def converse():
        follow = asyncio.Event()
        relay = Relay("127.0.0.1", 1, lambda *told: subscribed.append(told), follow.wait)
        outbox = Outbox(lambda: None)
        viewer = Viewer()
        taking = asyncio.ensure_future(relay._take_from_viewer(viewer, None, 1, outbox, True))
        for requests in (1, 2):
            for _ in range(20):
                await asyncio.sleep(0)
            assert len(subscribed) == requests
            viewer.state = State.OPEN if requests == 1 else State.CLOSING
            follow.set()
            follow.clear()
        await asyncio.wait_for(taking, 5)

    asyncio.run(converse())


@pytest.mark.parametrize(
    ("asked", "played"),
    [(2.0, 2.0), (0.0, MIN_SPEED), (math.inf, MAX_SPEED), (-math.inf, MIN_SPEED), (math.nan, MIN_SPEED)],
)
def test_a_recording_is_played_at_a_speed_within_limits(asked, played):
    view, bag = object.__new__(RecordingView), SimpleNamespace(start_ns=0, end_ns=10**10)
    view._bag, view.relay = bag, Mock()
    view.player = Player(bag, {}, [], Span(bag.start_ns, bag.end_ns), rate=1.0)
    request = {"playback_speed": asked, "playback_command": PlaybackCommand.Play, "seek_time": None, "request_id": ""}
    view.on_playback_control_request(SimpleNamespace(**request))
    assert view.player.rate == played


@pytest.mark.parametrize(
    ("seen_s", "subscribed_s", "played_s"), [(10.0, 10.0, 10.0), (10.0, 11.5, 11.5), (10.0, 99.0, 13.0)]
)
def test_a_recording_begins_once_its_first_viewer_has_subscribed(seen_s, subscribed_s, played_s):
    view, began_s = object.__new__(RecordingView), []
    view.relay, feed, now_s = Mock(has_viewers=False), Mock(last=None), 0.0
    view._by_channel = {1: feed}

    def wait(seconds):
        nonlocal now_s
        now_s += seconds
        view.relay.has_viewers = now_s > seen_s - 0.05
        if now_s > subscribed_s - 0.05:
            view._on_subscribed(1, 1, True)
        return now_s < 20.0

    view.player = Mock(wait=wait, play_on_request=lambda: began_s.append(now_s))
    view.play()
    assert began_s == [pytest.approx(played_s, abs=0.15)]


def test_calls_without_an_answer_end_in_time_and_give_their_places_back(monkeypatch):
    monkeypatch.setattr(calls, "TIMEOUT_S", 0.001)
    under_way = calls.Calls(Mock(), Mock(), Mock())
    for _ in range(calls.MAX_PENDING + 1):
        with pytest.raises(RuntimeError, match="No response within"):
            under_way.call("/silent", SetBool, SetBool.Request())


def test_each_repeated_call_of_a_hold_may_answer():
    fleet, answers, asked = fleets.Fleet(Mock(), Mock(), Mock()), [], []
    fleet.vehicles = [SteeredVehicle("/cmd_vel_stamped", "robot_bridge", holds=("/robot_bridge/hold",))]
    client = fleet._clients["/robot_bridge/hold"] = Mock()
    client.call_async = lambda request: asked.append(Future()) or asked[-1]
    for _ in range(fleets.MAX_CALLS + 1):
        fleet.hold("/cmd_vel_stamped", True, answers.append)
    client.remove_pending_request.assert_called_once_with(asked[0])
    for success, message in ((False, "the link is down"), (True, "")):
        asked[1 + success].set_result(SetBool.Response(success=success, message=message))
    assert answers == ["/robot_bridge/hold: the link is down", ""]


REFUSED = (False, "the link is down")


@pytest.mark.parametrize(
    ("responses", "answer"),
    [
        ([(True, ""), (True, "")], ""),
        ([REFUSED, (True, "")], "/a/hold: the link is down"),
        ([(True, ""), REFUSED], "/b/hold: the link is down"),
        ([REFUSED, REFUSED], "/a/hold: the link is down"),
    ],
)
def test_a_vehicle_of_two_nodes_is_held_when_both_agree_and_answers_once(responses, answer):
    fleet, answers = fleets.Fleet(Mock(), Mock(), Mock()), []
    fleet.vehicles = [SteeredVehicle("/cmd_vel_stamped", "a_bridge", holds=("/a/hold", "/b/hold"))]
    asked = [Future(), Future()]
    fleet._clients = {
        name: Mock(call_async=Mock(return_value=future))
        for name, future in zip(("/a/hold", "/b/hold"), asked, strict=True)
    }
    fleet.hold("/cmd_vel_stamped", True, answers.append)
    for future, (success, message) in zip(asked, responses, strict=True):
        future.set_result(SetBool.Response(success=success, message=message))
    assert answers == [answer]


def test_event_loop_wish_may_come_while_the_executor_finds_vehicles():
    fleet = fleets.Fleet(Mock(), Mock(), Mock())

    class Id(str):
        def __bool__(self):
            fleet.wish("/other/bridge", "2", "")  # another thread may do that at this moment
            return True

    fleet.wish("/d1/bridge", Id("1"), "")
    fleet._connect([])
    assert "/d1/bridge" in fleet._wish_publishers


STAMPED, TWIST_STAMPED = "/a/cmd_vel_stamped", "geometry_msgs/msg/TwistStamped"


@pytest.fixture
def found():
    """Return the vehicles of a page server, once these nodes subscribe to one command topic, bridges with helms."""
    node, names = Mock(), []
    node.get_subscriptions_info_by_topic = lambda topic: [
        SimpleNamespace(node_namespace="/a", node_name=name, topic_type=TWIST_STAMPED) for name in names
    ]
    shell = SimpleNamespace(node_name="drone_bridge_topic_13167", topic_type="")
    node.get_publishers_info_by_topic = lambda topic: [shell]
    fleet = fleets.Fleet(node, Mock(), Mock())

    def find(*now):
        names[:] = now
        bridges = [f"/a/{name}" for name in now if name.endswith("_bridge") and name != "web_bridge"]
        topics = {STAMPED: [TWIST_STAMPED]}
        topics |= {f"{each}/{topic}": [kind] for each in bridges for topic, kind in OF_A_BRIDGE.items()}
        fleet.update(topics, {f"{each}/hold": ["std_srvs/srv/SetBool"] for each in bridges})
        assert all(each.commanders[STAMPED] == ("drone-bridge topic",) for each in fleet.vehicles)
        return {each.name: (each.topic, each.node) for each in fleet.vehicles}

    find.fleet = fleet
    return find


OF_A_BRIDGE = {"pilot": "drone_bridge/msg/PilotCommand", "hold_status": "drone_bridge/msg/HoldStatus"}


def test_who_only_observes_commands_is_no_vehicle(found):
    assert found("recorder", "web_bridge") == {}
    assert found("recorder", "x_driver") == {"a": (STAMPED, "x_driver")}


def test_two_bridges_on_one_topic_are_two_vehicles_and_the_first_one_stays(found, monkeypatch):
    """Resume and the stick act on one named vehicle."""
    monkeypatch.setattr(fleets, "goal_of", lambda *_: "/a/goal_pose")
    first, second = (STAMPED, "robot_bridge"), ("/a/neato_bridge/cmd_vel_stamped", "neato_bridge")
    assert found("robot_bridge", "robot_server") == {"a": first}
    assert found("neato_bridge", "robot_bridge", "robot_server") == {"a": first, "a/neato": second}
    for each in found.fleet.vehicles:
        assert (each.targets, each.reporters) == ((f"/a/{each.node}/pilot",), (f"/a/{each.node}",))
        assert each.goal == "", "it would move both"
    assert found("neato_bridge") == {"a": (STAMPED, "neato_bridge")}
    assert [each.goal for each in found.fleet.vehicles] == ["/a/goal_pose"]


@pytest.mark.parametrize(
    ("sightings", "landed_s", "is_below"),
    [
        ([(0.1, 0.0, 0.2)], 0.9, True),
        ([(0.1, 0.0, 0.2)], 1.1, False),
        ([(0.1, 0.0, 0.6)], 0.1, False),
        ([(0.1, 0.0, 0.2), (math.nan,) * 3], 0.9, True),
        ([(0.1, 0.0, 0.2), (0.1, 0.0, 0.6)], 0.1, False),
        ([], 0.1, False),
    ],
)
def test_a_drone_stands_on_the_pad_that_it_saw_just_before(sightings, landed_s, is_below):
    pad = LandedPad()
    assert pad.place(False, 0.0) is None
    for sighting in sightings:
        pad.see(*sighting, 0.0)
    assert pad.place(True, landed_s) == ((0.1, 0.0) if is_below else None)
    assert pad.place(False, landed_s) is None


def test_a_drone_that_stands_from_the_start_stands_on_no_known_pad():
    pad = LandedPad()
    pad.see(0.1, 0.0, 0.2, 0.0)
    assert pad.place(True, 0.1) is None
