# SPDX-License-Identifier: Apache-2.0
"""The child process that decodes pictures, and the state after one of the two processes was killed."""

import errno
import os
import signal
import subprocess
import sys
from unittest.mock import Mock

import pytest
from child_processes import is_running
from patience import TIMEOUT_S, wait_until
from repository import CAPTURES

from drone_bridge.ar_drone.cameras import UVLC_WORK
from drone_bridge.ar_drone.uvlc import decode
from drone_bridge.net.connector import wait_readable
from drone_bridge.pictures import codec_process
from drone_bridge.pictures.codec_process import CodecProcess, CodecProcessError

VIDEO = CAPTURES / "dronegui_video"
PACKET = (VIDEO / "qvga_q31.bin").read_bytes()
SMALL_PACKET = (VIDEO / "qcif_q30.bin").read_bytes()

DECODE = f"{UVLC_WORK}:decode"

PARENT = """
import sys, time
from pathlib import Path
from drone_bridge.pictures.codec_process import CodecProcess
child = CodecProcess((1, 2))
child.ask(sys.argv[2], Path(sys.argv[1]).read_bytes())
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
        child.ask(DECODE, packet)
        assert reply_of(child).data == [decode(packet).rgb8]


@pytest.mark.parametrize(
    ("work", "data", "sentence"),
    [
        ("decode", (VIDEO / "refused_p264_head.bin").read_bytes(), "video_codec"),
        ("encode_jpeg", b"no JPEG", "The image "),
    ],
)
def test_refused_data_costs_the_child_nothing(child, work, data, sentence):
    child.ask(f"{UVLC_WORK}:{work}", data, number=1)
    assert sentence in reply_of(child).refusal
    pid = child.pid
    child.ask(DECODE, PACKET)
    assert reply_of(child).data
    assert child.pid == pid


def test_killed_child_is_reported_once_and_replaced(child):
    child.ask(DECODE, PACKET)
    reply_of(child)
    first = child.pid
    os.kill(first, signal.SIGSTOP)
    child.ask(DECODE, PACKET)
    assert not child.can_take
    os.kill(first, signal.SIGKILL)
    with pytest.raises(CodecProcessError):
        reply_of(child)
    wait_until(lambda: child.can_take, "the time for another child")
    child.ask(DECODE, PACKET)
    assert reply_of(child).data
    assert child.pid != first
    assert not is_running(first)


def test_failing_children_restart_ever_less_often_until_one_replies(child, monkeypatch):
    now_s = [0.0]
    monkeypatch.setattr(codec_process, "elapsed_s", lambda: now_s[0])

    def delay_of_a_failure():
        child.ask(DECODE, PACKET)
        os.kill(child.pid, signal.SIGKILL)
        with pytest.raises(CodecProcessError):
            reply_of(child)
        failed_s = now_s[0]
        while not child.can_take:
            now_s[0] += 0.01
        return now_s[0] - failed_s

    delays_s = [delay_of_a_failure() for _ in range(6)]
    assert delays_s[0] > 0
    assert delays_s[-1] > 4 * delays_s[0]
    child.ask(DECODE, PACKET)
    assert reply_of(child).data
    assert delay_of_a_failure() < delays_s[-1]


def test_a_child_that_hangs_is_ended(child, monkeypatch):
    child.ask(DECODE, PACKET)
    reply_of(child)
    hanging = child.pid
    os.kill(hanging, signal.SIGSTOP)
    child.ask(DECODE, PACKET)
    monkeypatch.setattr(codec_process, "REPLY_TIMEOUT_S", 0.0)
    with pytest.raises(CodecProcessError):
        child.reply()
    assert not is_running(hanging)


def test_a_child_is_late_2_s_after_a_request_until_it_replies(child, monkeypatch):
    now_s = [0.0]
    monkeypatch.setattr(codec_process, "elapsed_s", lambda: now_s[0])
    child.ask(DECODE, PACKET)
    now_s[0] += 10.0
    assert child.problem == "", "the first request includes the start"
    reply_of(child)
    now_s[0] += 10.0
    assert child.problem == "", "nothing is pending"
    os.kill(child.pid, signal.SIGSTOP)
    child.ask(DECODE, PACKET)
    now_s[0] += 1.9
    assert child.problem == ""
    now_s[0] += 0.2
    assert "2 s" in child.problem
    os.kill(child.pid, signal.SIGCONT)
    reply_of(child)
    assert child.problem == ""


@pytest.mark.parametrize("step", ["memory_file", "socket.socketpair", "mmap.mmap", "subprocess.Popen"])
def test_child_that_fails_to_start_is_reported_and_leaks_nothing(child, monkeypatch, step):
    fails = Mock(side_effect=OSError(errno.EMFILE, os.strerror(errno.EMFILE)))
    before = sorted(os.listdir("/dev/fd"))
    with monkeypatch.context() as failing:
        failing.setattr(f"{codec_process.__name__}.{step}", fails)
        with pytest.raises(CodecProcessError):
            child.ask(DECODE, PACKET)
    assert sorted(os.listdir("/dev/fd")) == before
    wait_until(lambda: child.can_take, "the time for another child")
    child.ask(DECODE, PACKET)
    assert reply_of(child).data


def test_the_end_leaves_no_process(child):
    child.ask(DECODE, PACKET)
    pid = child.pid
    child.end()
    assert not is_running(pid)
    child.end()


def test_the_child_of_a_killed_parent_ends_and_its_memory_has_no_name():
    before = set(os.listdir("/dev/shm"))
    command = [sys.executable, "-c", PARENT, VIDEO / "qvga_q31.bin", DECODE]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        pid = int(parent.stdout.readline())
        assert is_running(pid)
        named = {name for name in set(os.listdir("/dev/shm")) - before if "pictures" in name}
        parent.kill()
    wait_until(lambda: not is_running(pid), "the end of the child")
    assert not named


def test_a_signal_that_a_terminal_sends_to_all_does_not_end_the_child(child):
    child.ask(DECODE, PACKET)
    reply_of(child)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        os.kill(child.pid, number)
    child.ask(DECODE, PACKET)
    assert reply_of(child).data
