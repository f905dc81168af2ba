# SPDX-License-Identifier: Apache-2.0
"""Wire log: contents of its files for real sockets, and behaviour on failures."""

import errno
import os
import socket
import sys
import threading
import time
from unittest.mock import Mock

import pytest
from patience import wait_until
from tcp_peer import LONG_S

from drone_bridge.kind import Side
from drone_bridge.net import wire_log, wire_log_file
from drone_bridge.net.connector import RECEIVED, SENT, LinkError
from drone_bridge.net.datagram_link import DatagramPeer, DatagramPort
from drone_bridge.net.link_loop import Connected
from drone_bridge.net.tcp_connection import StreamOptions
from drone_bridge.net.tcp_peer import TcpPeer
from drone_bridge.net.wire_log import WireLog, facts_of
from drone_bridge.net.wire_log_file import WireLogFile
from drone_bridge.tools.wire.log_file import LogFile

MEBIBYTE = 1 << 20
FACTS = facts_of("robot", "operator", "robot_bridge", {"robot_name": ""})
ENDS = "tcp", "127.0.0.1:1", "127.0.0.1:2"
US, THEM = Side.OPERATOR, Side.VEHICLE


@pytest.fixture
def make_log(tmp_path):
    made, ends = [], []

    def make(total_bytes=64 * MEBIBYTE, folder=tmp_path / "log"):
        made.append(WireLog(folder, "robot_bridge", FACTS, ends.append, total_bytes))
        made[-1].ends, made[-1].folder = ends, folder
        return made[-1]

    yield make
    for log in made:
        log.close()


def files_of(log):
    return sorted(log.folder.glob("*.mcap"))


def entries_of(path):
    with LogFile(path) as file:
        return list(file.entries())


def contents(path):
    return [(entry.sender, entry.data) for entry in entries_of(path)]


def hear(link):
    """Return the next event of the link."""
    return wait_until(link.receive, "something on the link")


@pytest.fixture
def begun(make_log):
    """Return a log, and its tap, by which something is written."""
    log = make_log()
    tap = log(*ENDS)
    tap(SENT, b"before")
    wait_until(lambda: contents(files_of(log)[0]), "what is written")
    return log, tap


def test_tcp_connection_is_logged_in_both_directions_with_times_and_end(make_log, closing):
    log = make_log()
    with socket.create_server(("127.0.0.1", 0)) as server:
        began_ns = time.time_ns()
        port = server.getsockname()[1]
        halves = memoryview(bytearray(2)), memoryview(bytearray(20))
        options = StreamOptions(memory=lambda peer: halves)
        link = closing(TcpPeer("127.0.0.1", port, lambda *_: None, options=options, wire_log=log))
        link.open()
        connected = hear(link)
        assert isinstance(connected, Connected)
        peer, address = server.accept()
        link.send(b"question", connected.source)
        assert peer.recv(100) == b"question"
        peer.sendall(b"answer")
        assert hear(link).size == 6
        peer.close()
        assert hear(link).is_regular
    log.close()
    (path,) = files_of(log)
    with LogFile(path) as file:
        source = file.source
    assert (source.kind.name, source.side, source.name) == ("robot", US, "robot_bridge")
    assert source.parameters == {"robot_name": ""}
    assert contents(path)[:4] == [(US, b"question"), (THEM, b"an"), (THEM, b"swer"), (THEM, b"")]
    entries = entries_of(path)
    assert {entry.connection[:4] for entry in entries} == {(1, "tcp", f"127.0.0.1:{address[1]}", f"127.0.0.1:{port}")}
    assert all(began_ns <= entry.time_ns <= time.time_ns() for entry in entries)
    assert log.ends == []


def test_datagrams_are_logged_with_their_senders(make_log, closing):
    log = make_log()
    port = closing(DatagramPort("127.0.0.1", 0, log))
    link = closing(DatagramPeer("127.0.0.1", port.port, lambda *_: None, log))
    link.open()
    link.send(b"telemetry", None)
    datagram = hear(port)
    port.send(b"command", datagram.source)
    assert hear(link).data == b"command"
    log.close()
    own, theirs = f"127.0.0.1:{datagram.source[1]}", f"127.0.0.1:{port.port}"
    assert [(*entry.connection[1:4], entry.sender, entry.data) for entry in entries_of(*files_of(log))] == [
        ("udp", own, theirs, US, b"telemetry"),
        ("udp", theirs, own, THEM, b"telemetry"),
        ("udp", theirs, own, US, b"command"),
        ("udp", own, theirs, THEM, b"command"),
    ]


def test_without_mcap_one_sentence_names_the_missing_package(make_log, monkeypatch):
    monkeypatch.setitem(sys.modules, "mcap.writer", None)
    with pytest.raises(LinkError, match="pip install mcap"):
        make_log()


