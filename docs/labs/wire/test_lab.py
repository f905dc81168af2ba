# SPDX-License-Identifier: Apache-2.0
"""What the codec has to do; the other end is the project's own."""

import importlib
import os
import sys
from pathlib import Path

import pytest

from drone_bridge.protocols import telemetry

sys.path.insert(0, str(Path(__file__).parent))
lab = importlib.import_module(os.environ.get("LAB", "start"))
LINES = Path(__file__).with_name("wire.jsonl").read_bytes().splitlines()


@pytest.mark.parametrize("line", LINES)
def test_what_was_captured_is_read(line):
    seen, reader = lab.decode(line), telemetry.ControllerConnection()
    reader.receive_data(line)
    told = reader.next_event()
    assert seen.time == told.timestamp
    assert (seen.roll, seen.pitch) == (told.imu.orientation.roll, told.imu.orientation.pitch)
    assert seen.height == told.altimeter.altitude
    assert tuple(seen.velocity) == tuple(told.velocity)
    pad = told.landing_pad
    assert seen.pad == (pad and (pad.relative_x, pad.relative_y))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"roll":', b'"roll":"left","was":'),
        (b'"altitude":', b'"altitude":NaN,"was":'),
        (b'"velocity":{', b'"velocity":[1,2,3],"was":{'),
        (b'"altimeter":', b'"barometer":'),
        (b"{", b"\xff{"),
        (b"}", b""),
    ],
)
def test_what_is_no_such_document_is_refused(old, new):
    with pytest.raises(ValueError, match=r"."):
        lab.decode(LINES[0].replace(old, new))


@pytest.mark.parametrize("datagram", [b"", b"[]", b"7", b"null", b"[" * 100_000, b'{"imu":7}'])
def test_anything_else_is_refused(datagram):
    with pytest.raises(ValueError, match=r"."):
        lab.decode(datagram)


def test_the_drone_understands_commands():
    drone = telemetry.DroneConnection()
    drone.receive_data(lab.encode(0.5, 0.1, -0.2, 0.3))
    told = drone.next_event()
    assert (told.thrust, told.pitch, told.roll, told.yaw) == (0.5, 0.1, -0.2, 0.3)


@pytest.mark.parametrize("command", [(2.0, 0, 0, 0), (0, 0.6, 0, 0), (0, 0, 0, -0.6), (float("nan"), 0, 0, 0)])
def test_commands_that_it_would_misread_are_not_sent(command):
    with pytest.raises(ValueError, match=r"."):
        lab.encode(*command)
