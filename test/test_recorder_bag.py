# SPDX-License-Identifier: Apache-2.0
"""The recorder's bag on disk, and the thread that writes it. No ROS graph."""

import resource
import threading
import time
from contextlib import contextmanager

import pytest
import yaml
from rclpy.duration import Infinite
from rclpy.qos import DurabilityPolicy, LivelinessPolicy, QoSProfile
from ros_session import TIMEOUT_S, wait_until
from rosbags.highlevel import AnyReader
from rosbags.rosbag2 import Reader

from drone_bridge.tools.recording.background import FLUSH_INTERVAL_S, MESSAGE_OVERHEAD, BackgroundWriter
from drone_bridge.tools.recording.bag import Bag, BagError, Topic
from drone_bridge.tools.recording.definitions import find_definition

OFFER = QoSProfile(
    depth=5,
    durability=DurabilityPolicy.TRANSIENT_LOCAL,
    deadline=Infinite,
    lifespan=Infinite,
    liveliness=LivelinessPolicy.AUTOMATIC,
    liveliness_lease_duration=Infinite,
)


def make_topic(name="/text", type_name="std_msgs/msg/String"):
    return Topic(name, find_definition(type_name), [OFFER])


def string_cdr(text):
    data = text.encode() + b"\0"
    return b"\0\1\0\0" + len(data).to_bytes(4, "little") + data


def messages_in(path):
    with Reader(path) as reader:
        return [(connection.topic, time, bytes(data)) for connection, time, data in reader.messages()]


def mcap_records(path):
    """The top-level and chunked records of an uncompressed file, as (kind, content)."""
    data = next(path.glob("*.mcap")).read_bytes()
    assert data[:8] == data[-8:] == b"\x89MCAP0\r\n"

    def split(data):
        position = 0
        while position < len(data):
            length = int.from_bytes(data[position + 1 : position + 9], "little")
            kind, content = data[position], data[position + 9 : position + 9 + length]
            assert len(content) == length
            position += 9 + length
            if kind == 0x06:  # two times, size and checksum, the name of no compression, size
                yield from split(content[40:])
            else:
                yield kind, content

    return list(split(data[8:-8]))