def test_a_truncated_file_is_read_up_to_its_end(make_log, tmp_path):
    log = make_log()
    begin = files_of(log)[0].stat().st_size  # with whose log it is
    tap = log(*ENDS)
    tap(SENT, b"early")
    wait_until(lambda: contents(files_of(log)[0]), "what is written")
    tap(SENT, b"late")
    log.close()
    whole = files_of(log)[0].read_bytes()
    cut = tmp_path / "cut.mcap"
    counts = []
    for size in range(begin, len(whole) + 1):
        cut.write_bytes(whole[:size])
        found = contents(cut)
        assert found == [(US, b"early"), (US, b"late")][: len(found)]
        counts.append(len(found))
    assert sorted(counts) == counts
    assert set(counts) == {0, 1, 2}


def test_a_log_ends_at_its_maximum_size_and_the_oldest_files_are_deleted(make_log):
    sizes = []
    for number in range(4):
        log = make_log(total_bytes=16 * MEBIBYTE)
        tap = log(*ENDS)
        tap(SENT, b"%d" % number)
        for _ in range(12):
            tap(SENT, os.urandom(MEBIBYTE))
        wait_until(lambda log=log, number=number: len(log.ends) == number + 1, "its end")
        tap(SENT, b"nothing more is taken")
        log.close()
        sizes.append(files_of(log)[-1].stat().st_size)
    assert all(8 * MEBIBYTE <= size < 10 * MEBIBYTE for size in sizes)
    assert sum(path.stat().st_size for path in files_of(log)) <= 18 * MEBIBYTE
    assert [entries_of(path)[0].data for path in files_of(log)] == [b"3"]  # two of them would exceed the limit
    assert f"{files_of(log)[0]}" in log.ends[-1]


def test_short_logs_are_kept_until_there_are_too_many_bytes(make_log):
    for number in range(5):
        log = make_log(total_bytes=16 * MEBIBYTE)
        log(*ENDS)(SENT, b"%d" % number + os.urandom(3 * MEBIBYTE))
        log.close()
    assert [entries_of(path)[0].data[:1] for path in files_of(log)] == [b"2", b"3", b"4"]


def test_a_slow_disk_never_delays_the_link_and_ends_the_log(make_log, monkeypatch):
    gate = threading.Event()
    write = WireLogFile.write

    def slow(self, entries, most_bytes):
        assert gate.wait(LONG_S)
        return write(self, entries, most_bytes)

    monkeypatch.setattr(WireLogFile, "write", slow)
    monkeypatch.setattr(wire_log, "QUEUED_BYTES", 4 * MEBIBYTE)
    log = make_log()
    tap = log(*ENDS)
    pieces = [bytes([number]) * MEBIBYTE for number in range(20)]
    for piece in pieces:
        tap(SENT, piece)  # returns, although nothing is written
    gate.set()
    wait_until(lambda: log.ends, "its end")
    log.close()
    (path,) = files_of(log)
    found = [entry.data for entry in entries_of(path)]
    assert found == pieces[: len(found)]  # without a gap
    assert len(found) == 4
    assert ["too slow" in sentence for sentence in log.ends] == [True]


def test_a_full_disk_ends_the_log_and_keeps_written_data(begun, monkeypatch):
    log, tap = begun
    monkeypatch.setattr(WireLogFile, "write", Mock(side_effect=OSError(28, "No space left on device")))
    tap(SENT, os.urandom(2 * MEBIBYTE))
    wait_until(lambda: log.ends, "its end")
    tap(SENT, b"nothing waits for room any more")
    (path,) = files_of(log)
    assert ["No space left on device" in sentence for sentence in log.ends] == [True]
    assert contents(path) == [(US, b"before")]


@pytest.mark.parametrize(
    ("name", "found", "sentence"),
    [
        ("shortage", "It has 3 MB free.", "It has 3 MB free."),
        ("growth_error", OSError(errno.EDQUOT, "Disk quota exceeded"), "Disk quota exceeded."),
    ],
)
def test_a_log_ends_in_order_before_the_disk_is_full(begun, monkeypatch, name, found, sentence):
    log, tap = begun
    monkeypatch.setattr(wire_log_file, name, lambda *_: found)
    tap(SENT, b"after")
    wait_until(lambda: log.ends, "its end")
    assert log.ends[0].endswith(f"ends here. {sentence}")
    assert contents(files_of(log)[0]) == [(US, b"before")]
    assert files_of(log)[0].read_bytes().endswith(b"\x89MCAP0\r\n")


def test_no_log_starts_on_a_full_disk(make_log, monkeypatch):
    monkeypatch.setattr(wire_log_file, "shortage", lambda folder, *_: f"{folder} has 3 MB free.")
    with pytest.raises(LinkError, match="log has 3 MB free"):
        make_log()


def test_a_folder_that_cannot_be_written_to_is_refused_with_a_sentence(make_log, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(LinkError, match="Not a directory"):
        make_log(folder=tmp_path / "file" / "log")


def test_many_peers_of_a_port_eventually_share_a_channel(make_log):
    log = make_log()
    tap = log("udp", "127.0.0.1:1", "")
    for number in range(1000):
        tap(RECEIVED, b"hello", f"10.0.0.1:{number}")
    log.close()
    entries = entries_of(*files_of(log))
    assert len(entries) == 1000
    assert {entry.connection.peer for entry in entries[wire_log.MAX_PEERS :]} == {wire_log.OTHERS}
    assert len({entry.connection.number for entry in entries}) == wire_log.MAX_PEERS + 1
