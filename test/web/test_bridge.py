# SPDX-License-Identifier: Apache-2.0
"""web_bridge over real sockets and real DDS: topics, services, and access."""

import contextlib
import gzip
import json
import re
import socket
import urllib.error
import urllib.request

import pytest
from geometry_msgs.msg import TwistStamped
from processes import TIMEOUT_S
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.serialization import deserialize_message, serialize_message
from ros_session import wait_until
from sensor_msgs.msg import BatteryState, Image
from std_msgs.msg import Bool, String
from std_srvs.srv import SetBool
from web_viewer import Network, Pilot, Viewer, web_bridge
from websockets.exceptions import ConnectionClosed, InvalidStatus

from drone_bridge.msg import ControllerState
from drone_bridge.tools.shared.interfaces import message_text
from drone_bridge.tools.web.gateway import MAX_WAITING

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
BEST_EFFORT = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)
RELIABLE = QoSProfile(depth=10)


@pytest.fixture(scope="module")
def bridge():
    with web_bridge() as process:
        yield process


@pytest.fixture
def viewer(bridge):
    with Viewer(bridge.address) as viewer:
        yield viewer


def is_same(data, message):
    """Return whether a payload is this message. DDS may have padded the last four bytes."""
    expected = serialize_message(message)  # also padded, with arbitrary memory
    whole = len(expected) - 3
    is_as_long = abs(len(data) - len(expected)) <= 3
    return is_as_long and data[:whole] == expected[:whole] and deserialize_message(data, type(message)) == message


def test_messages_arrive_byte_for_byte_with_the_definition_of_their_type(viewer, ros):
    messages = {
        "/state": ControllerState(behaviour="seek_target", distance=1.25),
        "/battery": BatteryState(percentage=0.5, cell_voltage=[3.7, 3.8], location="below"),
    }
    for topic, message in messages.items():
        data = serialize_message(message)
        ros.node.create_publisher(type(message), topic, LATCHED).publish(data)
        viewer.subscribe(topic)
        channel = viewer.channels[topic]
        assert (channel["encoding"], channel["schemaEncoding"]) == ("cdr", "ros2msg")
        name = f"{type(message).__module__.partition('.')[0]}/msg/{type(message).__name__}"
        assert (channel["schemaName"], channel["schema"]) == (name, message_text(name))
        assert viewer.next_of(topic)[: len(data)] == data  # DDS may pad the last four bytes


def test_latched_messages_reach_late_viewers_too_and_each_once(bridge, ros):
    publisher = ros.node.create_publisher(String, "/latched", LATCHED)
    known = String(data="known")
    publisher.publish(known)
    with Viewer(bridge.address) as early, Viewer(bridge.address) as late:
        early.subscribe("/latched")
        assert is_same(early.next_of("/latched"), known)
        number = late.subscribe("/latched")
        assert is_same(late.next_of("/latched"), known)
        late.unsubscribe(number)
        late.subscribe("/latched")
        assert is_same(late.next_of("/latched"), known)
        publisher.publish(String(data="new"))
        for each in (early, late):
            assert is_same(each.next_of("/latched"), String(data="new"))
        assert early.payloads("/latched") == late.payloads("/latched") == []


def test_publishers_with_different_qos_are_all_received(viewer, ros):
    offers = {"latched": LATCHED, "reliable": RELIABLE, "best effort": BEST_EFFORT}
    publishers = {name: ros.node.create_publisher(String, "/mixed", qos) for name, qos in offers.items()}
    publishers["latched"].publish(String(data="before"))
    viewer.subscribe("/mixed")
    assert is_same(viewer.next_of("/mixed"), String(data="before"))
    for name in ("best effort", "reliable"):  # a subscription for both of them matches best effort only
        volatile = publishers[name]
        wait_until(lambda volatile=volatile: volatile.get_subscription_count() == 1, f"a subscription for {name}")
    for name, publisher in publishers.items():
        publisher.publish(String(data=name))
    got = [deserialize_message(viewer.next_of("/mixed"), String).data for _ in offers]
    publishers["reliable"].publish(String(data="last"))
    got.append(deserialize_message(viewer.next_of("/mixed"), String).data)
    assert sorted(got) == sorted([*offers, "last"])  # also "latched" once, which both subscriptions receive


