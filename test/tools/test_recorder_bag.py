# SPDX-License-Identifier: Apache-2.0
"""The recorder's bag on disk, read by every reader that PyPI has, and the thread that writes it. No ROS graph."""

import errno
import os
import resource
import threading
import time
from contextlib import contextmanager
from unittest.mock import Mock

import pytest
import yaml
from mcap.reader import SeekingReader
from mcap_ros2.decoder import DecoderFactory
from patience import TIMEOUT_S, wait_until
from rclpy.duration import Infinite
from rclpy.qos import DurabilityPolicy, LivelinessPolicy, QoSProfile
from rclpy.serialization import serialize_message
from rosbags.highlevel import AnyReader
from rosbags.rosbag2 import Reader
from sensor_msgs.msg import Imu
from std_msgs.msg import String

from drone_bridge.msg import CommandRates
from drone_bridge.tools.cli import main
from drone_bridge.tools.record import command as record
from drone_bridge.tools.record.background import MESSAGE_OVERHEAD, BackgroundWriter
from drone_bridge.tools.record.bag import BagWriteError, BagWriter, WrittenTopic
from drone_bridge.tools.shared.interfaces import message_text, type_hash

OFFER = QoSProfile(
    depth=5,
    durability=DurabilityPolicy.TRANSIENT_LOCAL,
    deadline=Infinite,
    lifespan=Infinite,
    liveliness=LivelinessPolicy.AUTOMATIC,
    liveliness_lease_duration=Infinite,
)


def make_topic(name="/text", type_name="std_msgs/msg/String"):
    return WrittenTopic(name, type_name, message_text(type_name), type_hash(type_name), [OFFER])


def string_cdr(text):
    data = text.encode() + b"\0"
    return b"\0\1\0\0" + len(data).to_bytes(4, "little") + data


def messages_in(path):
    with Reader(path) as reader:
        return [(connection.topic, time, bytes(data)) for connection, time, data in reader.messages()]


