# SPDX-License-Identifier: Apache-2.0
"""Serial line as a link, over a pseudo-terminal."""

import contextlib
import os
import threading
import tty

import pytest

from drone_bridge.net import serial_line
from drone_bridge.net.blocking import receive
from drone_bridge.net.connector import Cancellation, LinkCancelledError, LinkClosedError, LinkError
from drone_bridge.net.link_loop import Connected, Disconnected, Received, StreamLink
from drone_bridge.net.serial_line import STALE_S, SerialLine


class Device:
    """Device that can be unplugged and plugged in: a pseudo-terminal at a constant path."""

    def __init__(self, path):
        self.path, self.end = str(path), -1
        self.plug()

    def plug(self):
        self.end, slave = os.openpty()
        tty.setraw(slave)
        os.symlink(os.ttyname(slave), self.path)
        os.close(slave)

    def unplug(self):
        if self.end >= 0:
            os.close(self.end)
            os.unlink(self.path)
        self.end = -1

    def read_waiting(self):
        """Return all pending bytes."""
        os.set_blocking(self.end, False)
        data = b""
        with contextlib.suppress(OSError):  # nothing more, or the other end has closed
            while True:
                data += os.read(self.end, 65536)
        return data


@pytest.fixture
def device(tmp_path):
    device = Device(tmp_path / "ttyUSB0")
    yield device
    device.unplug()


@pytest.fixture
def line(device):
    link = SerialLine(device.path, 115200, lambda error, delay_s: None)
    link.open()
    yield link
    link.close()


def next_of(line):
    return receive(line, Cancellation(), 20.0)


def test_a_serial_line_is_a_stream_to_one_peer(line, device):
    path = device.path
    assert isinstance(line, StreamLink)
    assert next_of(line) == Connected(path)
    os.write(device.end, b"hello\r\n")
    received = b""
    while len(received) < 7:
        arrived = next_of(line)
        assert isinstance(arrived, Received)
        received += arrived.data
    assert received == b"hello\r\n", "eight bits, as they are"
    line.send(b"\x00\x03\n", None)
    assert os.read(device.end, 100) == b"\x00\x03\n"
    line.disconnect(path)
    with pytest.raises(LinkClosedError):
        line.receive()


def test_a_removed_device_is_disconnected_and_reopened(line, device):
    next_of(line)
    device.unplug()
    arrived = next_of(line)
    assert isinstance(arrived, Disconnected)
    assert device.path in arrived.sentence
    with pytest.raises(LinkClosedError):
        line.receive()
    with pytest.raises(LinkError):
        line.send(b"x", None)
    device.plug()
    line.open()
    assert next_of(line) == Connected(device.path)
    line.send(b"again", None)
    assert os.read(device.end, 100) == b"again"


@pytest.fixture
def clock(monkeypatch):
    """Return the line's fake clock, s."""
    now_s = [100.0]
    monkeypatch.setattr(serial_line, "elapsed_s", lambda: now_s[0])
    return now_s


def stalled(line):
    """Fill the line until the last packet, or a part of it, is pending."""
    next_of(line)
    while not line._unsent:
        line.send(b"m" * 1000, None)


def test_a_resumed_line_sends_only_packets_that_are_not_stale(line, device, clock):
    stalled(line)
    line.send(b"stale", None)
    clock[0] += 1.1 * STALE_S
    with pytest.raises(LinkError, match="stale"):
        line.send(b"neutral", None)
    line.send(b"neutral", None)
    before = device.read_waiting()
    assert line.receive() is None
    after = device.read_waiting()
    assert len(before + after) % 1000 == 2 * len(b"neutral"), "each packet whole, or not at all"
    assert (before + after).lstrip(b"m") == b"neutral" * 2


def test_a_stalled_line_never_grows(line, clock):
    stalled(line)
    for _ in range(10_000):
        clock[0] += STALE_S / 10
        with contextlib.suppress(LinkError):
            line.send(b"n" * 1000, None)
    assert len(line._unsent) < 20


def test_the_system_s_backlog_is_limited_to_fresh_packets(line, device, monkeypatch):
    next_of(line)
    backlog = [115200 / 10 * STALE_S + 1]
    monkeypatch.setattr(serial_line._Device, "backlog", property(lambda _: backlog[0]))
    line.send(b"ahead", None)
    assert device.read_waiting() == b""
    backlog[0] = 0
    line.receive()
    assert device.read_waiting() == b"ahead"


def test_the_last_packets_are_sent_before_the_line_is_closed(line, device, monkeypatch):
    next_of(line)
    backlogs = [1, 1, 1, 0, 0]
    monkeypatch.setattr(serial_line._Device, "backlog", property(lambda _: backlogs.pop(0) if backlogs else 0))
    line.send(b"neutral", None)
    line.disconnect(None)
    assert not backlogs
    assert device.read_waiting() == b"neutral"


def test_a_stalled_line_is_closed_without_its_last_packets(line):
    stalled(line)
    line.send(b"neutral", None)
    line.disconnect(None)
    with pytest.raises(LinkClosedError):
        line.receive()


def test_a_path_without_a_line_is_retried_until_cancelled(tmp_path):
    (tmp_path / "file").write_text("no line")
    failures, cancellation = [], Cancellation()

    def failed(error, delay_s):
        failures.append(str(error))
        if len(failures) == 2:
            cancellation.cancel()

    for name in ("file", "missing"):
        failures.clear()
        link = SerialLine(str(tmp_path / name), 9600, failed, cancellation=cancellation)
        with pytest.raises(LinkCancelledError):
            link.open()
        link.close()
        assert name in failures[0]
        cancellation = Cancellation()


def test_an_unsupported_baud_rate_is_refused():
    with pytest.raises(ValueError, match="12345"):
        SerialLine("/dev/null", 12345, lambda error, delay_s: None)


def test_opening_does_not_block_while_it_is_cancelled():
    link = SerialLine("/nonexistent", 9600, lambda error, delay_s: None)
    failed = threading.Event()

    def run():
        with pytest.raises(LinkCancelledError):
            link.open()
        failed.set()

    thread = threading.Thread(target=run)
    thread.start()
    link.cancel()
    thread.join()
    assert failed.is_set()
    link.close()
