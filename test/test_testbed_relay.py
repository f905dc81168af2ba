# SPDX-License-Identifier: Apache-2.0
"""A legacy autopilot flies a legacy testbed through ROS: testbed_server, topics, testbed_bridge."""

import contextlib
import struct
from dataclasses import astuple
from pathlib import Path

import pytest
from processes import TIMEOUT_S, Process
from ros_session import wait_until
from testbed_autopilot import AutopilotPeer
from testbed_bytes import float32
from testbed_peer import CONSTANTS, REPLY, TestbedPeer, pixels

from drone_bridge.msg import CommandRates
from drone_bridge.protocols.testbed import AttitudeLayout, ConnectionClosed, Constants, MotionParameters, SensorFrame

CAPTURES = Path(__file__).parent / "captures"
TESTBED_BYTES = (CAPTURES / "testbed_to_autopilot.bin").read_bytes()
AUTOPILOT_BYTES = (CAPTURES / "autopilot_to_testbed.bin").read_bytes()
FRAMES = 3
CONSTANTS_BYTES = 48
LAYOUT = AttitudeLayout.POSE
PATIENCE_S = 60.0  # of both nodes, for an autopilot or a testbed on a machine that is slow and busy
TRANSPARENT = {"sync": "lockstep", "stamp_source": "wire", "command_timeout": PATIENCE_S}


@contextlib.contextmanager
def relay(namespace, testbed, layout, **parameters):
    """Start both nodes; give them, and the port that the autopilot connects to."""
    common = {"attitude_layout": layout.value, **TRANSPARENT, **parameters}
    source_timeout = common.pop("source_timeout", PATIENCE_S)
    spaced = {"remap": [f"__ns:=/{namespace}"]}
    with (
        Process.node("testbed_bridge", port=testbed.port, **spaced, **common) as bridge,
        Process.node("testbed_server", port=0, source_timeout=source_timeout, **spaced, **common) as server,
    ):
        port = int(server.wait_for_line(r"Waiting for a peer on 127\.0\.0\.1:(\d+)")[1])
        yield bridge, server, port


def test_golden_captures_pass_byte_for_byte():
    testbed = TestbedPeer()
    with contextlib.closing(testbed), relay("golden", testbed, AttitudeLayout.PITCH_YAW) as (_, _, port):
        testbed.accept()
        # The bridge publishes to nobody what comes before the server is found: the frames wait until it asks.
        testbed.socket.sendall(TESTBED_BYTES[:CONSTANTS_BYTES])
        frame = (len(TESTBED_BYTES) - CONSTANTS_BYTES) // FRAMES
        with AutopilotPeer(port) as autopilot:
            autopilot.socket.settimeout(TIMEOUT_S)
            joined(testbed, "golden")
            received = b""
            for number in range(FRAMES):
                start = CONSTANTS_BYTES + number * frame
                testbed.socket.sendall(TESTBED_BYTES[start : start + frame])
                received += autopilot.read(frame + CONSTANTS_BYTES * (number == 0))
                answer = AUTOPILOT_BYTES[number * REPLY.size :][: REPLY.size]
                autopilot.socket.sendall(answer)
                assert testbed.read(REPLY.size) == answer
            assert received == TESTBED_BYTES


def joined(testbed, namespace):
    """Wait until server and bridge have found each other's topics, in both directions."""
    from ros_session import RosSession

    session = RosSession()
    try:
        topics = ("left/image_raw", "right/image_raw", "drone_properties", "cmd_rates")

        def ends(topic):
            node = session.node
            return (
                len(node.get_publishers_info_by_topic(f"/{namespace}/{topic}")),
                len(node.get_subscriptions_info_by_topic(f"/{namespace}/{topic}")),
            )

        wait_until(lambda: all(min(ends(topic)) for topic in topics), "both nodes in the graph")
    finally:
        session.close()


class Pair:
    """A testbed and an autopilot, with ROS between them."""

    def __init__(self, port, testbed):
        self.port, self.testbed = port, testbed
        self.autopilot = None
        self._time = 0.0

    def meet(self):
        """Open a conversation at both ends, and exchange frames until one is answered by the autopilot."""
        self.part()
        self.testbed.open()
        self.autopilot = AutopilotPeer(self.port, LAYOUT)
        self.autopilot.socket.settimeout(TIMEOUT_S)
        self.first()

    def first(self):
        """Send the first frame, again and again until the server is there: each is answered by somebody."""
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


