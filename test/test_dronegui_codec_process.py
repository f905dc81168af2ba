# SPDX-License-Identifier: Apache-2.0
"""The child process that decodes pictures, and what is left of it when one of the two processes is killed."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from child_processes import is_running
from patience import TIMEOUT_S, wait_until

from drone_bridge.dronegui.pictures import codec_process
from drone_bridge.dronegui.pictures.codec_process import CodecProcess, CodecProcessError
from drone_bridge.dronegui.video import decode
from drone_bridge.net.connector import wait_readable
from drone_bridge.vision.jpegs import bgr_of_jpeg

CAPTURES = Path(__file__).parent / "captures" / "dronegui_video"
PACKET = (CAPTURES / "qvga_q31.bin").read_bytes()
SMALL_PACKET = (CAPTURES / "qcif_q30.bin").read_bytes()

PARENT = """
import sys, time
from pathlib import Path
from drone_bridge.dronegui.pictures.codec_process import CodecProcess
child = CodecProcess((1, 2))
child.ask("decode", Path(sys.argv[1]).read_bytes())
print(child.pid, flush=True)
time.sleep(1000)
"""


@pytest.fixture
def child():
    made = CodecProcess((1, 2))
    yield made
    made.end()


def reply_of(child):
    """Wait for the reply."""
    while (reply := child.reply()) is None:
        assert wait_readable([child], TIMEOUT_S)[0]
    return reply


def test_pictures_come_back_as_the_codec_decodes_them(child):
    for packet in (PACKET, SMALL_PACKET, PACKET):
        child.ask("decode", packet)
        reply, picture = reply_of(child), decode(packet)
        assert reply.facts == {"width": picture.width, "height": picture.height, "number": picture.number}
        assert reply.data == [picture.rgb8]


def test_a_jpeg_comes_beside_the_pixels(child):
    child.ask("decode", PACKET, jpeg=80)
    pixels, jpeg = reply_of(child).data
    assert bgr_of_jpeg(jpeg).size == len(pixels)


def test_a_refused_packet_costs_the_child_nothing(child):
    child.ask("decode", (CAPTURES / "refused_p264_head.bin").read_bytes())
    assert "video_codec" in reply_of(child).refusal
    pid = child.pid
    child.ask("decode", PACKET)
    assert reply_of(child).data
    assert child.pid == pid


def test_a_child_that_was_killed_is_reported_once_and_another_one_takes_its_place(child, monkeypatch):
    child.ask("decode", PACKET)
    reply_of(child)
    first = child.pid
    os.kill(first, signal.SIGSTOP)
    child.ask("decode", PACKET)
    assert not child.can_take
    os.kill(first, signal.SIGKILL)
    with pytest.raises(CodecProcessError):
        reply_of(child)
    monkeypatch.setattr(codec_process, "RESTART_S", 0.0)
    assert child.can_take
    child.ask("decode", PACKET)
    assert reply_of(child).data
    assert child.pid != first
    assert not is_running(first)


def test_no_child_is_started_again_at_once(child):
    child.ask("decode", PACKET)
    os.kill(child.pid, signal.SIGKILL)
    with pytest.raises(CodecProcessError):
        reply_of(child)
    assert not child.is_busy
    wait_until(lambda: child.can_take, "the time for another child")


def test_a_child_that_hangs_is_ended(child, monkeypatch):
    child.ask("decode", PACKET)
    reply_of(child)
    hanging = child.pid
    os.kill(hanging, signal.SIGSTOP)
    child.ask("decode", PACKET)
    monkeypatch.setattr(codec_process, "REPLY_TIMEOUT_S", 0.0)
    with pytest.raises(CodecProcessError):
        child.reply()
    assert not is_running(hanging)


def test_the_end_leaves_no_process(child):
    child.ask("decode", PACKET)
    pid = child.pid
    child.end()
    assert not is_running(pid)
    child.end()


def test_the_child_of_a_killed_parent_ends_and_its_memory_has_no_name():
    before = set(os.listdir("/dev/shm"))
    command = [sys.executable, "-c", PARENT, CAPTURES / "qvga_q31.bin"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        pid = int(parent.stdout.readline())
        assert is_running(pid)
        named = {name for name in set(os.listdir("/dev/shm")) - before if "pictures" in name}
        parent.kill()
    wait_until(lambda: not is_running(pid), "the end of the child")
    assert not named


def test_a_signal_that_a_terminal_sends_to_all_does_not_end_the_child(child):
    child.ask("decode", PACKET)
    reply_of(child)
    for number in (signal.SIGINT, signal.SIGTERM):
        os.kill(child.pid, number)
    child.ask("decode", PACKET)
    assert reply_of(child).data