@contextmanager
def file_size_limit(size):
    """No file may grow beyond `size` bytes: an unprivileged stand-in for a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_what_was_written_is_read_back(tmp_path):
    bag = Bag(tmp_path / "flight")
    topics = [make_topic("/a"), make_topic("/b")]
    expected = []
    for number in range(50):
        topic, data = topics[number % 2], string_cdr(f"message {number}")
        bag.write(topic, 1000 + number, 900 + number, data)
        expected.append((topic.name, 1000 + number, data))
    bag.close()
    assert messages_in(tmp_path / "flight") == expected
    with AnyReader([tmp_path / "flight"]) as reader:
        texts = [reader.deserialize(data, connection.msgtype).data for connection, _, data in reader.messages()]
    assert texts == [f"message {number}" for number in range(50)]
    assert [bag.counts()[topic.name] for topic in topics] == [25, 25]


def test_both_times_of_a_message_are_kept(tmp_path):
    bag = Bag(tmp_path / "flight")
    bag.write(make_topic(), 2000, 1500, string_cdr("x"))
    bag.close()
    [message] = [content for kind, content in mcap_records(tmp_path / "flight") if kind == 0x05]
    assert int.from_bytes(message[6:14], "little") == 2000
    assert int.from_bytes(message[14:22], "little") == 1500


def test_channels_carry_what_rosbag2_notes_about_a_topic(tmp_path):
    bag = Bag(tmp_path / "flight")
    topic = make_topic()
    bag.write(topic, 1, 1, string_cdr("x"))
    bag.close()
    in_chunk, in_summary = [content for kind, content in mcap_records(tmp_path / "flight") if kind == 0x04]
    assert in_chunk == in_summary
    assert topic.definition.type_hash.startswith("RIHS01_")
    assert b"topic_type_hash" in in_chunk
    assert topic.definition.type_hash.encode() in in_chunk
    assert b"offered_qos_profiles" in in_chunk


def test_metadata_is_what_every_rosbag2_since_humble_reads(tmp_path):
    bag = Bag(tmp_path / "flight")
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
    assert metadata["type_description_hash"] == topic.definition.type_hash
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
    bag = Bag(tmp_path / "flight")
    bag.add(make_topic())
    bag.close()
    assert messages_in(tmp_path / "flight") == []
    with Reader(tmp_path / "flight") as reader:
        assert [connection.topic for connection in reader.connections] == ["/text"]
    [statistics] = [content for kind, content in mcap_records(tmp_path / "flight") if kind == 0x0B]
    assert statistics[26:42] == bytes(16)  # first and last time


def test_zstd_makes_it_smaller_and_stays_readable(tmp_path):
    data = string_cdr("again and again " * 10_000)
    for name, compress in (("plain", False), ("packed", True)):
        bag = Bag(tmp_path / name, compress=compress)
        topic = make_topic()
        for number in range(20):
            bag.write(topic, number, number, data)
        bag.close()
    sizes = {name: (tmp_path / name / f"{name}.mcap").stat().st_size for name in ("plain", "packed")}
    assert sizes["packed"] < sizes["plain"] / 10
    assert messages_in(tmp_path / "packed") == messages_in(tmp_path / "plain")


def test_an_existing_directory_is_refused_and_left_alone(tmp_path):
    (tmp_path / "flight").mkdir()
    (tmp_path / "flight/precious").write_text("data")
    with pytest.raises(BagError, match=r"flight' exists already"):
        Bag(tmp_path / "flight")
    assert (tmp_path / "flight/precious").read_text() == "data"


def test_an_unwritable_folder_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BagError, match=r"can't be created: Not a directory"):
        Bag(tmp_path / "file/flight")


def test_no_room_for_the_header_leaves_nothing_behind(tmp_path):
    with file_size_limit(20), pytest.raises(BagError, match=r"can't be created: File too large \(\d+ MiB free"):
        Bag(tmp_path / "flight")
    assert not (tmp_path / "flight").exists()


MESSAGES = [string_cdr(f"{number}:" + "x" * 300_000) for number in range(20)]  # 4 to a chunk
LIMITS = [*range(100, 5_000, 600), *range(1_190_000, 1_220_000, 3_000), 3_000_000, 6_000_000, 6_002_500]


@pytest.mark.parametrize("limit", LIMITS)
def test_a_disk_that_fills_up_leaves_a_readable_beginning_or_nothing(tmp_path, limit):
    bag = Bag(tmp_path / "flight")
    topic = make_topic()
    with file_size_limit(limit):
        try:
            for number, data in enumerate(MESSAGES):
                bag.write(topic, 100 + number, 100 + number, data)
        except OSError:
            pass
        with pytest.raises(BagError, match=r"flight' failed: File too large") as caught:
            bag.close()
    if "removed" in str(caught.value):
        assert not (tmp_path / "flight").exists()
        assert limit < 5_000  # anything larger has room for an empty bag at least
    else:
        found = messages_in(tmp_path / "flight")
        assert f"with {len(found)} messages" in str(caught.value)
        assert len(found) == bag.counts()[topic.name] == bag.message_count
        # Chunks have 4 messages, and one more may be given up for the index.
        assert len(found) >= (limit // sum(map(len, MESSAGES[:4])) - 1) * 4
        assert found == [("/text", 100 + number, data) for number, data in enumerate(MESSAGES[: len(found)])]
        assert not list((tmp_path / "flight").glob("*.tmp"))


def test_no_room_for_metadata_alone_gives_up_the_index(tmp_path, monkeypatch):
    bag = Bag(tmp_path / "flight")
    topic = make_topic()
    for number, data in enumerate(MESSAGES[:8]):
        bag.write(topic, number, number, data)
    replaced = []
    write_text = type(tmp_path).write_text

    def full_once(path, text, *args):
        if not replaced:
            replaced.append(write_text(path, text[:10], *args))
            raise OSError(28, "No space left on device")
        return write_text(path, text, *args)

    monkeypatch.setattr(type(tmp_path), "write_text", full_once)
    with pytest.raises(BagError, match=r"No space left on device .*with 8 messages"):
        bag.close()
    assert [data for _, _, data in messages_in(tmp_path / "flight")] == MESSAGES[:8]
    with Reader(tmp_path / "flight") as reader:
        assert reader.message_count == 8
        assert (reader.start_time, reader.end_time) == (0, 8)  # the end is exclusive
    assert sorted(path.name for path in (tmp_path / "flight").iterdir()) == ["flight.mcap", "metadata.yaml"]


class SlowBag(Bag):
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
    writer = BackgroundWriter(bag, 5 * (len(data) + MESSAGE_OVERHEAD), on_failure=pytest.fail)
    taken = [writer.put(topic, number, number, data) for number in range(8)]
    bag.go_on.set()
    writer.close(5)
    assert taken == [True] * 5 + [False] * 3
    assert [time for _, time, _ in messages_in(tmp_path / "flight")] == list(range(5))
    assert topic.received - bag.counts()[topic.name] == 3


def test_room_is_given_back_when_a_message_is_written(tmp_path):
    bag = Bag(tmp_path / "flight")
    topic = make_topic()
    data = string_cdr("x" * 1000)
    writer = BackgroundWriter(bag, len(data) + MESSAGE_OVERHEAD, on_failure=pytest.fail)
    written = 0
    while written < 20:
        written += writer.put(topic, written, written, data)
    writer.close(5)
    assert [time for _, time, _ in messages_in(tmp_path / "flight")] == list(range(20))


def test_a_queue_under_pressure_is_written_at_once(tmp_path):
    bag = Bag(tmp_path / "flight")
    topic = make_topic()
    data = string_cdr("x" * 1000)
    writer = BackgroundWriter(bag, 8 * (len(data) + MESSAGE_OVERHEAD), on_failure=pytest.fail)
    written = 0
    while written < 1000:  # far more than there would be time for if each waited
        written += writer.put(topic, written, written, data)
    writer.close(5)
    assert bag.counts()[topic.name] == 1000


def test_closing_does_not_wait_for_a_disk_that_is_too_slow(tmp_path):
    bag = SlowBag(tmp_path / "flight")
    topic = make_topic()
    writer = BackgroundWriter(bag, 10**6, on_failure=pytest.fail)
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
    assert topic.received - bag.counts()[topic.name] == 9


def test_a_full_disk_is_reported_once_and_later_messages_are_dropped(tmp_path):
    bag = Bag(tmp_path / "flight")
    topic = make_topic()
    failures = []
    failed = threading.Event()

    def on_failure():
        failures.append(threading.current_thread().name)
        failed.set()

    writer = BackgroundWriter(bag, 10**8, on_failure)
    with file_size_limit(2_500_000):
        for number, data in enumerate(MESSAGES):
            writer.put(topic, number, number, data)
        assert failed.wait(TIMEOUT_S)
        assert not writer.put(topic, 99, 99, MESSAGES[0])
        with pytest.raises(BagError, match=r"with 8 messages"):
            writer.close(5)
    assert failures == ["bag writer"]
    assert topic.received - bag.counts()[topic.name] == len(MESSAGES) + 1 - 8


def test_errors_other_than_the_disks_are_raised_at_the_end(tmp_path, monkeypatch):
    bag = Bag(tmp_path / "flight")

    def broken(*message):
        raise ZeroDivisionError

    monkeypatch.setattr(bag, "write", broken)
    failed = threading.Event()
    writer = BackgroundWriter(bag, 10**6, failed.set)
    writer.put(make_topic(), 1, 1, string_cdr("x"))
    assert failed.wait(TIMEOUT_S)
    with pytest.raises(ZeroDivisionError):
        writer.close(5)
    assert messages_in(tmp_path / "flight") == []


def test_little_data_reaches_the_disk_soon(tmp_path, monkeypatch):
    monkeypatch.setattr("drone_bridge.tools.recording.background.FLUSH_INTERVAL_S", FLUSH_INTERVAL_S / 100)
    bag = Bag(tmp_path / "flight")
    flushed = threading.Event()
    flush = bag.flush

    def watched():
        flush()
        flushed.set()

    monkeypatch.setattr(bag, "flush", watched)
    writer = BackgroundWriter(bag, 10**6, on_failure=pytest.fail)
    writer.put(make_topic(), 1, 1, string_cdr("soon"))
    assert flushed.wait(TIMEOUT_S)
    assert b"soon" in (tmp_path / "flight/flight.mcap").read_bytes()
    writer.close(5)
