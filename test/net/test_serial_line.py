# SPDX-License-Identifier: Apache-2.0
"""Serial line as a link, over a pseudo-terminal."""

import contextlib
import errno
import fcntl
import grp
import math
import os
import struct
import subprocess
import sys
import termios
import time
import tty
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from patience import wait_until

from drone_bridge.net import serial_line
from drone_bridge.net.connector import LinkCancelledError, LinkClosedError, LinkError, LinkInUseError
from drone_bridge.net.link_loop import Connected, Disconnected, ReceivedData, StreamLink
from drone_bridge.net.serial_line import STALE_S, UNREAD_BYTES, PseudoTerminal, SerialLine


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
    return wait_until(line.receive, "an event of the line")


def test_a_serial_line_is_a_stream_to_one_peer(line, device):
    path = device.path
    assert isinstance(line, StreamLink)
    assert next_of(line) == Connected(path)
    os.write(device.end, b"hello\r\n")
    received = b""
    while len(received) < 7:
        arrived = next_of(line)
        assert isinstance(arrived, ReceivedData)
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


@pytest.fixture
def backlog(line, monkeypatch):
    """Return a list with the number of bytes that the system claims to keep unsent, in a connected line."""
    next_of(line)
    unsent = [math.inf]
    monkeypatch.setattr(serial_line._Device, "backlog", property(lambda _: unsent[0]))
    return unsent


def stalled(line):
    """Fill the line until the last packet, or a part of it, is pending."""
    next_of(line)
    while not line._unsent.pieces:
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


@pytest.mark.parametrize("is_closed", [False, True])
def test_a_packet_is_dropped_after_its_time_limit_and_when_the_line_closes(line, device, clock, backlog, is_closed):
    line.send(b"takeoff", None, until_s=clock[0] + STALE_S / 2)
    line.send(b"neutral", None)
    clock[0] += 0.0 if is_closed else STALE_S / 2
    backlog[0] = 0
    if is_closed:
        line.disconnect(None)
    else:
        line.receive()
    assert device.read_waiting() == b"neutral"


def test_a_landing_outlasts_a_stalled_line(line, device, clock, backlog):
    line.send(b"move", None)
    line.send(b"land", None, until_s=math.inf)
    clock[0] += 2 * STALE_S
    with pytest.raises(LinkError, match="1 stale packets were dropped"):
        line.send(b"neutral", None)
    backlog[0] = 0
    line.receive()
    assert device.read_waiting() == b"landneutral"


def test_a_stalled_line_never_grows(line, clock):
    stalled(line)
    for _ in range(10_000):
        clock[0] += STALE_S / 10
        with contextlib.suppress(LinkError):
            line.send(b"n" * 1000, None)
    assert len(line._unsent.pieces) < 20


def test_the_system_s_backlog_is_limited_to_fresh_packets(line, device, backlog):
    backlog[0] = 115200 / 10 * STALE_S + 1
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
    for name in ("file", "missing"):
        first, _ = opened(str(tmp_path / name), lambda link, failures: len(failures) == 2 and link.cancel())
        assert name in str(first)


def test_an_unsupported_baud_rate_is_refused():
    with pytest.raises(ValueError, match="12345"):
        SerialLine("/dev/null", 12345, lambda error, delay_s: None)


def test_opening_does_not_block_while_it_is_cancelled():
    link = SerialLine("/nonexistent", 9600, lambda error, delay_s: None)
    with ThreadPoolExecutor() as pool, contextlib.closing(link):
        opening = pool.submit(link.open)
        link.cancel()
        assert isinstance(opening.exception(), LinkCancelledError)


# One program at a time.

HOLDER = """
import sys, time
from drone_bridge.net.serial_line import SerialLine
SerialLine(sys.argv[1], 9600, print).open()
print("open", flush=True)
time.sleep(1000)
"""


