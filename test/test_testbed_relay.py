# SPDX-License-Identifier: Apache-2.0
"""A legacy autopilot flies a legacy testbed through ROS: testbed_server, topics, testbed_bridge."""

import contextlib
import struct
import time
from dataclasses import astuple
from pathlib import Path

import pytest
from processes import TIMEOUT_S, Process
from ros_session import RosSession, wait_until
from testbed_autopilot import AutopilotPeer
from testbed_bytes import float32
from testbed_peer import CONSTANTS, REPLY, TestbedPeer, pixels
from vanishing import kill

from drone_bridge.kind import Side
from drone_bridge.ros.neutral_repeater import PERIOD_S
from drone_bridge.testbed.codec import AttitudeLayout, Constants, MotionParameters, SensorFrame
from drone_bridge.tools.wire.log_file import LogFile

CAPTURES = Path(__file__).parent / "captures"
TESTBED_BYTES = (CAPTURES / "testbed_to_autopilot.bin").read_bytes()
AUTOPILOT_BYTES = (CAPTURES / "autopilot_to_testbed.bin").read_bytes()
FRAMES = 3
GOLDEN = Constants(*struct.unpack_from(">ffiiffffffff", TESTBED_BYTES))
CONSTANTS_BYTES = 48
LAYOUT = AttitudeLayout.POSE
PATIENCE_S = 60.0  # of both nodes, for an autopilot or a testbed on a machine that is slow and busy
MEETING_S = 0.3  # of both nodes, while they have not found each other
BOTH = ("testbed_bridge", "testbed_server")


@contextlib.contextmanager
def relay(namespace, testbed, layout, constants=CONSTANTS, **parameters):
    """Start both nodes and wait until a frame and its answer have passed; give bridge, server, and its port."""
    common = {"attitude_layout": layout.value, "sync": "lockstep", "stamp_source": "wire", **parameters}
    spaced = {"remap": [f"__ns:=/{namespace}"], "command_timeout": MEETING_S}
    session = RosSession(f"{namespace}_session")
    try:
        with (
            Process.node("testbed_bridge", port=testbed.port, **spaced, **common) as bridge,
            Process.node("testbed_server", port=0, **spaced, **common) as server,
        ):
            port = int(server.wait_for_line(r"Waiting for a peer on 127\.0\.0\.1:(\d+)")[1])
            session.set_parameters(f"{namespace}/testbed_server", source_timeout=PATIENCE_S)
            meet(testbed, port, layout, constants)
            for node in BOTH:
                session.set_parameters(f"{namespace}/{node}", command_timeout=PATIENCE_S)
            yield bridge, server, port
    finally:
        session.close()


def meet(testbed, port, layout, constants):
    """Exchange frames until one is answered by an autopilot: DDS needs a moment to join the two nodes."""
    testbed.open(constants)
    with AutopilotPeer(port, layout) as autopilot:

        def passes():
            testbed.send_frame(constants=constants, **fields(1))
            autopilot.socket.settimeout(MEETING_S)
            with contextlib.suppress(TimeoutError):
                while not isinstance(autopilot.receive(), SensorFrame):
                    pass
                autopilot.answer(motion(1))
            return testbed.reply() == motion(1)

        wait_until(passes, "a frame that was answered")
    testbed.hang_up()


def fields(number):
    """What the drone senses in a frame, all of it different in each."""
    return {
        "pitch": float32(-80.0 + 1.7 * number),
        "roll": float32(170.0 - 3.3 * number),
        "yaw": float32(-175.0 + 3.1 * number),
        "position": (float32(0.1 * number), float32(1e3 + number), -0.0),
    }


def level(number):
    """The same of a drone that is level: one that is tilted would be levelled out by the server's neutral command."""
    return {**fields(number), "pitch": 0.0, "roll": 0.0}


def motion(number):
    return MotionParameters(float32(0.37 * number), float32(-0.71 * number), float32(1.3 * number), float32(15.1))


def hover():
    return MotionParameters(0.0, 0.0, 0.0, CONSTANTS.weight * abs(CONSTANTS.gravity))


