# SPDX-License-Identifier: Apache-2.0
"""Robots of drone_bridge/robots as processes: emulator, operator, bridge, server, launch file, serial line."""

import contextlib
import os
import re
import signal
import socket
import time
from functools import partial

import pytest
from geometry_msgs.msg import Twist
from mcap.reader import make_reader
from nav_msgs.msg import Odometry
from ports import free_port, free_ports
from processes import TIMEOUT_S, executable
from ros_session import module_ros, repeating, wait_until
from sensor_msgs.msg import CameraInfo, Image, Imu

from drone_bridge.robots.kobuki import DRIVE, packed
from drone_bridge.session.stall_detector import StallDetector

ros = module_ros()
#: Timeout of the tests of one file, s.
CHECK_S = 280.0


@pytest.fixture
def drone_bridge(start_child):
    return lambda *words: start_child(executable("drone-bridge"), *words)


@pytest.fixture
def node(start_child):
    def start_node(robot, role, *arguments, **parameters):
        given = [f"{name}:={value}" for name, value in parameters.items()]
        return start_child(executable(f"robot_class_{role}"), robot, *given, "--ros-args", *arguments)

    return start_node


def emulated(drone_bridge, name, *options):
    """Start an emulated robot. Return its process and port."""
    child = drone_bridge("emulate", name, "--port", "0", *options)
    return child, int(child.wait_for_line(r"listening on 127\.0\.0\.1:(\d+)")[1])


def ended(robot):
    """Stop an emulated robot. Return its place and heading by its last line."""
    assert robot.stop() == 0
    return [float(number) for number in re.findall(r"-?\d+\.\d+", robot.wait_for_line("ended: at .*")[0])]


@contextlib.contextmanager
def driven(ros, **motion):
    """Command a velocity repeatedly."""
    publisher, twist = ros.publisher(Twist, "cmd_vel"), Twist()
    twist.linear.x, twist.angular.z = motion.get("forward", 0.0), motion.get("turn", 0.0)
    with repeating(lambda _: publisher.publish(twist)):
        yield


def test_the_camera_of_a_drone_is_shown_with_its_odometry(drone_bridge, node, ros):
    pytest.importorskip("av", reason="PyAV is not installed")
    state_port, camera_port = free_ports(2)
    ports = {"state_port": state_port, "camera_port": camera_port}
    options = [f"--{name.replace('_', '-')}={number}" for name, number in ports.items()]
    drone, port = emulated(drone_bridge, "tello", *options, "--in-the-air")
    node("tello", "bridge", port=port, **ports)
    images, infos = ros.subscribe(Image, "camera/image_raw"), ros.subscribe(CameraInfo, "camera/camera_info")
    odometry, imu = ros.subscribe(Odometry, "odom"), ros.subscribe(Imu, "imu/data")
    image = images.wait()
    assert (image.width, image.height, image.header.frame_id) == (960, 720, "camera_optical_frame")
    assert list(infos.wait().k) == [921.2, 0.0, 459.9, 0.0, 919.0, 351.2, 0.0, 0.0, 1.0]
    assert imu.wait().linear_acceleration.z == pytest.approx(9.8, abs=0.1)
    with driven(ros, forward=0.5):
        odometry.wait(lambda message: message.pose.pose.position.x > 0.3)
    x, y, z, _ = ended(drone)
    assert x > 0.25
    assert (y, z) == pytest.approx((0.0, 1.0), abs=0.1)


def test_an_emulated_robot_executes_what_it_was_sent_in_a_stall(drone_bridge, closing):
    emulator, port = emulated(drone_bridge, "tello", "--state-port", free_port())
    client = closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    client.settimeout(TIMEOUT_S)
    client.connect(("127.0.0.1", port))
    client.send(b"command")
    assert client.recv(100) == b"ok"
    emulator.send(signal.SIGSTOP)
    wait_until(emulator.is_stopped, "a stop")
    client.send(b"takeoff")
    time.sleep(2 * StallDetector.STALL_S)  # what is tested is a time
    emulator.send(signal.SIGCONT)
    assert client.recv(100) == b"ok"


SECURED = """
from drone_bridge.robots.robomaster import RoboMaster

class Secured(RoboMaster):
    name, summary, login = "secured", "a robot with a password", ""

    def handshake(self):
        yield b"password %s;" % self.login.encode()
        yield from super().handshake()

    def decode_command(self, packet):
        if not packet.startswith(b"password"):
            return super().decode_command(packet)
        print(packet.decode(), flush=True)
        return ()
"""
LOGIN = "c2VjcmV0"