def fields(number):
    """What the drone senses in a frame, all of it different in each."""
    return {
        "pitch": float32(-80.0 + 1.7 * number),
        "roll": float32(170.0 - 3.3 * number),
        "yaw": float32(-175.0 + 3.1 * number),
        "position": (float32(0.1 * number), float32(1e3 + number), -0.0),
    }


def motion(number):
    return MotionParameters(float32(0.37 * number), float32(-0.71 * number), float32(1.3 * number), float32(15.1))


@pytest.fixture(scope="module")
def pair():
    testbed = TestbedPeer(layout=LAYOUT)
    with contextlib.closing(testbed), relay("relay", testbed, LAYOUT) as (bridge, server, port):
        testbed.open()
        joined(testbed, "relay")
        pair = Pair(port, testbed)
        pair.bridge, pair.server = bridge, server
        yield pair
        pair.part()


def hover():
    return MotionParameters(0.0, 0.0, 0.0, CONSTANTS.weight * abs(CONSTANTS.gravity))


def test_each_frame_gets_the_answer_that_was_given_for_it(pair):
    pair.meet()
    for number in range(1, 100):
        frame, answer = pair.exchange(number)
        expected = fields(number)
        assert (frame.pitch, frame.roll, frame.yaw) == (expected["pitch"], expected["roll"], expected["yaw"])
        assert frame.position == expected["position"]
        assert frame.time == float32(pair.testbed._time)
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
    pair.testbed.send_frame(**fields(2))
    pair.autopilot.receive()
    pair.autopilot.socket.close()
    # The server's neutral command is stamped with the frame, and so it is the answer.
    assert astuple(pair.testbed.reply()) == pytest.approx(astuple(hover()))
    # The next autopilot begins with the next frame.
    pair.autopilot = AutopilotPeer(pair.port, LAYOUT)
    pair.autopilot.socket.settimeout(TIMEOUT_S)
    pair.first()
    assert pair.exchange(3)[1] == motion(3)


def test_nonsense_of_the_autopilot_never_reaches_the_testbed(pair):
    pair.meet()
    pair.testbed.send_frame(**fields(1))
    pair.autopilot.receive()
    pair.autopilot.socket.sendall(struct.pack(">4f", 1.0, float("inf"), 0.0, 0.0))
    assert pair.autopilot.reads_end() == b""
    assert astuple(pair.testbed.reply()) == pytest.approx(astuple(hover()))


def test_a_stalled_end_is_told_to_the_other_within_the_timeouts(ros):
    """Both ways, with the timeouts that users have."""
    testbed = TestbedPeer(layout=LAYOUT)
    safe = {"source_timeout": 1.0, "command_timeout": 0.5}
    with contextlib.closing(testbed), relay("stalled", testbed, LAYOUT, **safe) as (_, server, port):
        commands = ros.subscribe(CommandRates, "stalled/cmd_rates")
        testbed.open()
        joined(testbed, "stalled")
        with AutopilotPeer(port, LAYOUT) as autopilot:
            autopilot.socket.settimeout(TIMEOUT_S)

            def is_flying():
                testbed.send_frame(**fields(1))
                with contextlib.suppress(IndexError, TimeoutError):
                    while isinstance(autopilot.receive(), Constants):
                        pass
                    autopilot.answer(motion(1))
                return testbed.reply() == motion(1)

            wait_until(is_flying, "a frame that was answered in time")
            # The autopilot stalls: the bridge answers by itself, and the topics get one neutral command.
            testbed.send_frame(**fields(2))
            assert testbed.reply() != motion(1)
            commands.wait(lambda command: command.thrust == pytest.approx(15.0) and command.roll_rate == 0.0)
            # The testbed stalls when it is its turn: the autopilot is left, and told so by the end.
            while not isinstance(event := autopilot.receive(), ConnectionClosed):
                if isinstance(event, SensorFrame):
                    autopilot.answer(motion(1))
            server.wait_for_line("Nothing to send has come for 1 s")
