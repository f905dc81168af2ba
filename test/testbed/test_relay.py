# SPDX-License-Identifier: Apache-2.0
"""A legacy autopilot flies a legacy testbed through ROS: testbed_server, topics, testbed_bridge."""

import contextlib
import struct
import time

from processes import TIMEOUT_S, Process
from repository import CAPTURES
from ros_session import RosSession, wait_until
from testbed_autopilot import AutopilotPeer
from testbed_bytes import float32
from testbed_peer import CONSTANTS, REPLY, TestbedPeer, read
from vanishing import kill

from drone_bridge.kind import Side
from drone_bridge.ros.servers.neutral_repeater import PERIOD_S
from drone_bridge.testbed.codec import AttitudeLayout, Constants, MotionParameters, SensorFrame
from drone_bridge.tools.wire.log_file import LogFile

TESTBED_BYTES = (CAPTURES / "testbed_to_autopilot.bin").read_bytes()
AUTOPILOT_BYTES = (CAPTURES / "autopilot_to_testbed.bin").read_bytes()
FRAMES = 3
GOLDEN = Constants(*struct.unpack_from(">ffiiffffffff", TESTBED_BYTES))
CONSTANTS_BYTES = 48
PATIENCE_S = 60.0  # timeout of both nodes, for an autopilot or a testbed on a slow, busy machine
MEETING_S = 0.3  # timeout of both nodes until they have discovered each other
BOTH = ("testbed_bridge", "testbed_server")


@contextlib.contextmanager
def relay(namespace, testbed, layout, constants=CONSTANTS, **parameters):
    """Start both nodes and wait until a frame and its reply have passed; yield bridge, server, and its port."""
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
    """Exchange frames until an autopilot answers one, as DDS needs a moment to connect the nodes."""
    testbed.open(constants)
    with AutopilotPeer(port, layout) as autopilot:

        def passes():
            testbed.send_frame(constants=constants, **fields(1))
            autopilot.socket.settimeout(MEETING_S)
            with contextlib.suppress(TimeoutError):
                while True:  # a late frame is answered, too
                    if isinstance(autopilot.receive(), SensorFrame):
                        autopilot.answer(motion(1))
            return testbed.reply() == motion(1)

        wait_until(passes, "a frame that was answered")
    testbed.hang_up()


def fields(number):
    """Sensor values of a frame, different in each frame."""
    return {
        "pitch": float32(-80.0 + 1.7 * number),
        "roll": float32(170.0 - 3.3 * number),
        "yaw": float32(-175.0 + 3.1 * number),
        "position": (float32(0.1 * number), float32(1e3 + number), -0.0),
    }


def motion(number):
    return MotionParameters(float32(0.37 * number), float32(-0.71 * number), float32(1.3 * number), float32(15.1))


def test_golden_captures_pass_byte_for_byte_until_the_bridge_is_killed(ros, tmp_path):
    """The server's wire log has all messages."""
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
                received += read(autopilot.socket, size)
                answer = AUTOPILOT_BYTES[number * REPLY.size :][: REPLY.size]
                if not number:  # the neutral command after the previous autopilot is repeated, and answers no new frame
                    time.sleep(2 * PERIOD_S)
                autopilot.socket.sendall(answer)
                assert read(testbed.socket, REPLY.size) == answer
            assert received == TESTBED_BYTES
            kill(bridge)
            ros.set_parameters("golden/testbed_server", source_timeout=1.0)
            assert autopilot.reads_end() == b""
    with LogFile(max(tmp_path.glob("golden.testbed_server-*.mcap"))) as file:
        entries = list(file.entries())
    logged = [entry for entry in entries if entry.connection == entries[-1].connection]  # earlier connections exist
    assert b"".join(entry.data for entry in logged if entry.sender is Side.VEHICLE) == TESTBED_BYTES
    assert b"".join(entry.data for entry in logged if entry.sender is Side.OPERATOR) == AUTOPILOT_BYTES
