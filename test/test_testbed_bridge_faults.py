# SPDX-License-Identifier: Apache-2.0
"""testbed_bridge when something goes wrong, and how it leaves the drone behind."""

import contextlib
import re
import signal
import socket
import struct
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from diagnostics import values_of
from processes import TIMEOUT_S, Process
from ros_session import wait_until
from sensor_msgs.msg import Image
from testbed_peer import CONSTANTS, HOVER, REPLY, TestbedPeer, bridge

from drone_bridge.msg import CommandRates
from drone_bridge.testbed.codec import MotionParameters

NOT_HOVER = MotionParameters(0.0, 0.0, 0.0, 9.0)
#: A bridge with a fault: it fails at a frame with a pitch of 7.
FAULTY_BRIDGE = """
from drone_bridge.testbed import bridge
from drone_bridge.ros import topics

publish = topics.Outputs.publish

def publish_or_fail(self, frame, stamp):
    if frame.pitch == 7:
        raise ArithmeticError("a fault of its own")
    publish(self, frame, stamp)

topics.Outputs.publish = publish_or_fail
raise SystemExit(bridge.main())
"""


@pytest.fixture
def peer(closing):
    return closing(TestbedPeer())


def fly(ros, peer):
    """Exchange frames until the bridge passes a command on that is not the neutral one."""
    message = CommandRates(thrust=NOT_HOVER.thrust)
    publisher = ros.publisher(CommandRates, "cmd_rates")
    wait_until(lambda: ros.publish_fresh(publisher, message) or peer.exchange() == NOT_HOVER, "the command on the wire")


def resident_mebibytes(pid):
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) / 1024


# The peer.


def test_a_testbed_that_is_not_there_yet_is_waited_for(free_port):
    with Process.node("testbed_bridge", port=free_port) as process:
        process.wait_for_line(rf"127\.0\.0\.1:{free_port} can't be reached: Connection refused\. Trying again in")
        with socket.create_server(("127.0.0.1", free_port)) as server:
            server.settimeout(TIMEOUT_S)
            server.accept()[0].close()
            process.wait_for_line("The testbed closed inside its constants, after 0 of 48 bytes")


def test_memory_for_images_is_freed_with_its_testbed(peer):
    large = replace(CONSTANTS, width=4096, height=2730)  # nearly all that a frame may have, 64 MiB
    with bridge(peer) as process:
        peer.open().exchange()
        before = resident_mebibytes(process.pid)
        peer.open(large)
        peer.socket.sendall(peer.frame_bytes(constants=large)[:1])
        peer.hang_up()
        process.wait_for_line("closed inside frame 0, after 1 of")
        assert resident_mebibytes(process.pid) - before < 8
        peer.open(large).exchange(constants=large)
        assert resident_mebibytes(process.pid) - before > 60
        peer.open()  # the bridge is back: it has done with the one before
        wait_until(lambda: resident_mebibytes(process.pid) - before < 8, "memory that is given back")


def test_a_testbed_killed_inside_a_frame_is_reported_and_connected_to_again(ros, peer):
    reports = ros.subscribe(DiagnosticArray, "/diagnostics")
    with bridge(peer) as process:
        peer.open().exchange()
        peer.socket.sendall(peer.frame_bytes()[:100])
        # Killed, not closed: the connection is reset.
        peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        peer.hang_up()
        process.wait_for_line("The connection to .* was lost: Connection reset by peer")
        assert peer.open().exchange() == HOVER
        report = reports.wait(lambda report: values_of(report)["lost connections"] == "1")
        assert values_of(report)["connections"] in "12"
        reports.wait(lambda report: report.status[0].level == DiagnosticStatus.OK)


def test_a_frame_cut_short_is_reported_with_its_size(peer):
    with bridge(peer) as process:
        peer.open().exchange()
        peer.socket.sendall(peer.frame_bytes()[:100])
        peer.hang_up()
        process.wait_for_line("closed inside frame 1, after 100 of 780 bytes")
        assert peer.open().exchange() == HOVER


def test_the_regular_end_is_no_problem(ros, peer):
    reports = ros.subscribe(DiagnosticArray, "/diagnostics")
    with bridge(peer) as process:
        peer.open().exchange()
        peer.hang_up()
        process.wait_for_line("The testbed ended the conversation")
        assert peer.open().exchange() == HOVER
        report = reports.wait(lambda report: values_of(report)["connections"] == "2")
    assert values_of(report)["rejected input"] == values_of(report)["lost connections"] == "0"


