# SPDX-License-Identifier: Apache-2.0
"""The last minute of a wire log: what is kept in memory, within which limits, and when and where it is saved."""

import errno
import threading
import time
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from patience import wait_until
from tcp_peer import LONG_S

from drone_bridge.kind import Side
from drone_bridge.net import wire_log, wire_log_file
from drone_bridge.net.connector import RECEIVED, SENT
from drone_bridge.net.wire_log import LARGE_BYTES, MAX_MINUTES, MINUTE_S, WireLog, facts_of
from drone_bridge.tools.wire.log_file import LogFile
from drone_bridge.wire.outgoing import Secret

ENDS = "tcp", "127.0.0.1:1", "127.0.0.1:2"
US, THEM = Side.OPERATOR, Side.VEHICLE
HEAD = b"head" * 1000
LIMIT = 1 << 20


class Minutes:
    """Log without a file, whose time is the test's."""

    def __init__(self, folder, monkeypatch, name="robot_bridge"):
        self.now_s, self.folder, self.said, self.problems = 1000.0, folder, [], []
        clock = SimpleNamespace(
            monotonic=lambda: self.now_s,
            monotonic_ns=lambda: int(self.now_s * 1e9),
            time_ns=lambda: int(self.now_s * 1e9),
            sleep=time.sleep,
        )
        monkeypatch.setattr(wire_log, "time", clock)
        monkeypatch.setenv("DRONE_BRIDGE_WIRE", str(folder))
        monkeypatch.setattr(WireLog, "_saved", {})
        facts = facts_of("robot", "operator", name, {})
        self.log = WireLog(None, name, facts, self.problems.append, min_free_mb=0.0, on_saved=self.said.append)
        self.tap = self.log(*ENDS)

    def put(self, direction, *pieces, every_s=0.0):
        for piece in pieces:
            self.now_s += every_s
            self.tap(direction, piece)

    def due(self, seconds=wire_log.SAVE_AFTER_S):
        """Advance the time, and let the log's thread look at it."""
        self.now_s += seconds
        self.log._wakeup.set()

    def files(self):
        return sorted(self.folder.glob("*.mcap"))

    def saved(self):
        """Save at once, and return sender, data, omitted bytes and whether they are a gap of each entry."""
        self.now_s += MINUTE_S
        assert self.log.save("test")
        said = len(self.said)
        self.due()
        wait_until(lambda: len(self.said) > said, "the file")
        with LogFile(self.files()[-1]) as file:
            return [entry[2:] for entry in file.entries()]


@pytest.fixture
def minutes(tmp_path, monkeypatch):
    made = Minutes(tmp_path / "wire", monkeypatch)
    yield made
    made.log.close()


def test_the_last_minute_and_the_begin_of_the_connection_are_saved(minutes):
    minutes.put(SENT, HEAD[:3000])
    minutes.put(RECEIVED, *(b"%03d" % number for number in range(200)), every_s=1.0)
    minutes.put(SENT, b"last")
    first, *numbers, last = minutes.saved()
    assert (first, last) == ((US, HEAD[:3000], 0, False), (US, b"last", 0, False))
    kept = [data for _, data, *_ in numbers]
    assert kept == [b"%03d" % each for each in range(3)] + [b""] + [b"%03d" % each for each in range(139, 200)]
    assert numbers[3] == (THEM, b"", 3 * 136, True)