@contextmanager
def file_size_limit(size):
    """No file may grow beyond `size` bytes: an unprivileged stand-in for a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


TOPICS = {"/text", "/imu/data", "/cmd_rates"}


@pytest.fixture(params=["none", "zstd"])
def file(request, tmp_path):
    """The file of a bag with three topics, 300 messages of each."""
    bag = BagWriter(tmp_path / "flight", compress=request.param == "zstd")
    topics = {
        make_topic(name, type_name): message
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
    assert {bag.count(topic) for topic in topics} == {300}
    path = tmp_path / "flight/flight.mcap"
    assert (path.stat().st_size > 150_000) == (request.param == "none")
    with path.open("rb") as file:
        yield file


def test_mcap_reads_and_decodes_all_of_it(file):
    by_topic = {}
    reader = SeekingReader(file, validate_crcs=True, decoder_factories=[DecoderFactory()])
    for message in reader.iter_decoded_messages():
        by_topic.setdefault(message.channel.topic, []).append(message)
    assert {topic: len(messages) for topic, messages in by_topic.items()} == dict.fromkeys(TOPICS, 300)
    assert by_topic["/text"][7].decoded_message.data == "hello"
    assert by_topic["/cmd_rates"][7].decoded_message.thrust == pytest.approx(9.81)
    assert by_topic["/imu/data"][7].decoded_message.orientation.w == 1.0
    first = by_topic["/text"][0]
    assert (first.message.log_time, first.message.publish_time) == (1000, 500)
    assert first.channel.metadata["topic_type_hash"].startswith("RIHS01_")
    assert "durability: 1" in first.channel.metadata["offered_qos_profiles"]


def test_rosbags_reads_and_decodes_all_of_it(file, tmp_path):
    with AnyReader([tmp_path / "flight"]) as reader:
        found = [(time, reader.deserialize(data, each.msgtype)) for each, time, data in reader.messages()]
    assert [time for time, _ in found] == [1000 + number // 3 for number in range(900)]
    assert sum(getattr(message, "data", "") == "hello" for _, message in found) == 300


def test_metadata_is_what_every_rosbag2_since_humble_reads(tmp_path):
    bag = BagWriter(tmp_path / "flight")
    topic, silent = make_topic(), make_topic("/silent")
    bag.add(silent)
    bag.write(topic, 3_000, 1, string_cdr("x"))
    bag.write(topic, 5_000, 1, string_cdr("y"))
    bag.close()
    info = yaml.safe_load((tmp_path / "flight/metadata.yaml").read_text())["rosbag2_bagfile_information"]
    # Humble's reader takes versions up to 8: from 9 on, QoS is no longer a string with numbers in it.
    assert info["version"] == 8
    assert info["storage_identifier"] == "mcap"
    assert info["relative_file_paths"] == ["flight.mcap"]
    assert info["duration"] == {"nanoseconds": 2_000}
    assert info["starting_time"] == {"nanoseconds_since_epoch": 3_000}
    assert info["message_count"] == 2
    assert info["compression_format"] == info["compression_mode"] == ""
    assert info["custom_data"] is None
    assert isinstance(info["ros_distro"], str)
    assert info["files"] == [
        {
            "path": "flight.mcap",
            "starting_time": info["starting_time"],
            "duration": info["duration"],
            "message_count": 2,
        }
    ]
    listed = {entry["topic_metadata"]["name"]: entry for entry in info["topics_with_message_count"]}
    assert {name: entry["message_count"] for name, entry in listed.items()} == {"/silent": 0, "/text": 2}
    metadata = listed["/text"]["topic_metadata"]
    assert metadata["type"] == "std_msgs/msg/String"
    assert metadata["serialization_format"] == "cdr"
    assert metadata["type_description_hash"] == topic.type_hash
    assert yaml.safe_load(metadata["offered_qos_profiles"]) == [
        {
            "history": 1,
            "depth": 5,
            "reliability": 1,
            "durability": 1,
            "deadline": {"sec": 9223372036, "nsec": 854775807},
            "lifespan": {"sec": 9223372036, "nsec": 854775807},
            "liveliness": 1,
            "liveliness_lease_duration": {"sec": 9223372036, "nsec": 854775807},
            "avoid_ros_namespace_conventions": False,
        }
    ]


def test_an_empty_bag_is_a_bag(tmp_path):
    bag = BagWriter(tmp_path / "flight")
    bag.add(make_topic())
    bag.close()
    assert messages_in(tmp_path / "flight") == []
    with Reader(tmp_path / "flight") as reader:
        assert [connection.topic for connection in reader.connections] == ["/text"]
    with (tmp_path / "flight/flight.mcap").open("rb") as file:
        statistics = SeekingReader(file).get_summary().statistics
    assert (statistics.message_start_time, statistics.message_end_time) == (0, 0)


def test_an_existing_name_that_is_typed_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("os.execv", lambda *_: pytest.fail("it records"))
    with pytest.raises(SystemExit, match="exists already"):
        record.main([str(tmp_path)])


def test_an_existing_directory_is_left_alone(tmp_path):
    (tmp_path / "flight").mkdir()
    (tmp_path / "flight/precious").write_text("data")
    (tmp_path / "flight_2").symlink_to(tmp_path / "nothing")
    for number in (3, 4):
        bag = BagWriter(tmp_path / "flight")
        bag.close()
        assert bag.path == tmp_path / f"flight_{number}"
        assert (bag.path / f"flight_{number}.mcap").exists()
    assert (tmp_path / "flight/precious").read_text() == "data"


def test_an_unwritable_folder_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BagWriteError, match=r"can't be created: Not a directory"):
        BagWriter(tmp_path / "file/flight")


def test_no_room_for_the_header_leaves_nothing_behind(tmp_path):
    with file_size_limit(20), pytest.raises(BagWriteError, match=r"can't be created: File too large \(\d+ MiB free"):
        BagWriter(tmp_path / "flight")
    assert not (tmp_path / "flight").exists()


MESSAGES = [string_cdr(f"{number}:" + "x" * 300_000) for number in range(20)]


@pytest.mark.parametrize("limit", [1_200_000, 6_002_500])
def test_a_disk_that_fills_up_leaves_a_beginning_that_recover_saves(tmp_path, monkeypatch, limit, capsys):
    monkeypatch.setattr("drone_bridge.tools.record.bag.growth_error", lambda *_: None)  # by another program, meanwhile
    path = tmp_path / "flight"
    bag, topic = BagWriter(path), make_topic()
    failure = None
    with file_size_limit(limit):
        try:
            for number, data in enumerate(MESSAGES):
                bag.write(topic, 100 + number, 100 + number, data)
                bag.flush()
            bag.close()
        except OSError as error:
            failure = bag.abandon(error)
        except BagWriteError as error:
            failure = error
    new = tmp_path / "saved.mcap"
    assert str(failure).startswith(f"Writing the bag '{path}' failed: File too large (")
    assert f"'drone-bridge recover {path}/flight.mcap <new file>'" in str(failure)
    assert main(["info", str(path)]) == 1
    assert "drone-bridge recover" in capsys.readouterr().err
    assert main(["recover", f"{path}/flight.mcap", str(new)]) == 0
    found = messages_in(new)
    assert found == [("/text", 100 + number, data) for number, data in enumerate(MESSAGES[: len(found)])]
    assert len(found) >= limit // (len(MESSAGES[0]) + 2000)


@pytest.mark.parametrize("flush_s", [0.0, 1e9])
def test_a_recording_ends_complete_before_the_disk_is_full(tmp_path, monkeypatch, flush_s):
    monkeypatch.setattr("drone_bridge.tools.record.background.FLUSH_INTERVAL_S", flush_s)
    free_mb = iter(range(60, 0, -10))
    monkeypatch.setattr(
        "drone_bridge.tools.record.bag.shortage",
        lambda folder, *_: f"{folder} has {free} MB." if (free := next(free_mb)) < 40 else "",
    )
    ended = threading.Event()
    writer, topic = BackgroundWriter(bag := BagWriter(tmp_path / "flight"), ended.set), make_topic()
    for number, data in enumerate(MESSAGES):
        writer.put(topic, number, number, data)
    assert ended.wait(TIMEOUT_S)
    with pytest.raises(BagWriteError, match=f"{tmp_path / 'flight'} has 30 MB. .*complete"):
        writer.close(TIMEOUT_S, [topic])
    assert 0 < bag.message_count < len(MESSAGES)
    assert messages_in(tmp_path / "flight") == [
        ("/text", number, data) for number, data in enumerate(MESSAGES[: bag.message_count])
    ]
    with pytest.raises(BagWriteError, match="has 20 MB"):
        BagWriter(tmp_path / "other")
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("number", [errno.EDQUOT, errno.ENOSPC])
def test_a_quota_that_no_figure_shows_ends_a_recording_complete(tmp_path, monkeypatch, number):
    failures = iter([None, None, OSError(number, os.strerror(number))])
    monkeypatch.setattr("drone_bridge.tools.record.bag.growth_error", lambda *_: next(failures))
    bag, topic = BagWriter(tmp_path / "flight"), make_topic()

    def write_all():
        for number, data in enumerate(MESSAGES):
            bag.write(topic, number, number, data)

    with pytest.raises(BagWriteError, match=f"{os.strerror(number)}. .*complete"):
        write_all()
    bag.close()
    found = messages_in(tmp_path / "flight")
    assert found == [("/text", number, data) for number, data in enumerate(MESSAGES[: len(found)])]
    assert 0 < len(found) < len(MESSAGES)


def test_a_bag_is_not_called_complete_if_its_end_can_not_be_written(tmp_path, monkeypatch):
    bag, topic, ended = BagWriter(tmp_path / "flight"), make_topic(), threading.Event()
    writer = BackgroundWriter(bag, ended.set)
    with file_size_limit(1_000_000):
        writer.put(topic, 1, 1, string_cdr("x" * 2_000_000))
        assert ended.wait(TIMEOUT_S)
        monkeypatch.setattr(bag, "_information", Mock(side_effect=OSError(errno.EDQUOT, "Disk quota exceeded")))
        with pytest.raises(BagWriteError, match="drone-bridge recover") as failure:
            writer.close(TIMEOUT_S)
    assert "complete until" not in str(failure.value)


class SlowBag(BagWriter):
    """Holds every write until it is let go."""

    def __init__(self, path):
        super().__init__(path)
        self.entered = threading.Event()
        self.go_on = threading.Event()

    def write(self, *message):
        self.entered.set()
        assert self.go_on.wait(TIMEOUT_S)
        super().write(*message)


def test_a_slow_disk_costs_the_newest_messages_and_they_are_counted(tmp_path):
    bag = SlowBag(tmp_path / "flight")
    topic = make_topic()
    data = string_cdr("x" * 1000)
    writer = BackgroundWriter(bag, pytest.fail, 5 * (len(data) + MESSAGE_OVERHEAD))
    taken = [writer.put(topic, number, number, data) for number in range(8)]
    bag.go_on.set()
    writer.close(TIMEOUT_S)
    assert taken == [True] * 5 + [False] * 3
    assert [time for _, time, _ in messages_in(tmp_path / "flight")] == list(range(5))
    assert topic.received - bag.count(topic) == 3


def test_closing_does_not_wait_for_a_disk_that_is_too_slow(tmp_path):
    bag = SlowBag(tmp_path / "flight")
    topic = make_topic()
    writer = BackgroundWriter(bag, pytest.fail, 10**6)
    for number in range(10):
        writer.put(topic, number, number, string_cdr("x"))
    assert bag.entered.wait(TIMEOUT_S)

    def release_when_it_is_too_late():
        wait_until(lambda: writer._deadline_s is not None and time.monotonic() > writer._deadline_s, "the deadline")
        bag.go_on.set()

    release = threading.Thread(target=release_when_it_is_too_late)
    release.start()
    writer.close(0.1)
    release.join()
    assert len(messages_in(tmp_path / "flight")) == 1
    assert topic.received - bag.count(topic) == 9


def test_errors_other_than_the_disks_are_raised_at_the_end(tmp_path, monkeypatch):
    bag = BagWriter(tmp_path / "flight")
    monkeypatch.setattr(bag, "write", Mock(side_effect=ZeroDivisionError))
    failed = threading.Event()
    writer = BackgroundWriter(bag, failed.set, 10**6)
    writer.put(make_topic(), 1, 1, string_cdr("x"))
    assert failed.wait(TIMEOUT_S)
    with pytest.raises(ZeroDivisionError):
        writer.close(TIMEOUT_S)
    assert messages_in(tmp_path / "flight") == []


def test_a_written_message_leaves_all_its_room_to_the_next_one(tmp_path):
    topic, data, taken = make_topic(), string_cdr("x"), []
    writer = BackgroundWriter(bag := BagWriter(tmp_path / "flight"), pytest.fail, 2 * (len(data) + MESSAGE_OVERHEAD))
    for number in range(1, 9):
        taken.append(writer.put(topic, number, number, data))
        wait_until(lambda: bag.count(topic) == sum(taken), "the message", period_s=1e-4)
    writer.close(TIMEOUT_S)
    assert taken == [True] * 8
