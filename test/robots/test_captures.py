# SPDX-License-Identifier: Apache-2.0
"""Bytes of real robots, by other projects: see captures/robots/README.md."""

import math
import re
from pathlib import Path

import pytest

from drone_bridge.kind import Side
from drone_bridge.robot_class import Telemetry
from drone_bridge.robot_class.connection import RobotClassConnection
from drone_bridge.robots import create2
from drone_bridge.robots.kobuki import Kobuki
from drone_bridge.robots.neato import Neato
from drone_bridge.robots.robomaster import RoboMaster

CAPTURES = Path(__file__).parents[1] / "captures" / "robots"


def heard(robot, name, link=None):
    client = RobotClassConnection(robot, Side.OPERATOR, is_line=link is None)
    client.receive_data((CAPTURES / f"{name}.bin").read_bytes(), link)
    return [each.meaning for each in client.events()]


def test_a_botvac_has_a_scan_a_battery_and_its_wheels():
    client, told, text = Neato(), None, (CAPTURES / "neato_botvac.bin").read_text()
    for answer in text.split("\n\n"):
        if answer.strip():
            told = client.decode_report(answer.strip().replace("\n", "\r\n").encode() + b"\r\n\x1a")
    assert (told.voltage, told.charge, told.is_charging, client.wheels.is_blocked) == (12.98, 0.84, False, False)
    assert (told.position, told.velocity.forward) == ((0.0, 0.0, 0.0), 0.0)
    at = {0: 1.255, 2: math.inf, 12: 2.213, 64: 0.276, 65: 0.272, 124: 0.148, 359: 1.256}  # that at 64 is doubtful
    assert {angle: told.scan[angle] for angle in at} == at
    assert sum(map(math.isfinite, told.scan)) == len(re.findall(r"^\d+,[1-9]\d*,\d+,0$", text, re.MULTILINE)) > 100


def test_a_create_2_has_its_values_and_a_frame_with_lost_bytes_is_none(monkeypatch):
    values = {22: 15776, 24: 20, 25: 1890, 26: 2068, 35: 3, 43: 2813, 44: 2409}
    values |= dict.fromkeys((13, 21, 39, 40, 41, 42, 45, 58), 0)
    for name in ("NEEDED", "NUMBERS"):
        monkeypatch.setattr(create2, name, tuple(values))
    read = []
    monkeypatch.setattr(create2.Create2, "decode_report", lambda self, frame: read.append(create2.sensors(frame)))
    assert [heard(create2.Create2, name) for name in ("create2_stream", "create2_broken")] == [[None], []]
    assert read == [values]


def test_pushes_of_a_robomaster_that_we_did_not_ask_for_are_no_answers():
    first, status, gimbal, *last = heard(RoboMaster, "robomaster_push", "state")
    assert (status, gimbal, last[1].position) == (None, None, (0.001, 0.0, 0.0))
    assert [math.degrees(each.yaw) for each in (first, last[1])] == pytest.approx([-0.423, -0.422])


def test_a_kobuki_of_firmware_1_2_begins_a_packet_as_the_emulated_one():
    """See yujinrobot/kobuki issue 382, of 4.268 s after its start. A checksum of the packet before is skipped."""
    client = RobotClassConnection(Kobuki, Side.OPERATOR, is_line=True)
    client.receive_data(bytes.fromhex("F6 AA 55 4D 01 0F AC 10 00 00 00"))
    assert list(client.events()) == []
    assert (client.skipped[0], client.inside_message) == (1, True)
    packet = Kobuki().encode_report(Telemetry((0.0, 0.0, 0.0), 0.0, time_s=4.268))
    assert packet[:10] == bytes.fromhex("AA 55 4D 01 0F AC 10 00 00 00")
