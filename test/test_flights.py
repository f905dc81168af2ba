# SPDX-License-Identifier: Apache-2.0
"""The log of the last flights: what is kept, what goes first, and how it is listed."""

import os
import re
import shutil
import time

import pytest
from composition import launch
from ports import free_port
from processes import Process
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from ros_session import wait_until
from rosbags.rosbag2 import Reader
from sensor_msgs.msg import Image
from std_msgs.msg import String

from drone_bridge.tools.bags import flights
from drone_bridge.tools.recording.bag import MIB, BagError, Topic
from drone_bridge.tools.recording.definitions import find_definition
from drone_bridge.tools.recording.ring import PART, RingBag

QOS = (("best", ReliabilityPolicy.BEST_EFFORT), ("plain", ReliabilityPolicy.RELIABLE))
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


def make_topic(name, *offers):
    return Topic(name, find_definition("std_msgs/msg/String"), offers)


def cdr(size):
    return b"\0\1\0\0" + (size + 1).to_bytes(4, "little") + size * b"x" + b"\0"


def counts(path):
    with Reader(path) as reader:
        return {connection.topic: connection.msgcount for connection in reader.connections}


def age(path, seconds):
    os.utime(path, (time.time() - seconds,) * 2)


def test_the_oldest_flights_make_room_and_what_is_being_recorded_stays(tmp_path):
    for number in range(4):
        flight = tmp_path / f"flight{number}"
        flight.mkdir()
        (flight / "flight.mcap").write_bytes(bytes(MIB // 2))
        age(flight, 1000 - number)
    held = flights.hold(tmp_path / "flight0")
    ring = RingBag(tmp_path, 2 * MIB)
    ring.close()
    os.close(held)
    kept = {path.name for path in tmp_path.iterdir()} - {ring.path.name}
    assert kept == {"flight0", "flight2", "flight3"}


def test_a_long_flight_goes_on_in_bags_that_each_begin_with_what_is_latched(tmp_path):
    limit = MIB
    ring = RingBag(tmp_path, limit)
    latched, plain = make_topic("/tf_static", LATCHED), make_topic("/odom")
    ring.write(latched, 1, 1, cdr(10))
    message = cdr(10_000)
    for number in range(3 * limit // len(message)):
        ring.write(plain, number + 2, number + 2, message)
        ring.flush()
    ring.close()
    bags = sorted(tmp_path.iterdir(), key=lambda path: path.stat().st_mtime)
    assert sum(map(flights.size_of, bags)) <= limit
    assert len(bags) >= 1 / PART - 2
    assert all(counts(bag)["/tf_static"] == 1 for bag in bags)
    assert not any(map(flights.held_by_recorder, bags))


def test_a_disk_that_is_nearly_full_keeps_less(tmp_path, monkeypatch):
    for number in range(4):
        (tmp_path / f"flight{number}").mkdir()
        (tmp_path / f"flight{number}" / "flight.mcap").write_bytes(bytes(MIB // 4))
        age(tmp_path / f"flight{number}", 100 - number)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(MIB, MIB, 0))
    ring = RingBag(tmp_path, MIB)
    ring.close()
    assert {path.name for path in tmp_path.iterdir()} == {"flight3", ring.path.name}


def test_a_folder_that_can_not_be_is_told_of(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(BagError, match="No flights can be kept in"):
        RingBag(tmp_path / "file", MIB)


def test_two_that_begin_in_the_same_second_have_bags_of_their_own(tmp_path):
    one, other = RingBag(tmp_path, 2**30), RingBag(tmp_path, 2**30)
    assert one.path != other.path
    assert flights.held_by_recorder(one.path)
    one.close()
    other.close()


def test_the_log_leaves_images_out_and_is_listed(ros, tmp_path, capsys):
    with Process.node("recorder", bag=tmp_path, ring=16):
        ros.node.create_publisher(String, "latched", LATCHED).publish(String(data="once"))
        images = ros.node.create_publisher(Image, "image", 1)
        publishers = [
            ros.publisher(String, name, QoSProfile(depth=50, reliability=reliability)) for name, reliability in QOS
        ]
        for number in range(20):
            for publisher in publishers:
                publisher.publish(String(data=str(number)))
        assert not images.get_subscription_count()
        (bag,) = tmp_path.iterdir()
        assert flights.main([str(tmp_path)]) == 0
        assert "is being recorded" in capsys.readouterr().out
    counted = counts(bag)
    assert (counted["/latched"], counted["/best"], counted["/plain"]) == (1, 20, 20)
    assert "/image" not in counted
    assert flights.main([str(tmp_path)]) == 0
    assert re.search(rf"{bag} .* messages  /", capsys.readouterr().out)
    (bag / "metadata.yaml").unlink()
    (file,) = bag.glob("*.mcap")
    file.write_bytes(file.read_bytes()[:-8])
    flights.main([str(tmp_path)])
    assert "drone-bridge recover" in capsys.readouterr().out


def test_without_flights_the_list_says_so(tmp_path, capsys):
    assert flights.main([str(tmp_path / "none")]) == 1
    assert "There are no flights in" in capsys.readouterr().err


def test_a_launch_file_keeps_its_flight(domain, tmp_path, monkeypatch):
    monkeypatch.setenv("ROS_HOME", str(tmp_path))
    ports = {"dronegui_port": free_port(), "navdata_port": free_port()}
    with launch("dronegui.launch.xml", emulate=True, flights=True, **ports):
        wait_until(lambda: any(flights.size_of(path) > 20_000 for path in (tmp_path / "flights").glob("*")), "a flight")
    (bag,) = (tmp_path / "flights").iterdir()
    assert counts(bag)["/odom"]
