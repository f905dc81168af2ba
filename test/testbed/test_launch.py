# SPDX-License-Identifier: Apache-2.0
"""testbed.launch.xml as a whole: an emulated drone flies to its target, is recorded, and hovers."""

import csv
import shlex
import signal
from pathlib import Path

import pytest
from ament_index_python.packages import get_package_share_directory
from composition import INTERRUPTED, launch, wait_until_recorded
from rosbags.highlevel import AnyReader

from drone_bridge.ros.time import seconds_of
from drone_bridge.tools.launch.evaluate import evaluate

TESTBED_LAUNCH = Path(get_package_share_directory("drone_bridge")) / "launch" / "testbed.launch.xml"
FLIGHT_S = 60  # timeout for a busy machine
FRAME_RATE = 60.0  # of the emulated testbed, per simulated second
SMALL = {"testbed_image_width": 100, "testbed_image_height": 100}
IMAGE_BYTES = 100 * 100 * 3
HOVER = {"pitch_rate": 0.0, "roll_rate": 0.0, "yaw_rate": 0.0, "thrust": 9.81}


def last_motion(trajectory):
    """Last command that the emulated drone has flown with."""
    with trajectory.open() as file:
        *_, last = csv.DictReader(file)
    return {name: float(last[name]) for name in HOVER}


def bag_content(path):
    """Messages of each topic, read with only the bag."""
    content = {}
    with AnyReader([path]) as reader:
        for connection, _, data in reader.messages():
            content.setdefault(connection.topic, []).append(reader.deserialize(data, connection.msgtype))
    return content


CAMERA_TOPICS = {f"/d1/{side}/{topic}" for side in ("left", "right") for topic in ("image_raw", "camera_info")}
ONCE = {"/d1/drone_properties", "/tf_static"}
EACH_FRAME = {"/d1/imu/data", "/d1/odom", "/tf", *CAMERA_TOPICS}
ANSWERS = {"/d1/cmd_rates", "/d1/drone_controller/state"}
RECORDED = ONCE | EACH_FRAME | ANSWERS


def test_the_target_is_reached_and_all_of_it_is_recorded(tmp_path, free_port, monkeypatch):
    """In lockstep and simulated time, at full speed, with a namespace and a frame prefix."""
    monkeypatch.setenv("PYTHONHASHSEED", "1")  # read at the start, so these are started as users do it, not forked
    trajectory, bag = tmp_path / "flight.csv", tmp_path / "flight"
    programs = {"emulate": True, "control": True, "record": True, "bag": bag}
    names = {"testbed_port": free_port, "namespace": "d1", "frame_prefix": "d1/"}
    modes = {"attitude_layout": "pose", "testbed_sync": "lockstep", "stamp_source": "wire", "testbed_pace": "--fast"}
    given = {**programs, **names, **modes, "testbed_trajectory": trajectory, **SMALL}
    with launch("testbed.launch.xml", **given) as composition:
        reached = composition.wait_for_line(r"target reached at t=(\d+\.\d+) s", FLIGHT_S)
        composition.wait_for_line("holding: target in sight", FLIGHT_S)
        # The drone hovers there until the recorder has discovered all topics, and for some more frames.
        wait_until_recorded(bag, RECORDED, more_bytes=60 * 2 * IMAGE_BYTES)
        assert composition.stop(signal.SIGINT) == INTERRUPTED, composition.output
        assert composition.leftovers() == []
        assert composition.warnings() == []
        assert composition.count_lines("has not stopped, and gets|Traceback") == 0
    reached_s = float(reached[1])

    assert last_motion(trajectory) == pytest.approx(HOVER, rel=1e-6)

    content = bag_content(bag)
    assert content.keys() >= RECORDED
    # Simulated time: the stamps are those of the flight, and commands have the stamps of their frames.
    stamps = {
        topic: [seconds_of(message.header.stamp) for message in content[topic]]
        for topic in EACH_FRAME - {"/tf"} | ANSWERS
    }
    for topic, times in stamps.items():
        assert len(times) > 10, topic
        assert reached_s < times[-1] < reached_s + 10 * FLIGHT_S, topic
        assert times == sorted(times), topic
    commands = set(stamps["/d1/cmd_rates"])  # of frames, some of which a delayed recorder may miss
    assert len(commands & set(stamps["/d1/imu/data"])) > 10
    assert all(abs(stamp * FRAME_RATE - round(stamp * FRAME_RATE)) < 0.01 for stamp in commands)
    # Namespace and prefix are applied.
    frame_ids = {message.header.frame_id for topic in CAMERA_TOPICS for message in content[topic]}
    assert frame_ids == {"d1/left_camera_optical_frame", "d1/right_camera_optical_frame"}
    transforms = [transform for message in content["/tf"] + content["/tf_static"] for transform in message.transforms]
    names = {name for transform in transforms for name in (transform.header.frame_id, transform.child_frame_id)}
    assert names == {f"d1/{name}" for name in ("map", "odom", "base_link", "airframe")} | {
        f"d1/{side}_camera_{kind}" for side in ("left", "right") for kind in ("link", "optical_frame")
    }
    image = content["/d1/left/image_raw"][-1]
    assert (image.width, image.height, image.encoding, len(image.data)) == (100, 100, "rgb8", IMAGE_BYTES)
    assert content["/d1/drone_properties"][0].mass == 1.0
    assert content["/d1/drone_controller/state"][-1].state == "holding"


@pytest.mark.parametrize(("bridge", "testbed"), [("connect", "listen"), ("listen", "connect")])
def test_one_of_both_listens(tmp_path, bridge, testbed):
    given = {"emulate": "true", "testbed_bridge_role": bridge, "attitude_layout": "pitch_roll"}
    emulator, node = evaluate(TESTBED_LAUNCH, given, tmp_path)[:2]
    command = shlex.join(emulator.command)
    assert f" --role {testbed} " in command
    assert " --layout pitch_roll " in command
    assert f"role: {bridge}" in "".join(node.files.values()).replace('"', "")
