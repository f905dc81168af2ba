# SPDX-License-Identifier: Apache-2.0
"""The port that the GUI forwards its drone's video to, with real sockets and a clock of the test."""

import select

import pytest
from patience import TIMEOUT_S
from video_sender import VideoSender

from drone_bridge.dronegui.pictures import packets
from drone_bridge.dronegui.pictures.packets import GuiVideoPort
from drone_bridge.pictures import video_port
from drone_bridge.pictures.video_port import MAX_DRAINED

RATE_HZ = 10.0


@pytest.fixture
def now_s(monkeypatch):
    """The time, s, which stands still: now_s[0]."""
    time_s = [100.0]
    for module in (packets, video_port):
        monkeypatch.setattr(module, "elapsed_s", lambda: time_s[0])
    return time_s


@pytest.fixture
def port(now_s, closing, free_port):
    opened = closing(GuiVideoPort(free_port, lambda: ("127.0.0.1", "127.0.0.1"), None))
    opened.keep_open(False)
    opened.number = free_port
    return opened


@pytest.fixture
def gui(port, closing):
    return closing(VideoSender(port.number))


def taken(port):
    """Wait for datagrams, and take them."""
    assert select.select([port], [], [], TIMEOUT_S)[0]
    read = port.take(RATE_HZ)
    return [frame.data for frame in read.frames], read.received, read.refused


def test_the_newest_packet_counts_and_the_next_one_waits_for_its_turn(port, gui, now_s):
    for packet in (b"1", b"2"):
        gui.send(packet)
    assert taken(port) == ([b"2"], 2, 0)
    gui.send(b"3")
    assert taken(port) == ([b"3"], 1, 0)  # the port has been idle
    gui.send(b"4")
    assert taken(port) == ([], 0, 0)
    now_s[0] += port.left_s
    assert taken(port) == ([b"4"], 1, 0)


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
    assert sum(taken(port)[1:]) == MAX_DRAINED
    assert port.left_s == pytest.approx(2 / RATE_HZ)


def test_stale_packets_are_dropped(port, gui):
    for _ in range(2 * MAX_DRAINED):
        gui.send(b"stale")
    assert port.drop() == 2 * MAX_DRAINED
    assert port.drop() == 0
    gui.send(b"new")
    assert taken(port) == ([b"new"], 1, 0)
