# SPDX-License-Identifier: Apache-2.0
"""Messages that a robot in one class fills itself, with values of the right and of a wrong type."""

import os
import socket

import pytest
from processes import executable
from ros_session import repeating
from std_msgs.msg import Float32

ROBOT = """
from std_msgs.msg import Float32
from drone_bridge.robot_class import Robot, Telemetry, Udp

class Voltmeter(Robot):
    name, control = "voltmeter", Udp(7701)
    topics = {"volts": "std_msgs/Float32"}

    def encode_command(self, velocity):
        return b"drive"

    def decode_report(self, packet):
        kind, _, value = packet.decode().partition(" ")
        return Telemetry(extra={"volts": Float32(data=float(value) if kind == "number" else value)})
"""


@pytest.fixture
def environment(tmp_path):
    metadata = tmp_path / "voltmeter-0.1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: voltmeter\nVersion: 0.1\n")
    (metadata / "entry_points.txt").write_text("[drone_bridge.protocols]\nvoltmeter = voltmeter:Voltmeter\n")
    (tmp_path / "voltmeter.py").write_text(ROBOT)
    return {"PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}


def test_a_packet_is_rejected_whose_message_gets_a_text_for_a_number(start_child, environment, ros):
    received = ros.subscribe(Float32, "volts")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as robot:
        robot.bind(("127.0.0.1", 0))
        bridge = start_child(
            executable("robot_class_bridge"), "voltmeter", f"port:={robot.getsockname()[1]}", env=environment
        )
        _, client = robot.recvfrom(64)
        with repeating(lambda _: robot.sendto(b"text 12.6", client)):
            bridge.wait_for_line(
                "A packet is dropped: voltmeter.py:[0-9]+, in decode_report: .*'data' field must be of type 'float'"
            )
        with repeating(lambda _: robot.sendto(b"number 12.5", client)):
            assert received.wait().data == 12.5
    assert bridge.stop() == 0
