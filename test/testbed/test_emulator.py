# SPDX-License-Identifier: Apache-2.0
"""The emulator as a process: its output, its exit code and its data on the wire."""

import csv
import math
from types import SimpleNamespace

import pytest
from processes import Process
from testbed_autopilot import AutopilotPeer

from drone_bridge.testbed.codec import ConnectionClosed, MotionParameters, SensorFrame
from drone_bridge.testbed.vehicle.emulator.__main__ import parse, sensed, stream_options

EMULATOR = ("drone_bridge.testbed.vehicle.emulator", "--port", 0, "--width", "20", "--height", "10")
HOVER = MotionParameters(0, 0, 0, 9.81)


@pytest.mark.parametrize("has_default_sockets", [False, True])
def test_split_answer_is_acknowledged_at_once_unless_default_sockets(has_default_sockets):
    # Otherwise the pieces of a Java autopilot's reply, with Nagle's algorithm, cost 40 ms per step.
    options = stream_options(parse(["--default-sockets"] * has_default_sockets))
    assert options.acknowledges_at_once is not has_default_sockets
    assert options.waits_for_acknowledgements is has_default_sockets


def test_one_of_ten_positions_jumps():
    frame, lie = SensorFrame(b"", b"", 2.0, 0.0, 0.0, 0.0, (1.0, 2.0, 3.0)), parse(["--lie", "position-jumps"]).lie
    places = [sensed(SimpleNamespace(sense=lambda: frame, steps=step), lie).position for step in range(1, 21)]
    assert [place == (1.0, 2.0, 3.0) for place in places] == [*[True] * 9, False] * 2


@pytest.fixture
def emulate(start_child):
    """Start an emulator; return it with its port."""

    def start(*arguments):
        emulator = start_child(*EMULATOR, *arguments, make=Process.module)
        return emulator, int(emulator.wait_for_line(r"^listening on 127\.0\.0\.1:(\d+)")[1])

    return start


def fly(autopilot, motion=HOVER, frames=math.inf):
    """Answer frames, all or a number of them; return the received data."""
    events = []
    while len(events) < frames:
        events.append(autopilot.receive())
        if isinstance(events[-1], ConnectionClosed):
            break
        autopilot.answer(motion)
    return events


def test_trajectory_has_a_row_for_every_state(emulate, tmp_path):
    path = tmp_path / "flight.csv"
    emulator, port = emulate("--duration", "0.4", "--rate", "10", "--target", "0 0 -5", "--trajectory", str(path))
    with AutopilotPeer(port) as autopilot:
        autopilot.receive()
        fly(autopilot, MotionParameters(10, 0, 0, 5))
    assert emulator.wait() == 0
    with path.open() as file:
        rows = list(csv.DictReader(file))
    assert [float(row["time"]) for row in rows] == pytest.approx([0, 0.1, 0.2, 0.3, 0.4])
    assert float(rows[0]["distance"]) == 5
    assert float(rows[-1]["pitch"]) == pytest.approx(4)
    assert (float(rows[-1]["pitch_rate"]), float(rows[-1]["thrust"])) == (10, 5)
