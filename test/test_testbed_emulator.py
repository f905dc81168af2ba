# SPDX-License-Identifier: Apache-2.0
"""The emulator as its users meet it: a process, its output, its exit code and what it says on the wire."""

import csv
import math
import signal
import socket
import sys

import pytest
from processes import Process

from drone_bridge.testbed.codec import (
    NEED_DATA,
    AutopilotConnection,
    ConnectionClosed,
    Constants,
    MotionParameters,
)
from drone_bridge.testbed.emulator.__main__ import parse, stream_options
from drone_bridge.wire.events import RemoteProtocolError

TIMEOUT = 60  # s
SMALL = ("--width", "20", "--height", "10")
HOVER = MotionParameters(0, 0, 0, 9.81)


class Emulator(Process):
    """An emulator whose lines are looked at one after the other."""

    def __init__(self, *arguments):
        super().__init__(sys.executable, "-m", "drone_bridge.testbed.emulator", "--port", 0, *SMALL, *arguments)
        self._seen = 0

    def line(self, start):
        """Wait for the next line that starts so, and return the rest of it."""

        def find():
            for line in self.lines[self._seen :]:
                self._seen += 1
                if line.startswith(start):
                    return [line[len(start) :].strip()]
            return None

        with self._changed:
            found = self._changed.wait_for(find, TIMEOUT)
        assert found, f"no line starts with {start!r} in:\n{self.output}"
        return found[0]

    def port(self):
        return int(self.line("listening on 127.0.0.1:"))


@pytest.mark.parametrize("has_default_sockets", [False, True])
def test_an_answer_in_pieces_is_acknowledged_at_once_unless_sockets_are_as_by_default(has_default_sockets):
    # Else the pieces of a Java autopilot's answer, with Nagle's algorithm on, cost 40 ms per step.
    options = stream_options(parse(["--default-sockets"] * has_default_sockets))
    assert options.acknowledges_at_once is not has_default_sockets
    assert options.waits_for_acknowledgements is has_default_sockets


@pytest.fixture
def emulate():
    emulators = []

    def start(*arguments):
        emulators.append(Emulator(*arguments))
        return emulators[-1]

    yield start
    for emulator in emulators:
        emulator.end()


class Autopilot:
    def __init__(self, connected, **options):
        self.socket = connected
        self.socket.settimeout(TIMEOUT)
        self.protocol = AutopilotConnection(**options)

    @classmethod
    def connect(cls, port, **options):
        return cls(socket.create_connection(("127.0.0.1", port), TIMEOUT), **options)

    def receive(self):
        while (event := self.protocol.next_event()) is NEED_DATA:
            data = self.socket.recv(65536)
            if data:
                self.protocol.receive_data(data)
            else:
                self.protocol.receive_eof()
        return event

    def answer(self, motion=HOVER):
        self.socket.sendall(self.protocol.send(motion))

    def fly(self, motion=HOVER, frames=None):
        """Answer frames, all of them or so many; return what came."""
        events = []
        while frames is None or len(events) < frames:
            events.append(self.receive())
            if isinstance(events[-1], ConnectionClosed):
                break
            self.answer(motion)
        return events

    def close(self):
        self.socket.close()


def test_it_announces_its_options(emulate):
    port = emulate("--hfov", "100", "--vfov", "50", "--negative-gravity").port()
    assert Autopilot.connect(port).receive() == Constants(
        horizontal_angle_of_view=100,
        vertical_angle_of_view=50,
        width=20,
        height=10,
        camera_separation=0.25,
        weight=1.0,
        gravity=pytest.approx(-9.81),
        drag=pytest.approx(0.2),
        max_thrust=25,
        max_pitch_rate=720,
        max_roll_rate=720,
        max_yaw_rate=720,
    )


def test_reaching_the_target_is_reported_and_ends_the_flight_with_0(emulate):
    emulator = emulate("--target", "0 3 0", "--until-reached", "--wind", "0 0 0", "--duration", "10")
    autopilot = Autopilot.connect(emulator.port())
    autopilot.receive()
    autopilot.fly(MotionParameters(0, 0, 0, 20))
    report = emulator.line("target reached at t=")
    reached_at, distance = float(report.split(" ")[0]), float(report.split("distance ")[1].split(" ")[0])
    assert reached_at == pytest.approx(math.sqrt(2 * 2.25 / 10.19), abs=0.05)
    assert distance <= 0.75
    assert emulator.wait() == 0


@pytest.mark.parametrize("kind", ["truncate", "garbage"])
def test_a_fault_breaks_its_frame_and_the_next_conversation_is_sound(emulate, kind):
    emulator = emulate("--fault", f"{kind}@2")
    port = emulator.port()
    autopilot = Autopilot.connect(port)
    autopilot.receive()
    assert len(autopilot.fly(frames=2)) == 2
    with pytest.raises(RemoteProtocolError, match="closed inside frame 2" if kind == "truncate" else "nan"):
        autopilot.receive()
    autopilot.close()
    emulator.line("ended: 2 steps")
    again = Autopilot.connect(port)
    assert isinstance(again.receive(), Constants)
    assert len(again.fly(frames=5)) == 5


def test_trajectory_has_a_row_for_every_state(emulate, tmp_path):
    path = tmp_path / "flight.csv"
    emulator = emulate("--steps", "4", "--rate", "10", "--target", "0 0 -5", "--trajectory", str(path))
    autopilot = Autopilot.connect(emulator.port())
    autopilot.receive()
    autopilot.fly(MotionParameters(10, 0, 0, 5))
    assert emulator.wait() == 0
    with path.open() as file:
        rows = list(csv.DictReader(file))
    assert [float(row["time"]) for row in rows] == pytest.approx([0, 0.1, 0.2, 0.3, 0.4])
    assert float(rows[0]["distance"]) == 5
    assert float(rows[-1]["pitch"]) == pytest.approx(4)
    assert (float(rows[-1]["pitch_rate"]), float(rows[-1]["thrust"])) == (10, 5)


def flying(emulator, port):
    autopilot = Autopilot.connect(port)
    autopilot.receive()
    autopilot.receive()
    emulator.line("connected to")
    return autopilot


def test_a_signal_in_flight_ends_it_cleanly(emulate):
    emulator = emulate("--until-reached")
    autopilot = flying(emulator, emulator.port())
    emulator.send(signal.SIGINT)
    assert emulator.wait() == 1  # it has not reached the target
    assert isinstance(autopilot.receive(), ConnectionClosed)
