# SPDX-License-Identifier: Apache-2.0
"""testbed_bridge when something goes wrong, and how it leaves the drone behind."""

import contextlib
import socket
import struct
import sys

import pytest
from diagnostic_msgs.msg import DiagnosticArray
from diagnostics import values_of
from processes import TIMEOUT_S, Process
from ros_session import repeating, wait_until
from sensor_msgs.msg import Image
from testbed_peer import HOVER, REPLY, TestbedPeer, bridge

from drone_bridge.msg import CommandRates
from drone_bridge.testbed.codec import MotionParameters

NOT_HOVER = MotionParameters(0.0, 0.0, 0.0, 9.0)
#: A bridge with a fault: it fails at a frame with a pitch of 7.
FAULTY_BRIDGE = """
from drone_bridge.testbed.bridge import node
from drone_bridge.ros import topics

publish = topics.Outputs.publish

def publish_or_fail(self, frame, stamp):
    if frame.pitch == 7:
        raise ArithmeticError("a fault of its own")
    publish(self, frame, stamp)

topics.Outputs.publish = publish_or_fail
raise SystemExit(node.main())
"""


@pytest.fixture
def peer(closing):
    return closing(TestbedPeer())


def fly(ros, peer):
    """Exchange frames until the bridge passes a command on that is not the neutral one."""
    message = CommandRates(thrust=NOT_HOVER.thrust)
    publisher = ros.publisher(CommandRates, "cmd_rates")
    wait_until(lambda: ros.publish_fresh(publisher, message) or peer.exchange() == NOT_HOVER, "the command on the wire")


# The peer.


def test_a_testbed_that_is_not_there_yet_is_waited_for(free_port):
    with Process.node("testbed_bridge", port=free_port) as process:
        process.wait_for_line(rf"127\.0\.0\.1:{free_port} can't be reached: Connection refused\. Trying again in")
        with socket.create_server(("127.0.0.1", free_port)) as server:
            server.settimeout(TIMEOUT_S)
            server.accept()[0].close()
            process.wait_for_line("The testbed closed inside its constants, after 0 of 48 bytes")


def test_the_regular_end_is_no_problem(ros, peer):
    reports = ros.subscribe(DiagnosticArray, "/diagnostics")
    with bridge(peer) as process:
        peer.open().exchange()
        peer.hang_up()
        process.wait_for_line("The testbed ended the conversation")
        assert peer.open().exchange() == HOVER
        report = reports.wait(lambda report: values_of(report)["connections"] == "2")
    assert values_of(report)["rejected input"] == values_of(report)["lost connections"] == "0"


def test_an_image_too_large_is_refused_before_memory_is_taken(peer):
    with bridge(peer) as process:
        peer.accept()
        peer.socket.sendall(struct.pack(">ffiiffffffff", 90, 90, 4097, 480, 0.25, 1, 9.81, 0.2, 25, 1, 1, 1))
        process.wait_for_line("width is 4097, and has to be from 1 to 4096 pixels")


def test_a_testbed_silent_inside_a_frame_is_given_up_and_between_frames_it_is_not(peer):
    with bridge(peer, silence_timeout=0.2) as process:
        peer.open().exchange()
        assert process.count_lines("did not complete") == 0
        frame = peer.frame_bytes()
        peer.socket.sendall(frame[:10])
        process.wait_for_line(r"did not complete a message within 0\.2 s")
        peer.open()
        # Longer than the time-out, between frames. The read ends with the deadline, not with an answer.
        peer.socket.settimeout(0.5)
        with pytest.raises(TimeoutError):
            peer.socket.recv(1)
        peer.socket.settimeout(TIMEOUT_S)
        assert peer.exchange() == HOVER


def is_closed_after_a_byte(connected):
    try:
        connected.sendall(b"\0")
        return connected.recv(64) == b""
    except TimeoutError:
        return False
    except ConnectionError:
        return True


def test_a_testbed_that_sends_a_byte_now_and_then_does_not_keep_its_place(ros):
    """Each byte comes long before the time for a whole message is over."""
    with Process.node("testbed_bridge", role="listen", port=0, silence_timeout=0.5) as process:
        port = int(process.wait_for_line(r"Waiting for a peer on 127\.0\.0\.1:(\d+)")[1])
        for begin in (lambda peer: peer.accept(), lambda peer: peer.open().exchange()):  # in the constants, in a frame
            slow = TestbedPeer(connect_to=port)
            begin(slow)
            slow.socket.settimeout(0.05)
            wait_until(lambda slow=slow: is_closed_after_a_byte(slow.socket), "the end of the connection")
            slow.close()
        process.wait_for_line(r"did not complete a message within 0\.5 s")
        other = TestbedPeer(connect_to=port)
        assert other.open().exchange() == HOVER
        other.close()


