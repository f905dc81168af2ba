# SPDX-License-Identifier: Apache-2.0
"""drone_bridge.Vehicle with processes: the end of its script, and Ctrl-C. Its requests: test_vehicle_requests.py."""

import math
import signal
import subprocess
import sys

import pytest
from processes import Process
from repository import ROOT
from robot_peer import RobotPeer
from ros_session import wait_until
from std_msgs.msg import Bool

import drone_bridge
from drone_bridge.robot.codec import SkidSteerUpdate
from drone_bridge.ros.qos import latched
from drone_bridge.vehicle import _stamped


def test_a_place_without_z_keeps_the_height_and_a_yaw_in_degrees_is_refused():
    assert [math.isnan(_stamped(place, None, "").pose.position.z) for place in ((1, 2), (1, 2, 3))] == [True, False]
    with pytest.raises(drone_bridge.VehicleError, match="yaw is 90, and must be in rad"):
        _stamped((1, 2), 90, "")


def test_the_package_is_imported_without_ros():
    script = (
        "import sys, drone_bridge; print('rclpy' in sys.modules); drone_bridge.Vehicle; print('rclpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["False", "True"]  # once: a user's script never starts again
    with pytest.raises(AttributeError, match="no attribute 'Boat'"):
        drone_bridge.Boat  # noqa: B018


def test_a_script_may_end_without_closing_the_vehicle_or_close_it_twice(ros):
    script = "import drone_bridge\nvehicle = drone_bridge.Vehicle()\nfor _ in range({}):\n    vehicle.close()"
    for closes in (0, 2):
        asked = [sys.executable, "-c", script.format(closes)]
        done = subprocess.run(asked, check=False, capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stderr) == (0, "")


SCRIPTS = {
    "with": """
import threading, time, drone_bridge
with drone_bridge.Vehicle(patience_s=60.0) as vehicle:
    threading.Thread(target=vehicle.go_to, args=(1000, 0), daemon=True).start()
    time.sleep(1000)
""",
    "without with": """
import threading, time, drone_bridge
threading.Thread(target=drone_bridge.Vehicle(patience_s=60.0).go_to, args=(1000, 0), daemon=True).start()
time.sleep(1000)
""",
    "caught, as in a notebook": """
import os, drone_bridge
try:
    drone_bridge.Vehicle(patience_s=60.0).go_to(1000, 0)
except KeyboardInterrupt:
    os._exit(0)
""",
}


def drives(packet):
    return isinstance(packet, SkidSteerUpdate) and (packet.left or packet.right)


def stands(packet):
    return not packet.left and not packet.right


WITH, WITHOUT, CAUGHT = SCRIPTS
ENDS = (WITH, signal.SIGINT), (WITHOUT, signal.SIGINT), (CAUGHT, signal.SIGTSTP)


@pytest.mark.parametrize(("kind", "number"), ENDS)
def test_ctrl_c_leaves_the_vehicle_in_hold_and_still(ros, closing, kind, number, monkeypatch, tmp_path):
    """On the wire, for longer than a command is in force. The pattern that the goal replaced does not come back."""
    monkeypatch.setenv("ROS_HOME", str(tmp_path))  # no hold of an earlier test
    peer, held = closing(RobotPeer()), ros.subscribe(Bool, "held", latched())
    with Process.node("robot_bridge", port=peer.port), Process.node("rover_controller", pattern="circular"):
        peer.received.wait(drives)
        script = Process(sys.executable, "-c", SCRIPTS[kind])
        try:
            wait_until(lambda: ros.parameters("rover_controller")["pattern"] == "stationary", "the goal", period_s=0.5)
            peer.received.clear()
            peer.received.wait(drives)
            script.send(number)
            script.wait()
        finally:
            script.end()
        assert "Ended by KeyboardInterrupt. /robot_bridge: " in script.output
        held.wait(lambda message: message.data)
        wait_until(lambda: stands([each for each in peer.packets if isinstance(each, SkidSteerUpdate)][-1]), "its stop")
        peer.received.clear()
        assert not any(drives(peer.received.wait()) for _ in range(4))


@pytest.mark.parametrize(
    ("example", "topic", "status"), [("fly.py", "/take_off/_action/feedback", 130), ("drive.py", "/cmd_vel", 0)]
)
def test_ctrl_c_ends_an_example_without_a_traceback(ros, start_child, example, topic, status):
    """While the one waits for a controller, and the other one publishes."""
    script = start_child(sys.executable, ROOT / "examples" / example)
    wait_until(lambda: ros.node.count_subscribers(topic) + ros.node.count_publishers(topic), topic)
    script.send(signal.SIGINT)
    assert script.wait() == status
    assert script.lines == []