def test_memory_is_bounded_and_large_pieces_go_first(minutes, monkeypatch):
    monkeypatch.setattr(wire_log, "MINUTE_BYTES", LIMIT)
    minutes.put(SENT, HEAD)
    picture = bytes(LARGE_BYTES * 20)
    for number in range(2 * LIMIT // len(picture)):
        minutes.put(RECEIVED, bytes(picture), b"%07d" % number, every_s=0.005)
    assert minutes.log._kept_bytes <= LIMIT
    pieces = minutes.saved()[1:]
    pictures, numbers = pieces[::2], pieces[1::2]
    assert [data for _, data, *_ in numbers] == [b"%07d" % number for number in range(len(numbers))]
    sizes = [(len(data), omitted) for _, data, omitted, _ in pictures]
    first = sizes.index((len(picture), 0))
    assert sizes == [(0, len(picture))] * first + [(len(picture), 0)] * (len(sizes) - first)
    assert sum(size for size, _ in sizes) > 0.8 * LIMIT
    minutes.put(RECEIVED, *(b"%07d" % number for number in range(10_000)), every_s=0.001)
    assert minutes.log._kept_bytes <= LIMIT
    assert minutes.saved()[-1][1] == b"0009999"


def test_a_picture_in_a_buffer_is_not_copied(minutes):
    minutes.put(RECEIVED, memoryview(bytearray(1 << 20)), memoryview(b"tail"))
    assert minutes.saved() == [(THEM, b"", 1 << 20, False), (THEM, b"tail", 0, False)]


def test_no_part_of_a_login_is_in_a_file(minutes, tmp_path, monkeypatch):
    with_file = WireLog(tmp_path, "robot_bridge", facts_of("robot", "operator", "x", {}), print, min_free_mb=0.0)
    for log in (minutes.log, with_file):
        log.secrets = b"me:secret", b"secret"
        tap = log(*ENDS)
        for data in (Secret(b"login c2VjcmV0"), memoryview(Secret(b"login c2VjcmV0"))[3:], b"pass secret", b"run"):
            tap(SENT, data)
        tap(RECEIVED, b"echo: me:secret")
    with_file.close()
    minutes.saved()
    monkeypatch.undo()
    for path in (*minutes.files(), *tmp_path.glob("*.mcap")):
        with LogFile(path) as file:
            entries = list(file.entries())
        assert [(each.data, each.omitted) for each in entries] == [
            *((b"", n) for n in (14, 11, 11)),
            (b"run", 0),
            (b"", 15),
        ]
        assert not any(word in path.read_bytes() for word in (b"secret", b"c2Vjcm"))


def test_one_file_per_minute_and_what_follows_belongs_to_it(minutes):
    assert minutes.log.save("hold") == ""  # nothing was sent
    minutes.put(RECEIVED, b"before")
    assert str(minutes.folder) in minutes.log.save("hold")
    minutes.put(SENT, b"neutral", every_s=0.9)
    assert minutes.files() == []
    minutes.due(0.2)
    wait_until(lambda: minutes.said, "the first file")
    assert [str(minutes.files()[0]) in minutes.said[0], "(hold)" in minutes.said[0]] == [True, True]
    assert minutes.log.save("again") == ""
    minutes.put(SENT, b"more")
    for reason in ("doubt", "stall", "doubt"):
        minutes.log.save(reason)
        minutes.due(10.0)
    minutes.put(SENT, b"even more")
    minutes.due(MINUTE_S - 31.0)
    assert len(minutes.said) == 1
    minutes.due(2.0)
    wait_until(lambda: len(minutes.said) == 2, "the second file")
    assert "(doubt, stall)" in minutes.said[1]
    with LogFile(minutes.files()[1]) as file:
        assert [each.data for each in file.entries()] == [b"before", b"neutral", b"more", b"even more"]


def test_the_twenty_first_file_replaces_the_oldest(minutes):
    names = []
    for number in range(MAX_MINUTES + 2):
        minutes.put(SENT, b"%d" % number)
        minutes.saved()
        names.append(minutes.files()[-1])
    assert minutes.files() == names[2:]


def test_a_pending_minute_is_saved_at_the_end(minutes):
    minutes.put(SENT, b"neutral")
    minutes.log.save("hold")
    assert minutes.log.close()
    assert len(minutes.files()) == len(minutes.said) == 1


@pytest.mark.parametrize(
    "full", [lambda *_: "It has 3 MB free.", Mock(side_effect=OSError(errno.ENOSPC, "No space left on device"))]
)
def test_a_full_disk_drops_the_file_and_nothing_else(minutes, monkeypatch, full):
    with monkeypatch.context() as patch:
        patch.setattr(wire_log_file, "shortage", full)
        minutes.put(SENT, b"one")
        minutes.log.save("hold")
        minutes.due()
        wait_until(lambda: minutes.problems, "the sentence")
    assert minutes.files() == []
    assert "(hold) was not saved" in minutes.problems[0]
    minutes.put(SENT, b"two")
    assert [data for _, data, *_ in minutes.saved()] == [b"one", b"two"]


def test_a_slow_disk_delays_no_tap(minutes, monkeypatch):
    gate, write = threading.Event(), wire_log_file.WireLogFile.write
    monkeypatch.setattr(wire_log_file.WireLogFile, "write", lambda *arguments: gate.wait(LONG_S) and write(*arguments))
    minutes.put(SENT, b"one")
    minutes.log.save("hold")
    minutes.due()
    wait_until(minutes.files, "the file")
    minutes.put(SENT, b"two")  # returns, although nothing is written
    gate.set()
    wait_until(lambda: minutes.said, "its end")
