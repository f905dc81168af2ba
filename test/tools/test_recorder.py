# SPDX-License-Identifier: Apache-2.0
"""The recorder as it is run: a program on a real network of topics."""

import os
import signal
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
import rclpy
from processes import Process
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.serialization import serialize_message
from rosbags.highlevel import AnyReader
from rosbags.rosbag2 import Reader
from sensor_msgs.msg import Image
from std_msgs.msg import Bool, String

from drone_bridge.msg import CommandRates

BEST_EFFORT = QoSProfile(depth=100, reliability=ReliabilityPolicy.BEST_EFFORT)
RELIABLE = QoSProfile(depth=100)
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
PATIENCE_S = 60


@contextmanager
def participant(domain, name):
    """A node that is a DDS participant of its own."""
    context = rclpy.Context()
    rclpy.init(context=context, domain_id=domain)
    node = Node(name, context=context, start_parameter_services=False)
    try:
        yield node
    finally:
        node.destroy_node()
        rclpy.shutdown(context=context)


@pytest.fixture
def node(domain):
    with participant(domain, "publisher") as node:
        yield node


def wait_until(node, condition):
    executor = SingleThreadedExecutor(context=node.context)
    executor.add_node(node)
    limit = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < limit, "timed out"
        executor.spin_once(timeout_sec=0.02)
    executor.remove_node(node)
    executor.shutdown()  # otherwise the node's participant lives on until garbage is collected


def wait_for_subscription(node, *publishers):
    wait_until(node, lambda: all(publisher.get_subscription_count() for publisher in publishers))


def recording_of(bag, env=None, **parameters):
    """A recorder in a process of its own."""
    return Process.node("recorder", env=env, bag=bag, **parameters)


def publish(publisher, message):
    """Publish, and return the very bytes: where a type has padding, each serialization can differ."""
    data = serialize_message(message)
    assert len(data) % 4 == 0, "DDS would pad it"
    publisher.publish(data)
    return data


def recorded(bag, topic):
    with Reader(bag) as reader:
        connections = [connection for connection in reader.connections if connection.topic == topic]
        return [bytes(data) for _, _, data in reader.messages(connections)] if connections else []


def table(output):
    """The recorder's summary as {topic: (type, messages, dropped)}."""
    rows = [line.split() for line in output.splitlines() if line.startswith("/")]
    return {name: (type_name, int(messages), int(dropped)) for name, type_name, messages, dropped in rows}


def test_everything_published_is_in_the_bag_byte_for_byte(node, tmp_path):
    image = Image(width=64, height=48, step=192, encoding="rgb8", data=bytes(range(256)) * 36)
    flying = node.create_publisher(Bool, "flying", LATCHED)
    images = node.create_publisher(Image, "left/image_raw", RELIABLE)
    noise = node.create_publisher(String, "noise", BEST_EFFORT)
    sent = {"/flying": [publish(flying, Bool(data=True))], "/left/image_raw": [], "/noise": []}
    with recording_of(tmp_path / "flight") as recording:
        wait_for_subscription(node, images, noise, flying)
        # What nobody sends again comes first, before images that may fill a socket.
        sent["/noise"] = [publish(noise, String(data=f"{number:03}")) for number in range(20)]
        for number in range(20):
            image.header.stamp.sec = number
            sent["/left/image_raw"].append(publish(images, image))
        late = node.create_publisher(CommandRates, "cmd_rates", RELIABLE)
        wait_for_subscription(node, late)
        before = time.time_ns()
        sent["/cmd_rates"] = [publish(late, CommandRates(thrust=9.81))]
        for publisher in (images, flying, late):
            publisher.wait_for_all_acked()
        after = time.time_ns()
        assert recording.stop(signal.SIGINT) == 0, recording.output
    assert {topic: recorded(tmp_path / "flight", topic) for topic in sent} == sent
    with AnyReader([tmp_path / "flight"]) as reader:  # the bag alone tells what its types are
        content = {connection.topic: (connection, data) for connection, _, data in reader.messages()}
        connection, data = content["/cmd_rates"]
        assert reader.deserialize(data, connection.msgtype).thrust == 9.81
        offers = {connection.topic: connection.ext.offered_qos_profiles for connection in reader.connections}
    assert [offer.durability.name for offer in offers["/flying"]] == ["TRANSIENT_LOCAL"]
    assert [offer.reliability.name for offer in offers["/noise"]] == ["BEST_EFFORT"]
    file = (tmp_path / "flight/flight.mcap").read_bytes()
    place = file.index(sent["/cmd_rates"][0])
    arrived, published = (int.from_bytes(file[place - offset :][:8], "little") for offset in (16, 8))
    assert before < published < arrived < after
    rows = table(recording.output)
    assert rows["/left/image_raw"] == ("sensor_msgs/msg/Image", 20, 0)
    assert rows["/cmd_rates"] == ("drone_bridge/msg/CommandRates", 1, 0)


def test_a_killed_log_writer_is_replaced_and_the_summary_is_shown(node, tmp_path):
    publisher = node.create_publisher(String, "text", LATCHED)
    with recording_of(tmp_path / "flight") as recording:
        wait_for_subscription(node, publisher)
        (child,) = Path(f"/proc/{recording.pid}/task/{recording.pid}/children").read_text().split()
        os.kill(int(child), signal.SIGKILL)
        recording.wait_for_line("The log writer had ended, and was started again")
        sent = [publish(publisher, String(data="written"))]
        publisher.wait_for_all_acked()
        assert recording.stop() == 0, recording.output
    assert table(recording.output)["/text"] == ("std_msgs/msg/String", 1, 0)
    assert recorded(tmp_path / "flight", "/text") == sent