def test_a_silent_testbed_loses_its_place_to_the_next_one_that_connects(ros):
    with Process.node("testbed_bridge", role="listen", port=0, silence_warning=0.5) as process:
        port = int(process.wait_for_line(r"Waiting for a peer on 127\.0\.0\.1:(\d+)")[1])
        silent = TestbedPeer(connect_to=port)
        assert silent.open().exchange() == HOVER

        def is_served():
            other = TestbedPeer(connect_to=port)
            try:
                with contextlib.suppress(AssertionError, ConnectionError):
                    return other.open().exchange() == HOVER
            finally:
                other.close()

        wait_until(is_served, "the place of a silent peer")
        process.wait_for_line(r"127\.0\.0\.1:\d+ was silent for \d\.\d s, and is replaced by 127\.0\.0\.1:\d+\.")
        # The drone of the silent one was left with the neutral command, ahead of its next frame.
        assert silent.read_to_end() == REPLY.pack(HOVER.pitch_rate, HOVER.roll_rate, HOVER.yaw_rate, HOVER.thrust)
        silent.close()


# Parameters.


# Leaving.


def last_answer(peer):
    received = peer.read_to_end()
    assert len(received) == REPLY.size, "one last answer, and nothing else, is expected"
    return MotionParameters(*REPLY.unpack(received))


def test_sigterm_inside_a_frame_leaves_hover_as_the_last_command(ros, peer):
    with bridge(peer, command_timeout=30.0) as process:
        peer.open()
        fly(ros, peer)
        frame = peer.frame_bytes()
        peer.socket.sendall(frame[:100])
        process.send()
        # The testbed finishes its frame before it reads, and must be able to.
        peer.socket.sendall(frame[100:])
        # The frame may be whole, and answered with the command, before the signal is heard.
        answers = peer.read_to_end()
        assert len(answers) in (REPLY.size, 2 * REPLY.size)
        assert MotionParameters(*REPLY.unpack(answers[-REPLY.size :])) == HOVER
        assert process.wait() == 0


def test_sigterm_while_a_command_is_waited_for_leaves_hover(ros, peer):
    images = ros.subscribe(Image, "left/image_raw")
    with bridge(peer, sync="lockstep", command_timeout=0.01) as process:
        peer.open()
        wait_until(lambda: peer.exchange() and len(images), "an image")
        ros.set_parameters("testbed_bridge", command_timeout=30.0)
        peer.send_frame_to(images)
        process.send()
        assert last_answer(peer) == HOVER
        assert process.wait() == 0


def test_a_fault_of_the_bridge_itself_leaves_hover_as_the_last_command(ros, peer):
    parameters = ("-p", f"port:={peer.port}", "-p", "command_timeout:=30.0")
    with Process(sys.executable, "-c", FAULTY_BRIDGE, "--ros-args", *parameters) as process:
        peer.open()
        fly(ros, peer)
        peer.send_frame(pitch=7.0)
        assert peer.reply() == NOT_HOVER
        assert last_answer(peer) == HOVER
        process.wait_for_line("ArithmeticError: a fault of its own")
        assert peer.open().exchange() == HOVER


def test_lockstep_waits_for_commands_after_activating_again(ros, peer):
    images = ros.subscribe(Image, "left/image_raw")
    with bridge(peer, sync="lockstep", command_timeout=0.02):
        peer.open().exchange()
        ros.transition("testbed_bridge", "deactivate", "activate")
        peer.open()
        publisher = ros.publisher(CommandRates, "cmd_rates")
        wait_until(lambda: peer.exchange() and len(images), "an image")
        assert ros.set_parameters("testbed_bridge", command_timeout=10.0)[0].successful
        command = CommandRates(thrust=NOT_HOVER.thrust)
        command.header.stamp = peer.send_frame_to(images)
        with repeating(lambda _: publisher.publish(command)):
            assert peer.reply() == NOT_HOVER
