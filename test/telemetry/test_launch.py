# SPDX-License-Identifier: Apache-2.0
"""telemetry.launch.xml as a whole: an emulated drone lands on an emulated rover, and is recorded."""

import csv
import math
import signal

import pytest
from composition import INTERRUPTED, launch, wait_until_recorded
from rosbags.highlevel import AnyReader

LANDING_S = 120  # timeout for a busy machine
TOUCHDOWN = r"\[telemetry-\d\] touchdown on the"
#: Of a good landing, from the middle of the pad, m.
MAX_POSITION_ERROR = 0.35
#: Topics of a landing, in its namespace.
RECORDED = {
    *("imu/data", "velocity", "height", "landing_pad", "camera/image_raw", "camera/camera_info", "landed"),
    *("rover/odom", "cmd_vel", "drone_controller/state"),
}


@pytest.mark.exhaustive
def test_a_drone_lands_by_its_camera_and_all_of_it_is_recorded(tmp_path, free_port):
    """With a namespace and a frame prefix."""
    bag = tmp_path / "flight"
    programs = {"emulate": True, "control": True, "record": True, "bag": bag}
    names = {"telemetry_port": free_port, "namespace": "d1", "frame_prefix": "d1/"}
    way = tmp_path / "way.csv"
    landing = {"rover_pattern": "circular", "use_camera": True, "landing_seed": 4, "telemetry_trajectory": way}
    with launch("telemetry.launch.xml", **programs, **names, **landing) as composition:
        wait_until_recorded(bag, [f"/d1/{topic}" for topic in RECORDED])
        composition.wait_for_line(TOUCHDOWN, LANDING_S)
        composition.wait_for_line("landed: ")
        assert composition.stop(signal.SIGINT) == INTERRUPTED, composition.output
        assert composition.count_lines("Traceback|gets SIGKILL") == 0

    *_, last = csv.DictReader(way.open())
    x, y, z, rover_x, rover_y = (float(last[name]) for name in ("x", "y", "z", "rover_x", "rover_y"))
    assert math.hypot(x - rover_x, y - rover_y) < MAX_POSITION_ERROR
    assert z > 0.3, "the plate is above the ground"
    content = {}
    with AnyReader([bag]) as reader:
        for connection, _, data in reader.messages():
            content.setdefault(connection.topic.removeprefix("/d1/"), []).append((connection.msgtype, data))
        assert content.keys() >= RECORDED
        odometry = reader.deserialize(content["rover/odom"][-1][1], content["rover/odom"][-1][0])
        assert (odometry.header.frame_id, odometry.child_frame_id) == ("d1/map", "d1/rover/base_link")
        states = [reader.deserialize(data, kind).state for kind, data in content["drone_controller/state"]]
    assert states[-1] == "landed"