def test_topics_appear_change_their_qos_and_disappear(viewer, ros):
    publisher = ros.node.create_publisher(Bool, "/comes", RELIABLE)
    viewer.subscribe("/comes")
    wait_until(lambda: publisher.get_subscription_count() == 1, "a reliable subscription")
    other = ros.node.create_publisher(Bool, "/comes", BEST_EFFORT)
    wait_until(lambda: other.get_subscription_count() == 1, "a subscription that takes best effort, too")
    other.publish(Bool(data=True))
    assert is_same(viewer.next_of("/comes"), Bool(data=True))
    ros.node.destroy_publisher(publisher)
    ros.node.destroy_publisher(other)
    viewer.wait_for(lambda: "/comes" in viewer.gone, "the end of /comes")
    publisher = ros.node.create_publisher(String, "/comes", LATCHED)
    publisher.publish(String(data="of another type"))
    viewer.subscribe("/comes")
    assert is_same(viewer.next_of("/comes"), String(data="of another type"))


def test_topics_without_viewers_have_no_subscriber(viewer, ros):
    publisher = ros.node.create_publisher(Image, "/camera/image_raw", RELIABLE)
    viewer.wait_for(lambda: "/camera/image_raw" in viewer.channels, "the camera")
    assert publisher.get_subscription_count() == 0
    number = viewer.subscribe("/camera/image_raw")
    wait_until(lambda: publisher.get_subscription_count() == 1, "a subscriber")
    viewer.unsubscribe(number)
    wait_until(lambda: publisher.get_subscription_count() == 0, "no subscriber")


def test_a_service_is_called_and_its_answer_comes_back(viewer, ros):
    def flip(request, response):
        response.success, response.message = not request.data, "flipped"
        return response

    ros.create_service(SetBool, "/flip", flip)
    answer = viewer.call("/flip", serialize_message(SetBool.Request(data=False)))
    assert deserialize_message(answer, SetBool.Response) == SetBool.Response(success=True, message="flipped")
    service = viewer.services["/flip"]
    assert service["type"] == "std_srvs/srv/SetBool"
    assert "bool data" in service["request"]["schema"]
    assert "string message" in service["response"]["schema"]


# Access.


