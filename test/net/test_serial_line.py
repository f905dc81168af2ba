# SPDX-License-Identifier: Apache-2.0
"""A serial line as a link, over a pseudo-terminal."""

import os
import threading
import tty

import pytest

from drone_bridge.net.blocking import receive
from drone_bridge.net.connector import Cancellation, LinkCancelledError, LinkClosedError, LinkError
from drone_bridge.net.link_loop import Connected, Disconnected, Received, StreamLink
from drone_bridge.net.serial_line import MAX_UNSENT_BYTES, SerialLine


@pytest.fixture
def far_end():
    """The robot's end, and the path of ours."""
    master, slave = os.openpty()
    tty.setraw(slave)
    path = os.ttyname(slave)
    os.close(slave)
    ends = [master]
    yield ends, path
    for each in ends:
        os.close(each)


@pytest.fixture
def line(far_end):
    link = SerialLine(far_end[1], 115200, lambda error, delay_s: None)
    link.open()
    yield link
    link.close()


def next_of(line):
    return receive(line, Cancellation(), 20.0)


def test_it_is_a_stream_to_one_peer(line, far_end):
    (master,), path = far_end
    assert isinstance(line, StreamLink)
    assert next_of(line) == Connected(path)
    os.write(master, b"hello\r\n")
    received = b""
    while len(received) < 7:
        arrived = next_of(line)
        assert isinstance(arrived, Received)
        received += arrived.data
    assert received == b"hello\r\n", "eight bits, as they are"
    line.send(b"\x00\x03\n", None)
    assert os.read(master, 100) == b"\x00\x03\n"
    line.disconnect(path)
    with pytest.raises(LinkClosedError):
        line.receive()


def test_a_device_that_has_gone_is_disconnected_and_opened_again(line, far_end):
    ends, path = far_end
    next_of(line)
    os.close(ends.pop())
    arrived = next_of(line)
    assert isinstance(arrived, Disconnected)
    assert path in arrived.sentence
    with pytest.raises(LinkClosedError):
        line.receive()
    with pytest.raises(LinkError):
        line.send(b"x", None)


def test_a_line_that_takes_nothing_drops_whole_packets(line):
    next_of(line)

    def send_much():
        for _ in range(1000):
            line.send(b"x" * 1000, None)

    with pytest.raises(LinkError, match="too slow"):
        send_much()
    assert MAX_UNSENT_BYTES >= sum(map(len, line._unsent)) > MAX_UNSENT_BYTES - 2000


def test_a_path_that_is_no_line_is_tried_until_it_is_cancelled(tmp_path):
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


def test_a_rate_that_lines_do_not_have_is_refused():
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
