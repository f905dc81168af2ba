# SPDX-License-Identifier: Apache-2.0
"""telemetry.launch.xml as a whole: an emulated drone lands on an emulated rover, and is recorded."""

import signal

import pytest
from composition import INTERRUPTED, launch, wait_until_recorded
from nav_msgs.msg import Odometry
from rosbags.highlevel import AnyReader
from web_page import address_of
from web_viewer import Viewer

from drone_bridge.msg import ControllerState

LANDING_S = 120  # timeout for a busy machine
TOUCHDOWN = r"\[telemetry-\d\] touchdown on the"  # the quality is measured in measure/
#: Topics of a landing, in its namespace.
RECORDED = {
    *("imu/data", "velocity", "height", "landing_pad", "camera/image_raw", "camera/camera_info", "landed"),
    *("rover/odom", "cmd_vel", "drone_controller/state"),
}


@pytest.mark.exhaustive
def test_a_drone_lands_by_its_camera_and_all_of_it_is_recorded(tmp_path, free_port):
    """With a namespace and a frame prefix."""
    bag = tmp_path / "flight"
    with launch(
        "telemetry.launch.xml",
        emulate=True,
        control=True,
        record=True,
        bag=bag,
        telemetry_port=free_port,
        namespace="d1",
        frame_prefix="d1/",
        rover_pattern="circular",
        use_camera=True,
        landing_seed=4,
    ) as composition:
        wait_until_recorded(bag, [f"/d1/{topic}" for topic in RECORDED])
        composition.wait_for_line(TOUCHDOWN, LANDING_S)
        composition.wait_for_line("landed: ")
        assert composition.stop(signal.SIGINT) == INTERRUPTED, composition.output
        assert composition.count_lines("Traceback|gets SIGKILL") == 0

    content = {}
    with AnyReader([bag]) as reader:
        for connection, _, data in reader.messages():
            content.setdefault(connection.topic.removeprefix("/d1/"), []).append((connection.msgtype, data))
        assert content.keys() >= RECORDED
        odometry = reader.deserialize(content["rover/odom"][-1][1], content["rover/odom"][-1][0])
        assert (odometry.header.frame_id, odometry.child_frame_id) == ("d1/map", "d1/rover/base_link")
        states = [reader.deserialize(data, kind).state for kind, data in content["drone_controller/state"]]
    assert states[-1] == "landed"


def test_the_rover_controller_leads_the_emulated_rover(ros, free_port):
    """After the drone's take-off, on a circle from the origin with its centre on the left."""
    states = ros.subscribe(ControllerState, "drone_controller/state")
    told = ros.subscribe(Odometry, "rover/odom")
    with launch(
        "telemetry.launch.xml",
        emulate=True,
        control=True,
        rover=True,
        telemetry_port=free_port,
        rover_pattern="circular",
        rover_amplitude=1.5,
        landing_start="ground",
    ) as composition:
        composition.wait_for_line("Pattern circular: 0.5 m/s, 1.5 m")
        states.wait(lambda state: state.state == "searching")
        assert told.wait(lambda odometry: odometry.pose.pose.position.y > 0.5).pose.pose.position.z == 0.15


@pytest.mark.exhaustive
def test_the_landing_starts_with_the_first_viewer(ros, free_port):
    states = ros.subscribe(ControllerState, "drone_controller/state")
    options = {"emulate": True, "control": True, "view": True, "view_port": 0, "landing_start": "ground"}
    with launch("telemetry.launch.xml", wait_for_viewer=True, telemetry_port=free_port, **options) as composition:
        address = address_of(composition)
        states.wait(lambda state: state.reason.startswith("for a call of land_on_pad"))
        with Viewer(address):
            states.wait(lambda state: state.state == "searching")
