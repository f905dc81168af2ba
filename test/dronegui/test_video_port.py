# SPDX-License-Identifier: Apache-2.0
"""The port that the GUI forwards its drone's video to, with real sockets and a clock of the test."""

import select

import pytest
from patience import TIMEOUT_S
from video_sender import VideoSender

from drone_bridge.pictures import video_port
from drone_bridge.pictures.source import NOTHING, VideoFrame
from drone_bridge.pictures.video_port import MAX_DRAINED, VideoPort

RATE_HZ = 10.0


@pytest.fixture
def now_s(monkeypatch):
    """The time, s, which stands still: now_s[0]."""
    time_s = [100.0]
    monkeypatch.setattr(video_port, "elapsed_s", lambda: time_s[0])
    return time_s


@pytest.fixture
def port(now_s, closing, free_port):
    opened = closing(VideoPort(free_port, lambda: ("127.0.0.1", "127.0.0.1"), None))
    opened.keep_open(False)
    opened.number = free_port
    return opened


@pytest.fixture
def gui(port, closing):
    return closing(VideoSender(port.number))


def taken(port):
    """Wait for datagrams, and take them."""
    assert select.select([port], [], [], TIMEOUT_S)[0]
    return port.take(RATE_HZ)


def test_the_newest_packet_counts_and_the_next_one_waits_for_its_turn(port, gui, now_s):
    for packet in (b"1", b"2"):
        gui.send(packet)
    assert taken(port)[:2] == ((VideoFrame(b"2"),), 2)
    gui.send(b"3")
    assert taken(port).frames == (VideoFrame(b"3"),)  # the port has been idle
    gui.send(b"4")
    assert taken(port) == NOTHING
    now_s[0] += port.left_s
    assert taken(port).frames == (VideoFrame(b"4"),)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2"])
def test_a_flood_is_read_half_as_often_whoever_sends_it(port, closing, host, now_s):
    sender = closing(VideoSender(port.number, host))
    sender.send(b"first")
    taken(port)
    sender.send(b"second")
    taken(port)
    assert port.left_s == pytest.approx(1 / RATE_HZ)
    now_s[0] += port.left_s
    for _ in range(MAX_DRAINED):
        sender.send(b"flood")
    assert sum(taken(port)[1:3]) == MAX_DRAINED
    assert port.left_s == pytest.approx(2 / RATE_HZ)


def test_stale_packets_are_dropped(port, gui):
    for _ in range(2 * MAX_DRAINED):
        gui.send(b"stale")
    assert port.drop() == 2 * MAX_DRAINED
    assert port.drop() == 0
    gui.send(b"new")
    assert taken(port)[:2] == ((VideoFrame(b"new"),), 1)