def test_golden_captures_pass_byte_for_byte_until_the_bridge_is_killed(ros, tmp_path):
    """And the server's wire log has all of it."""
    testbed = TestbedPeer()
    layout = AttitudeLayout.PITCH_YAW
    with (
        contextlib.closing(testbed),
        relay("golden", testbed, layout, GOLDEN, wire_log=str(tmp_path)) as (bridge, _, port),
    ):
        testbed.accept()
        with AutopilotPeer(port) as autopilot:
            autopilot.socket.settimeout(TIMEOUT_S)
            frame = (len(TESTBED_BYTES) - CONSTANTS_BYTES) // FRAMES
            received, sent = b"", TESTBED_BYTES
            for number in range(FRAMES):
                size = frame + CONSTANTS_BYTES * (number == 0)
                testbed.socket.sendall(sent[:size])
                sent = sent[size:]
                received += autopilot.read(size)
                answer = AUTOPILOT_BYTES[number * REPLY.size :][: REPLY.size]
                if not number:  # the neutral command after the former autopilot is repeated, and answers no new frame
                    time.sleep(2 * PERIOD_S)
                autopilot.socket.sendall(answer)
                assert testbed.read(REPLY.size) == answer
            assert received == TESTBED_BYTES
            kill(bridge)
            ros.set_parameters("golden/testbed_server", source_timeout=1.0)
            assert autopilot.reads_end() == b""
    with LogFile(max(tmp_path.glob("golden.testbed_server-*.mcap"))) as file:
        entries = list(file.entries())
    logged = [entry for entry in entries if entry.connection == entries[-1].connection]  # others came before
    assert b"".join(entry.data for entry in logged if entry.sender is Side.VEHICLE) == TESTBED_BYTES
    assert b"".join(entry.data for entry in logged if entry.sender is Side.OPERATOR) == AUTOPILOT_BYTES


class Pair:
    """A testbed and an autopilot, with ROS between them."""

    def __init__(self, port, testbed):
        self.port, self.testbed = port, testbed
        self.autopilot = None

    def meet(self):
        """Open a conversation at both ends."""
        self.part()
        self.testbed.open()
        self.autopilot = AutopilotPeer(self.port, LAYOUT)
        self.autopilot.socket.settimeout(TIMEOUT_S)
        self.first()

    def first(self):
        """Exchange the first frame."""
        self.testbed.send_frame(**fields(0))
        assert isinstance(self.autopilot.receive(), Constants)
        self.autopilot.receive()
        self.autopilot.answer()
        self.testbed.reply()

    def exchange(self, number):
        """Send a frame through, and its answer back; return both as they arrived."""
        self.testbed.send_frame(**fields(number))
        frame = self.autopilot.receive()
        self.autopilot.answer(motion(number))
        return frame, self.testbed.reply()

    def part(self):
        if self.autopilot:
            self.autopilot.socket.close()
        self.testbed.hang_up()


@pytest.fixture(scope="module")
def pair():
    testbed = TestbedPeer(layout=LAYOUT)
    with contextlib.closing(testbed), relay("relay", testbed, LAYOUT) as (_, _, port):
        pair = Pair(port, testbed)
        yield pair
        pair.part()


def test_each_frame_gets_the_answer_that_was_given_for_it(pair):
    pair.meet()
    for number in range(1, 100):
        frame, answer = pair.exchange(number)
        expected = fields(number)
        assert (frame.pitch, frame.roll, frame.yaw) == (expected["pitch"], expected["roll"], expected["yaw"])
        assert frame.position == expected["position"]
        assert frame.time == float32(pair.testbed.time)
        assert bytes(frame.left) == pixels(1)
        assert bytes(frame.right) == pixels(2)
        assert answer == motion(number)


def test_a_testbed_that_leaves_and_comes_back_is_told_apart_from_one_that_goes_on(pair):
    pair.meet()
    _, answer = pair.exchange(1)
    assert answer == motion(1)
    pair.testbed.open()  # time from 0: the constants are the same, and so the connection can go on
    pair.testbed.send_frame(time=0.0, **fields(0))
    while not isinstance(event := pair.autopilot.receive(), SensorFrame):
        pass
    assert event.time == 0.0
    pair.autopilot.answer(motion(7))
    assert pair.testbed.reply() == motion(7)


def test_an_autopilot_that_leaves_leaves_a_drone_that_hovers(pair):
    pair.meet()
    pair.exchange(1)
    pair.testbed.send_frame(**level(2))
    pair.autopilot.receive()
    pair.autopilot.socket.close()
    # The server's neutral command is stamped with the frame, and so it is the answer.
    assert astuple(pair.testbed.reply()) == pytest.approx(astuple(hover()))
    # The next autopilot begins with the next frame.
    pair.autopilot = AutopilotPeer(pair.port, LAYOUT)
    pair.autopilot.socket.settimeout(TIMEOUT_S)
    pair.first()
    assert pair.exchange(3)[1] == motion(3)
