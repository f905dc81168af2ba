# SPDX-License-Identifier: Apache-2.0
"""A bag, read by every reader that PyPI has, beside rosbags, which writes it: mcap and mcap-ros2-support."""

import pytest
from rclpy.serialization import serialize_message
from sensor_msgs.msg import Imu
from std_msgs.msg import String

from drone_bridge.msg import CommandRates
from drone_bridge.tools.recording.bag import Bag, Topic
from drone_bridge.tools.recording.definitions import find_definition

mcap_reader = pytest.importorskip("mcap.reader", reason="rosdep has no key for mcap-ros2-support")
stream_reader = pytest.importorskip("mcap.stream_reader")
records = pytest.importorskip("mcap.records")
decoder = pytest.importorskip("mcap_ros2.decoder")

READERS = {
    "seeking": lambda file, **options: mcap_reader.SeekingReader(file, validate_crcs=True, **options),
    "non-seeking": lambda file, **options: mcap_reader.NonSeekingReader(file, validate_crcs=True, **options),
}


@pytest.fixture(params=["none", "zstd"])
def bag(request, tmp_path):
    """The file of a bag with three topics, 300 messages of each."""
    bag = Bag(tmp_path / "flight", compress=request.param == "zstd")
    topics = {
        Topic(name, find_definition(type_name)): message
        for name, type_name, message in (
            ("/text", "std_msgs/msg/String", String(data="hello")),
            ("/imu/data", "sensor_msgs/msg/Imu", Imu()),
            ("/cmd_rates", "drone_bridge/msg/CommandRates", CommandRates(thrust=9.81)),
        )
    }
    for number in range(300):
        for topic, message in topics.items():
            bag.write(topic, 1000 + number, 500 + number, serialize_message(message))
    bag.close()
    return tmp_path / "flight" / "flight.mcap"


@pytest.mark.parametrize("kind", READERS)
def test_mcap_reads_and_decodes_all_of_it(bag, kind):
    with bag.open("rb") as file:
        reader = READERS[kind](file, decoder_factories=[decoder.DecoderFactory()])
        found = list(reader.iter_decoded_messages())
    by_topic = {}
    for message in found:
        by_topic.setdefault(message.channel.topic, []).append(message)
    assert {topic: len(messages) for topic, messages in by_topic.items()} == dict.fromkeys(
        ("/text", "/imu/data", "/cmd_rates"), 300
    )
    assert by_topic["/text"][7].decoded_message.data == "hello"
    assert by_topic["/cmd_rates"][7].decoded_message.thrust == pytest.approx(9.81)
    assert by_topic["/imu/data"][7].decoded_message.orientation.w == 1.0
    first = by_topic["/text"][0].message
    assert (first.log_time, first.publish_time) == (1000, 500)


def test_mcap_finds_the_summary(bag):
    with bag.open("rb") as file:
        summary = READERS["seeking"](file).get_summary()
    assert summary.statistics.message_count == 900
    assert summary.statistics.channel_message_counts.keys() == summary.channels.keys()
    assert {channel.topic for channel in summary.channels.values()} == {"/text", "/imu/data", "/cmd_rates"}
    assert {schema.encoding for schema in summary.schemas.values()} == {"ros2msg"}


def test_mcap_streams_it_in_the_order_of_time(bag):
    with bag.open("rb") as file:
        streamed = stream_reader.StreamReader(file, validate_crcs=True).records
        times = [record.log_time for record in streamed if isinstance(record, records.Message)]
    assert times == sorted(times)
