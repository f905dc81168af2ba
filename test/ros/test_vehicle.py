# SPDX-License-Identifier: Apache-2.0
"""drone_bridge.Vehicle with processes: holds, errors, and Ctrl-C. Its requests without: test_vehicle_requests.py."""

import math
import signal
import subprocess
import sys

import pytest
from played_vehicle import Vehicle as PlayedVehicle
from processes import Process
from repository import ROOT
from robot_peer import RobotPeer
from ros_session import wait_until
from std_msgs.msg import Bool
from std_srvs.srv import SetBool

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


def test_what_goes_wrong_is_raised_as_a_sentence(ros):
    with drone_bridge.Vehicle(patience_s=0.5) as vehicle:
        with pytest.raises(drone_bridge.VehicleError, match="No node serves /go_to: start a controller"):
            vehicle.go_to(1, 0)
        with pytest.raises(drone_bridge.VehicleError, match="There is no odometry on /odom"):
            vehicle.pose  # noqa: B018
    with Process.node("drone_controller", behaviour="goals"), drone_bridge.Vehicle(patience_s=60.0) as vehicle:
        PlayedVehicle(ros)
        with pytest.raises(drone_bridge.VehicleError, match=r"The position is \(nan, 0.0, 0.0\)"):
            vehicle.go_to(math.nan, 0, 0)
        ros.node.create_publisher(Bool, "held", latched()).publish(Bool(data=True))
        wait_until(lambda: "is held" in refusal(vehicle), "the hold")


def test_a_script_may_end_without_closing_the_vehicle_or_close_it_twice(ros):
    script = "import drone_bridge\nvehicle = drone_bridge.Vehicle()\nfor _ in range({}):\n    vehicle.close()"
    for closes in (0, 2):
        asked = [sys.executable, "-c", script.format(closes)]
        done = subprocess.run(asked, check=False, capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stderr) == (0, "")


@pytest.fixture
def bridge(ros):
    """Stand-in for a bridge in the namespace /boat: its hold and its goals' names, and its calls."""
    calls = []

    def serve(request, response):
        calls.append(request.data)
        response.success, response.message = is_willing[0], "Held." if request.data else "Following."
        return response

    is_willing = [True]
    made = ros.node.create_service(SetBool, "/boat/boat_bridge/hold", serve)
    yield calls, is_willing
    ros.node.destroy_service(made)


def test_a_new_program_resumes_and_holds_the_vehicle(bridge):
    calls, is_willing = bridge
    with drone_bridge.Vehicle("/boat", patience_s=60.0) as vehicle:
        assert vehicle.resume() == "/boat/boat_bridge: Following."
    with drone_bridge.Vehicle("/boat", patience_s=60.0) as vehicle:
        assert vehicle.hold() == "/boat/boat_bridge: Held."
        assert calls == [False, True]
        is_willing[0] = False
        with pytest.raises(drone_bridge.VehicleError, match="Following"):
            vehicle.resume()


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_a_program_that_has_commanded_nothing_holds_nothing(bridge, error):
    calls, _ = bridge
    vehicle = drone_bridge.Vehicle("/boat", patience_s=60.0)
    assert vehicle.resume()  # it exists
    with pytest.raises(error), vehicle:
        raise error
    with pytest.raises(drone_bridge.VehicleError), drone_bridge.Vehicle("/boat", patience_s=3.0) as unserved:
        unserved.take_off()
    assert calls == [False]


def refusal(vehicle):
    try:
        vehicle.go_to(0, 0)
    except drone_bridge.VehicleError as error:
        return str(error)
    return ""


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
ENDS = (WITH, signal.SIGINT), (WITHOUT, signal.SIGINT), (CAUGHT, signal.SIGTSTP), (CAUGHT, signal.SIGTERM)


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