def test_a_stop_saves_the_last_minute_of_the_wire_without_the_login(start_child, ros, tmp_path):
    (tmp_path / "secured.py").write_text(SECURED)
    facts = tmp_path / "secured-1.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: secured\nVersion: 1\n")
    (facts / "entry_points.txt").write_text("[drone_bridge.protocols]\nsecured = secured:Secured\n")
    wire = tmp_path / "wire"
    given = {"PYTHONPATH": str(tmp_path), "DRONE_BRIDGE_WIRE": str(wire), "ROBOT_LOGIN": LOGIN}
    start = partial(start_child, env={**os.environ, **given})
    robot, port = emulated(lambda *words: start(executable("drone-bridge"), *words), "secured")
    bridge = start(executable("robot_class_bridge"), "secured", f"port:={port}", "login:=ROBOT_LOGIN", "--ros-args")
    robot.wait_for_line(f"password {LOGIN};")
    bridge.wait_for_line("Connected")
    with driven(ros, forward=0.2):
        robot.wait_for_line("moves at")
        ros.switch("secured_bridge/hold", True)
    wait_until(lambda: list(wire.glob("*.mcap")), "the last minute", timeout_s=60)
    assert bridge.stop() == 0
    (file,) = wire.glob("*.mcap")
    with file.open("rb") as opened:
        said = b"".join(message.data for _, _, message in make_reader(opened).iter_messages())
    assert b"chassis speed x 0.2" in said
    assert b"chassis push position" in said, "what the robot reports"
    assert LOGIN.encode() not in said + file.read_bytes()
    shown = start(executable("drone-bridge"), "wire", "show", file)
    assert shown.wait() == 0, shown.output
    assert shown.count_lines(r"<- .*position") > 10


@pytest.mark.exhaustive
def test_a_client_flies_the_drone_and_calls_services_through_the_relay(drone_bridge, node):
    state_port, server_port, client_port = free_ports(3)
    emulator, port = emulated(drone_bridge, "tello", "--state-port", state_port)
    node("tello", "bridge", port=port, state_port=state_port)
    node("tello", "server", port=server_port, state_port=client_port)
    plan = ("--plan", "2s forward 4, 1s", "--state-port", client_port)  # slower through the server: served_speeds
    operator = drone_bridge("operate", "tello", "--port", server_port, *plan)
    while operator.wait() and operator.count_lines("no node offers"):  # the service is discovered apart from topics
        operator = drone_bridge("operate", "tello", "--port", server_port, *plan)
    operator.wait_for_line("takeoff: ok")
    assert operator.wait() == 0, operator.output
    assert operator.count_lines("height 1") > 0, "the state came through, too"
    assert ended(emulator)[0] > 0.3


def test_a_robot_on_a_serial_line_is_stopped_when_its_bridge_is_killed(drone_bridge, node, ros, tmp_path):
    """It has no watchdog."""
    line = tmp_path / "ttyUSB0"
    robot = drone_bridge("emulate", "kobuki", "--pty", line)
    robot.wait_for_line(f"listening on {line}")
    line.write_bytes(packed((DRIVE, b"\0")))  # without its numbers
    robot.wait_for_line("A packet is dropped")
    bridge = node("kobuki", "bridge", serial=line)
    bridge.wait_for_line(r"WARN.*no watchdog")
    with driven(ros, forward=0.5, turn=0.2):
        robot.wait_for_line("moves at")
        bridge.send(signal.SIGKILL)
        bridge.wait()
        robot.wait_for_line("stands at")
    assert robot.stop() == 0
    assert robot.count_lines("Serving") == 1
    assert not line.is_symlink()


def test_a_check_says_that_a_robot_without_a_watchdog_moves_on(drone_bridge):
    asked = drone_bridge("check", "kobuki", "-k", "whose_bridge_and_its_child_are_killed")
    assert asked.wait(CHECK_S) == 0, asked.output
    asked.wait_for_line("kobuki: .* moves on")


@pytest.mark.exhaustive
@pytest.mark.parametrize("role", ["bridge", "server", "emulator"])
def test_an_unknown_robot_is_refused_with_a_sentence(start_child, role):
    for words in (("nobody",), ()):
        refused = start_child(executable(f"robot_class_{role}"), *words)
        assert refused.wait() == 2
        refused.wait_for_line(r"[Rr]obot '(nobody)?'")