@pytest.fixture
def holder(device):
    """Another program that uses the line, until it is killed."""
    command = [sys.executable, "-c", HOLDER, device.path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "open\n"
        yield process
        process.kill()


def opened(path, on_failure=lambda link, failures: None):
    """Open and close a line. Return the failed attempts, each with the delay of the next one, s."""
    failures = []

    def failed(error, delay_s):
        failures.append((error, delay_s))
        on_failure(link, failures)

    link = SerialLine(path, 9600, failed)
    with contextlib.closing(link), contextlib.suppress(LinkCancelledError):
        link.open()
        assert next_of(link) == Connected(path)
    return failures


def test_a_line_in_use_is_refused_with_the_program_and_retried(holder, device):
    failures = opened(device.path, lambda _, failures: len(failures) == 5 and (holder.kill(), holder.wait()))
    assert [type(error) for error, _ in failures] == [LinkInUseError] * 5
    first, _ = failures[0]
    assert f"(process {holder.pid})" in str(first)
    assert sys.executable in str(first)
    assert max(delay_s for _, delay_s in failures) <= 1.0, "a vehicle waits"


def test_a_line_is_free_as_soon_as_its_program_was_killed(holder, device):
    holder.kill()
    holder.wait()
    assert not opened(device.path)


def test_a_second_link_of_this_process_is_refused_until_the_first_closes(line, device):
    ((error, _),) = opened(device.path, lambda *_: line.disconnect(None))
    assert str(os.getpid()) in str(error)


def test_a_closed_line_is_free_although_a_copy_of_its_descriptor_is_open(line, device):
    copy = os.dup(line.files()[0].fileno())
    line.disconnect(None)
    assert not opened(device.path)
    os.close(copy)


def is_exclusive(line):
    [value] = struct.unpack("i", fcntl.ioctl(line.files()[0].fileno(), 0x80045440, bytes(4)))  # TIOCGEXCL
    return bool(value)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux reports it")
def test_programs_without_a_lock_are_excluded_except_on_pseudo_terminals(line, device, monkeypatch):
    assert not is_exclusive(line), "after SIGKILL it would stay so until the other end closes"
    line.disconnect(None)
    monkeypatch.setattr(serial_line, "_is_pseudo_terminal", lambda path: False)
    line.open()
    assert is_exclusive(line)
    copy = os.dup(line.files()[0].fileno())
    line.disconnect(None)
    [value] = struct.unpack("i", fcntl.ioctl(copy, 0x80045440, bytes(4)))
    os.close(copy)
    assert not value


def test_a_line_that_another_user_has_excluded_is_in_use(device, monkeypatch):
    monkeypatch.setattr(serial_line.os, "open", Mock(side_effect=OSError(errno.EBUSY, "Device or resource busy")))
    ((error, _),) = opened(device.path, lambda link, _: link.cancel())
    assert isinstance(error, LinkInUseError)
    assert "lsof" in str(error)


@pytest.mark.parametrize(
    ("mode", "group", "is_advised"), [(0o660, "dialout", True), (0o600, "dialout", False), (0o660, "root", False)]
)
def test_a_line_of_another_group_is_named_with_the_command_that_joins_it(monkeypatch, mode, group, is_advised):
    refuse = Mock(side_effect=PermissionError(errno.EACCES, "Permission denied"))
    status = SimpleNamespace(st_gid=grp.getgrnam(group).gr_gid, st_mode=mode)
    monkeypatch.setattr(serial_line.os, "open", refuse)
    monkeypatch.setattr(serial_line.os, "stat", lambda path: status)
    monkeypatch.setattr(serial_line.os, "getgroups", lambda: [1000])
    ((error, _),) = opened("/dev/ttyUSB0", lambda link, _: link.cancel())
    assert ("sudo usermod -aG dialout $USER" in str(error)) == is_advised
    assert str(error).startswith("/dev/ttyUSB0 can't be opened: ")


def test_a_line_that_is_not_there_is_named_with_those_that_are(monkeypatch, tmp_path):
    monkeypatch.setattr(serial_line, "glob", lambda pattern: ["/dev/ttyACM0"])
    ((error, _),) = opened(str(tmp_path / "ttyUSB0"), lambda link, _: link.cancel())
    assert "ttyUSB0 does not exist; serial devices are: /dev/ttyACM0: connect it" in str(error)


def test_a_pseudo_terminal_is_the_other_end_of_a_line_and_its_link_ends_with_it(monkeypatch, tmp_path):
    now_s = [100.0]
    monkeypatch.setattr(serial_line, "elapsed_s", lambda: now_s[0])
    path = str(tmp_path / "robot")
    os.symlink(tmp_path / "gone", path)  # as a killed program leaves it
    robot, end_s = PseudoTerminal(path, 115200), time.monotonic() + 60.0
    client = SerialLine(path, 115200, lambda error, delay_s: None)
    robot.open()
    assert next_of(robot) == Connected(path)
    with open(os.open(path, os.O_RDONLY | os.O_NOCTTY), "rb", buffering=0) as line:  # it reads what has waited

        def send(data: bytes, unread: int) -> None:
            robot.send(data, None)
            while fcntl.ioctl(line, termios.FIONREAD, bytes(4)) != struct.pack("i", unread):  # the kernel hands it on
                assert time.monotonic() < end_s

        for sent in range(100, UNREAD_BYTES + 100, 100):
            send(b"s" * 100, sent)
        send(b"more", sent + 4)
        assert line.read(65536).endswith(b"sssmore"), "a program may be slow"
        send(b"s" * (UNREAD_BYTES + 1), UNREAD_BYTES + 1)
        send(b"more", UNREAD_BYTES + 5)
        now_s[0] += STALE_S + 0.1
        send(b"fresh", 5)
        assert line.read(65536) == b"fresh", "what nobody has read is dropped"
    assert robot.receive() is None, "a closed line is no end"
    client.open()
    client.send(b"\x03go\n", None)
    assert next_of(robot).data == b"\x03go\n"
    client.close()
    robot.close()
    assert not os.path.lexists(path)


def test_a_pseudo_terminal_replaces_no_file(device, tmp_path):
    for path, reason in ((device.path, "File exists"), (str(tmp_path / "none" / "tty"), "No such file or directory")):
        with pytest.raises(LinkError, match=f"{path} can't be linked to a pseudo-terminal: {reason}."):
            PseudoTerminal(path, 115200)
    assert os.path.exists(device.path)


def test_a_pseudo_terminal_replaces_the_link_of_a_killed_one(closing, tmp_path):
    """Its terminal is gone, and the new one may have its number."""
    killed = PseudoTerminal(str(tmp_path / "robot"), 115200)
    os.close(killed._end)
    os.close(killed._line)
    closing(PseudoTerminal(str(tmp_path / "robot"), 115200))


@pytest.mark.parametrize("by", [None, "gone", "file"])
def test_a_pseudo_terminal_removes_no_link_but_its_own(by, tmp_path):
    path = tmp_path / "robot"
    robot = PseudoTerminal(str(path), 115200)
    path.unlink()
    if by == "gone":
        path.symlink_to(by)
    elif by:
        path.touch()
    robot.close()
    assert os.path.lexists(path) == bool(by)