def test_garbage_is_logged_counted_and_followed_by_a_new_connection(ros, peer):
    reports = ros.subscribe(DiagnosticArray, "/diagnostics")
    with bridge(peer) as process:
        peer.open().exchange()
        peer.socket.sendall(peer.frame_bytes()[:-12] + struct.pack(">3f", 1.0, float("nan"), 1.0))
        process.wait_for_line("frame 1, yaw is nan, and has to be a finite number")
        assert last_answer(peer) == HOVER
        peer.accept()
        peer.socket.sendall(b"GET / HTTP/1.1\r\nHost: a-browser-on-the-wrong-port\r\n\r\n")
        process.wait_for_line("In the testbed's constants, ")
        assert peer.open().exchange() == HOVER
        reports.wait(lambda report: values_of(report)["rejected input"] == "2")
        assert process.count_lines("WARN") <= 2  # a line for each


def test_an_image_too_large_is_refused_before_memory_is_taken(peer):
    with bridge(peer, max_width=640, max_height=480) as process:
        peer.accept()
        peer.socket.sendall(struct.pack(">ffiiffffffff", 90, 90, 641, 480, 0.25, 1, 9.81, 0.2, 25, 1, 1, 1))
        process.wait_for_line("width is 641, and has to be from 1 to 640 pixels")


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


def test_a_second_testbed_is_refused_and_the_first_is_not_disturbed(ros):
    with Process.node("testbed_bridge", role="listen", port=0) as process:
        port = int(process.wait_for_line(r"Waiting for a peer on 127\.0\.0\.1:(\d+)")[1])
        assert ros.parameters("testbed_bridge")["actual_port"] == port
        first = TestbedPeer(connect_to=port)
        assert first.open().exchange() == HOVER
        with socket.create_connection(("127.0.0.1", port)) as second:
            second.settimeout(TIMEOUT_S)
            assert second.recv(1) == b""
            process.wait_for_line(rf"127\.0\.0\.1:{second.getsockname()[1]} was refused")
        assert first.exchange() == HOVER
        first.close()
        # The place is free again, whether or not the bridge has noticed yet.
        third = TestbedPeer(connect_to=port)
        assert third.open().exchange() == HOVER
        third.close()


def test_a_port_in_use_is_an_error_with_a_sentence(free_port):
    with socket.create_server(("127.0.0.1", free_port)):
        process = Process.node("testbed_bridge", role="listen", port=free_port)
        process.wait_for_line(rf"ERROR.*Can't listen on 127\.0\.0\.1:{free_port}: Address already in use")
        process.end()


# Parameters.


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"sync": "sometimes"}, "sync is 'sometimes', and has to be one of latest, lockstep"),
        ({"attitude_layout": "yaw"}, "has to be one of auto, pitch_yaw, pitch_roll, pose"),
        ({"port": 65536}, "Min: 0, Max: 65535, value: 65536"),
        ({"port": 0}, "port is 0, and has to be from 1 to 65535 when the role is connect"),
        ({"command_timeout": -1.0}, "command_timeout"),
    ],
)
def test_a_bad_parameter_is_refused_with_a_sentence(parameters, sentence):
    process = Process.node("testbed_bridge", **parameters)
    process.wait_for_line(f"ERROR.*{re.escape(sentence)}")
    assert "Traceback" not in process.output
    process.end()


def test_parameters_read_at_configure_can_be_changed_only_before(ros, peer):
    with bridge(peer):
        peer.open().exchange()
        results = ros.set_parameters("testbed_bridge", sync="lockstep", actual_port=1, command_timeout=2.0)
    assert [result.successful for result in results] == [False, False, True]
    assert "sync can be changed only while the node is unconfigured" in results[0].reason
    assert "read-only" in results[1].reason


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


@pytest.mark.parametrize("moment", ["before the connection", "before the constants", "between attempts"])
def test_sigterm_before_anything_is_connected(peer, free_port, moment):
    with (
        bridge(peer) if moment == "before the constants" else Process.node("testbed_bridge", port=free_port) as process
    ):
        if moment == "before the constants":
            peer.accept()
            process.wait_for_line("Connected to")
        elif moment == "between attempts":
            process.wait_for_line("Trying again")
        process.send()
        assert process.wait() == 0 if moment != "before the connection" else process.wait() in (0, -signal.SIGTERM)


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


def test_deactivate_leaves_hover_and_activate_connects_again(ros, peer):
    with bridge(peer, command_timeout=30.0):
        peer.open()
        fly(ros, peer)
        ros.transition("testbed_bridge", "deactivate")
        assert last_answer(peer) == HOVER
        ros.transition("testbed_bridge", "activate")
        assert peer.open().exchange() == HOVER  # a command from before counts no more
        ros.transition("testbed_bridge", "deactivate", "cleanup")
        assert ros.set_parameters("testbed_bridge", command_timeout=0.05, sync="lockstep")[1].successful
        ros.transition("testbed_bridge", "configure", "activate")
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
        publisher.publish(command)
        assert peer.reply() == NOT_HOVER


def test_without_autostart_it_waits_to_be_asked(ros, peer):
    with bridge(peer, autostart=False):
        ros.transition("testbed_bridge", "configure", "activate")
        assert peer.open().exchange() == HOVER