def get(address, path="/", **headers):
    request = urllib.request.Request(f"http://{address.partition('/')[0]}{path}", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_all_that_the_page_begins_with_is_at_most_1_mb_on_the_way(bridge):
    waiting, sizes = ["", "page.css", "page.js"], {}
    while waiting:
        name = waiting.pop()
        plain = get(bridge.address, f"/{name}")[1]
        host = bridge.address.partition("/")[0]
        request = urllib.request.Request(f"http://{host}/{name}", headers={"Accept-Encoding": "gzip, br"})
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response:
            assert response.headers["Content-Encoding"] == "gzip"
            packed, tag = response.read(), response.headers["ETag"]
        assert get(bridge.address, f"/{name}", **{"If-None-Match": tag}) == (304, "")  # for clients that have it
        assert gzip.decompress(packed).decode() == plain
        sizes[name] = len(packed)
        waiting += re.findall(r'from"\./(chunk-[^"]+)"', plain)
    assert len(sizes) > 3  # including the libraries of the scene
    assert sum(sizes.values()) < 2**20, sizes


def test_the_page_is_served_and_nothing_else(bridge):
    status, text = get(bridge.address)
    assert status == 200
    assert "<title>drone_bridge</title>" in text
    for path in (
        "//[",
        "/../setup.py",
        "/%2e%2e/package.xml",
        "//etc/passwd",
        "/index.html/..",
        "/a\\b",
        "/package.xml",
    ):
        assert get(bridge.address, path)[0] == 404, path


def test_idle_connections_and_half_requests_lock_nobody_out(bridge):
    host, _, port = bridge.address.strip("/").partition(":")
    with contextlib.ExitStack() as open_ones, Pilot(bridge.address) as pilot, Viewer(bridge.address) as viewer:
        for half in (b"", b"GET / HTTP/1.1\r\nHost: ", b"G"):
            for _ in range(MAX_WAITING):
                idle = open_ones.enter_context(socket.create_connection((host, int(port)), TIMEOUT_S))
                with contextlib.suppress(OSError):
                    idle.send(half)
            assert get(bridge.address)[0] == 200
        # Admitted viewers stay connected.
        pilot.next_token()
        viewer.wait_for(lambda: viewer.info, "the greeting")
        viewer.connection.ping().wait(TIMEOUT_S)


def fragment(opcode, payload=b""):
    """Return a masked frame that is not the last one of its message."""
    return bytes([opcode, 0x80 | len(payload), 0, 0, 0, 0]) + payload


def test_a_message_has_to_be_whole_in_time_and_in_not_too_many_pieces(bridge):
    with Pilot(bridge.address) as slow, Pilot(bridge.address) as fragmented:
        # Python's client can't stop in the middle of a message, so these bytes are sent directly.
        slow.connection.socket.sendall(fragment(1, b"{"))
        fragmented.connection.socket.sendall(fragment(1, b"{") + fragment(0) * 2000)
        for pilot in (fragmented, slow):
            with pytest.raises(ConnectionClosed):
                pilot.wait_for(lambda: False, "the end")


def test_beyond_this_machine_a_secret_is_needed_and_steering_is_refused(ros):
    ros.node.create_subscription(TwistStamped, "/robot/cmd_vel_stamped", print, 1)
    publisher = ros.node.create_publisher(String, "/latched", LATCHED)
    publisher.publish(String(data="seen"))
    with web_bridge(host="0.0.0.0", secret="sesame") as process:
        assert process.wait_for_line("█|▄|▀")
        host, _, query = process.address.partition("/")
        assert query == "?secret=sesame"
        address = f"127.0.0.1:{host.rpartition(':')[2]}/"
        for wrong in ("", "?secret=", "?secret=Sesame"):
            with pytest.raises(InvalidStatus):
                Viewer(address + wrong)
            with pytest.raises(InvalidStatus):
                Pilot(address + wrong)
        with Network(address + query, forwarded_for="192.0.2.7") as network:
            refuses_but_to_look(network.address)
        with Pilot(address + query) as pilot, Viewer(address + query) as viewer:  # on this machine
            pilot.take("/robot/cmd_vel_stamped")
            viewer.wait_for(lambda: viewer.services, "services")


def refuses_but_to_look(address):
    with Viewer(address) as viewer, Pilot(address) as pilot:
        viewer.subscribe("/latched")
        assert is_same(viewer.next_of("/latched"), String(data="seen"))
        assert viewer.info["capabilities"] == []
        assert not viewer.services
        asked = [
            b"\x02" + bytes(16),
            json.dumps({"op": "setParameters", "parameters": [{"name": "/web_bridge.max_speed", "value": 0.1}]}),
            json.dumps({"op": "advertise", "channels": [{"id": 1, "topic": "/robot/cmd_vel", "encoding": "cdr"}]}),
            "[]",
        ]
        for number, request in enumerate(asked, start=1):
            viewer.connection.send(request)
            viewer.wait_for(lambda number=number: len(viewer.statuses) == number, "a refusal")
        assert all("view-only" in each for each in viewer.statuses)
        pilot.wait_for(lambda: pilot.vehicles, "a vehicle")
        pilot.send(op="take", vehicle="/robot/cmd_vel_stamped")
        pilot.wait_for(lambda: pilot.refusals, "a refusal")
        assert "view-only" in pilot.refusals[0]
        assert not pilot.may_steer


@pytest.mark.parametrize("garbage", ["", "{", "[]", b"", b"\x02", b"\xff" * 50, json.dumps({"op": "subscribe"})])
def test_garbage_from_a_viewer_hurts_nobody_else(bridge, viewer, garbage):
    with Viewer(bridge.address) as rude:
        rude.connection.send(garbage)
        rude.receive(0.5)
    viewer.wait_for(lambda: viewer.info and viewer.channels, "what there is")
