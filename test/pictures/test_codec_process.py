# SPDX-License-Identifier: Apache-2.0
"""The child process that decodes pictures, and the state after one of the two processes was killed."""

import errno
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from child_processes import is_running
from patience import TIMEOUT_S, wait_until
from repository import CAPTURES

from drone_bridge.net.connector import wait_readable
from drone_bridge.pictures import codec_process
from drone_bridge.pictures.codec_process import CodecProcess, CodecProcessError
from drone_bridge.vision.jpegs import bgr_of_jpeg, jpeg_of_rgb
from drone_bridge.vision.uvlc import check, decode

VIDEO = CAPTURES / "dronegui_video"
PACKET = (VIDEO / "qvga_q31.bin").read_bytes()
SMALL_PACKET = (VIDEO / "qcif_q30.bin").read_bytes()

PARENT = """
import sys, time
from pathlib import Path
from drone_bridge.pictures.codec_process import CodecProcess
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
    child.ask("decode", (VIDEO / "refused_p264_head.bin").read_bytes())
    assert "video_codec" in reply_of(child).refusal
    pid = child.pid
    child.ask("decode", PACKET)
    assert reply_of(child).data
    assert child.pid == pid


def asked(child, work, data, **facts):
    child.ask(work, data, **facts)
    return reply_of(child)


def colours(height, width):
    """Image with a different colour in each quarter."""
    pixels = np.zeros((height, width, 3), np.uint8)
    pixels[: height // 2, : width // 2] = (200, 30, 30)
    pixels[: height // 2, width // 2 :] = (30, 200, 30)
    pixels[height // 2 :, : width // 2] = (30, 30, 200)
    pixels[height // 2 :, width // 2 :] = (200, 200, 200)
    return pixels


def pixels_of(packet):
    picture = decode(packet)
    return np.frombuffer(picture.rgb8, np.uint8).reshape(picture.height, picture.width, 3)


@pytest.mark.parametrize("encoding", ["rgb8", "bgr8", "mono8"])
def test_raw_images_become_packets(child, encoding):
    pixels = colours(240, 320)
    data = {"rgb8": pixels, "bgr8": pixels[..., ::-1], "mono8": pixels[..., 0]}[encoding].tobytes()
    step = len(data) // 240
    reply = asked(child, "encode", data, encoding=encoding, width=320, height=240, step=step, number=9)
    (packet,) = reply.data
    assert check(packet).number == 9
    expected = np.stack([pixels[..., 0]] * 3, axis=2) if encoding == "mono8" else pixels
    assert np.abs(pixels_of(packet).astype(int) - expected).mean() < 8


@pytest.mark.parametrize(("width", "height", "rows", "columns"), [(640, 480, 240, 320), (640, 320, 160, 320)])
def test_images_of_other_sizes_are_fitted_into_that_of_the_front_camera(child, width, height, rows, columns):
    pixels = colours(height, width)
    facts = {"encoding": "rgb8", "width": width, "height": height, "step": 3 * width, "number": 1}
    (packet,) = asked(child, "encode", pixels.tobytes(), **facts).data
    seen, expected = pixels_of(packet).astype(int), np.zeros((240, 320, 3), int)
    top, left = (240 - rows) // 2, (320 - columns) // 2
    expected[top : top + rows, left : left + columns] = colours(rows, columns)
    assert np.abs(seen - expected).mean() < 8


def test_a_jpeg_becomes_a_packet(child):
    (packet,) = asked(child, "encode_jpeg", jpeg_of_rgb(colours(240, 320), 90), number=3).data
    assert np.abs(pixels_of(packet).astype(int) - colours(240, 320)).mean() < 8


@pytest.mark.parametrize(
    ("work", "data", "facts"),
    [
        ("encode", bytes(12), {"encoding": "bayer_rggb8", "width": 2, "height": 2, "step": 6}),
        ("encode", bytes(12), {"encoding": "rgb8", "width": 320, "height": 240, "step": 960}),
        ("encode_jpeg", b"no JPEG", {}),
        ("check", b"no packet", {}),
        ("check", PACKET[:-40], {}),
    ],
)
def test_what_can_not_be_sent_is_refused_with_a_sentence(child, work, data, facts):
    reply = asked(child, work, data, number=1, **facts)
    assert reply.refusal.endswith(".")
    assert not reply.data


def test_a_packet_is_checked_and_nothing_comes_back(child):
    reply = asked(child, "check", PACKET, number=1)
    assert (reply.refusal, reply.data, reply.facts) == ("", [], {"width": 320, "height": 240})


def test_killed_child_is_reported_once_and_replaced(child):
    child.ask("decode", PACKET)
    reply_of(child)
    first = child.pid
    os.kill(first, signal.SIGSTOP)
    child.ask("decode", PACKET)
    assert not child.can_take
    os.kill(first, signal.SIGKILL)
    with pytest.raises(CodecProcessError):
        reply_of(child)
    wait_until(lambda: child.can_take, "the time for another child")
    child.ask("decode", PACKET)
    assert reply_of(child).data
    assert child.pid != first
    assert not is_running(first)


def test_failing_children_restart_ever_less_often_until_one_replies(child, monkeypatch):
    now_s = [0.0]
    monkeypatch.setattr(codec_process, "elapsed_s", lambda: now_s[0])

    def delay_of_a_failure():
        child.ask("decode", PACKET)
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
    child.ask("decode", PACKET)
    assert reply_of(child).data
    assert delay_of_a_failure() < delays_s[-1]


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


def test_a_child_is_late_2_s_after_a_request_until_it_replies(child, monkeypatch):
    now_s = [0.0]
    monkeypatch.setattr(codec_process, "elapsed_s", lambda: now_s[0])
    child.ask("decode", PACKET)
    now_s[0] += 10.0
    assert child.problem == "", "the first request includes the start"
    reply_of(child)
    now_s[0] += 10.0
    assert child.problem == "", "nothing is pending"
    os.kill(child.pid, signal.SIGSTOP)
    child.ask("decode", PACKET)
    now_s[0] += 1.9
    assert child.problem == ""
    now_s[0] += 0.2
    assert "2 s" in child.problem
    os.kill(child.pid, signal.SIGCONT)
    reply_of(child)
    assert child.problem == ""


@pytest.mark.parametrize("step", ["_memory_file", "socket.socketpair", "mmap.mmap", "subprocess.Popen"])
def test_child_that_fails_to_start_is_reported_and_leaks_nothing(child, monkeypatch, step):
    def fails(*_, **__):
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    before = sorted(os.listdir("/dev/fd"))
    with monkeypatch.context() as failing:
        failing.setattr(f"{codec_process.__name__}.{step}", fails)
        with pytest.raises(CodecProcessError):
            child.ask("decode", PACKET)
    assert sorted(os.listdir("/dev/fd")) == before
    wait_until(lambda: child.can_take, "the time for another child")
    child.ask("decode", PACKET)
    assert reply_of(child).data


def test_the_end_leaves_no_process(child):
    child.ask("decode", PACKET)
    pid = child.pid
    child.end()
    assert not is_running(pid)
    child.end()


def test_the_child_of_a_killed_parent_ends_and_its_memory_has_no_name():
    before = set(os.listdir("/dev/shm"))
    command = [sys.executable, "-c", PARENT, VIDEO / "qvga_q31.bin"]
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
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        os.kill(child.pid, number)
    child.ask("decode", PACKET)
    assert reply_of(child).data
