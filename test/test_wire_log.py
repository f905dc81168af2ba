# SPDX-License-Identifier: Apache-2.0
"""The wire log: what is in the files, of real sockets, and what becomes of them when things go wrong."""

import itertools
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest
from mcap.reader import NonSeekingReader
from processes import Stopwatch
from tcp_peer import LONG_S

from drone_bridge.kind import Side
from drone_bridge.net import wire_log
from drone_bridge.net.connector import LinkCancelledError, LinkError
from drone_bridge.net.tcp import TcpConnector
from drone_bridge.net.tcp_listener import TcpListener
from drone_bridge.net.udp import UdpConnector, UdpListener
from drone_bridge.net.wire_log import WireLog, facts_of
from drone_bridge.tools.wire.log_file import LogFile

MEBIBYTE = 1 << 20
FACTS = facts_of("robot", "operator", "robot_bridge", {"robot_name": ""})


@pytest.fixture
def make_log(tmp_path):
    made, failures = [], []

    def make(total_bytes=64 * MEBIBYTE, folder=tmp_path / "log", **options):
        made.append(WireLog(folder, "robot_bridge", FACTS, total_bytes, failures.append, **options))
        made[-1].failures = failures
        made[-1].folder = folder
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


def stream(entries, sender):
    return b"".join(entry.data for entry in entries if entry.sender is sender)


def wait_until(condition):
    until = time.monotonic() + LONG_S
    while not condition():
        assert time.monotonic() < until, "it did not come true"
        time.sleep(0.02)


def test_both_directions_of_a_tcp_connection_and_its_end_are_logged_with_times(make_log, cancellation):
    log = make_log()
    with socket.create_server(("127.0.0.1", 0)) as server:
        began_ns = time.time_ns()
        port = server.getsockname()[1]
        connected = TcpConnector("127.0.0.1", port, cancellation, lambda *_: None, wire_log=log).open()
        peer, _ = server.accept()
        connected.send_all(b"question")
        assert peer.recv(100) == b"question"
        peer.sendall(b"answer")
        halves = memoryview(bytearray(2)), memoryview(bytearray(20))
        assert connected.receive_into(*halves, timeout_s=LONG_S) == 6
        peer.close()
        assert connected.receive_into(*halves, timeout_s=LONG_S) == 0
        connected.close()
    log.close()
    (path,) = files_of(log)
    with LogFile(path) as file:
        assert file.connection.peer == f"127.0.0.1:{port}"
        assert (file.connection.protocol, file.connection.transport) == ("robot", "tcp")
    us, them = Side.OPERATOR, Side.VEHICLE
    assert contents(path) == [(us, b"question"), (them, b"an"), (them, b"swer"), (them, b"")]
    assert all(began_ns <= entry.time_ns <= time.time_ns() for entry in entries_of(path))


def test_last_words_and_what_a_listener_hears_while_it_leaves_are_logged(make_log, cancellation):
    log = make_log()
    listener = TcpListener("127.0.0.1", 0, cancellation, lambda _: None, wire_log=log)
    with socket.create_connection(("127.0.0.1", listener.port)) as peer:
        stream_ = listener.open()
        peer.sendall(b"still talking")
        leaving = threading.Thread(target=stream_.leave, args=[[b"stop", b"bye"], LONG_S])
        leaving.start()
        assert peer.makefile("rb").read() == b"stopbye"
        peer.shutdown(socket.SHUT_WR)
        leaving.join()
    cancellation.cancel()
    listener.close()
    log.close()
    entries = entries_of(*files_of(log))
    assert [entry.data for entry in entries if entry.sender is Side.OPERATOR] == [b"stop", b"bye"]
    assert stream(entries, Side.VEHICLE) == b"still talking"


@pytest.mark.parametrize("has_pixels", [True, False])
def test_pixels_can_be_left_out_and_everything_else_is_logged_in_order(make_log, cancellation, has_pixels):
    log = make_log(has_pixels=has_pixels)
    image, few = os.urandom(3 * MEBIBYTE), os.urandom(5)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        connected = TcpConnector("127.0.0.1", port, cancellation, lambda *_: None, wire_log=log).open()
        peer, _ = server.accept()

        def show(message, pixel_bytes):
            """Let the peer send a message with so many pixels at its beginning, and read it into two buffers."""
            sending = threading.Thread(target=peer.sendall, args=[message])
            sending.start()
            memory = memoryview(bytearray(len(message)))
            halves = [memory[: pixel_bytes // 2], memory[pixel_bytes // 2 :]]
            came = 0
            while came < len(message):
                left = max(0, pixel_bytes - came)
                count = connected.receive_into(*halves, timeout_s=LONG_S, pixel_bytes=left)
                came += count
                while count:
                    part = min(count, len(halves[0]))
                    halves[0], count = halves[0][part:], count - part
                    halves = [half for half in halves if half] or halves[:1]
            sending.join()
            assert memory == message

        show(few + b"floats", len(few))
        show(image + b"more floats", len(image))
        hearing = threading.Thread(target=lambda: peer.recv(len(image) + 3, socket.MSG_WAITALL))
        hearing.start()
        connected.send_all(image, is_pixels=True)
        connected.send_all(b"end")
        hearing.join()
        peer.sendall(few[:3])
        peer.shutdown(socket.SHUT_WR)
        while connected.receive_into(memoryview(bytearray(5)), timeout_s=LONG_S, pixel_bytes=5):
            pass  # a stream that breaks inside an image
        connected.close()
    log.close()
    (path,) = files_of(log)
    entries = entries_of(path)
    assert entries[-1][1:] == (Side.VEHICLE, f"127.0.0.1:{port}", b"", False)
    if has_pixels:
        assert not any(entry.is_left_out for entry in entries)
        assert stream(entries, Side.VEHICLE) == few + b"floats" + image + b"more floats" + few[:3]
        assert stream(entries, Side.OPERATOR) == image + b"end"
        return
    assert path.stat().st_size < 16 << 10
    shown = bytes(5) + b"floats" + bytes(len(image)) + b"more floats" + bytes(3)
    assert stream(entries, Side.VEHICLE) == shown
    assert stream(entries, Side.OPERATOR) == bytes(len(image)) + b"end"
    logged = [entry for entry in entries if not entry.is_left_out]
    assert stream(logged, Side.VEHICLE) == b"floatsmore floats"
    assert stream(logged, Side.OPERATOR) == b"end"


def test_pixels_are_left_out_when_leaving_completes_their_message_too(make_log, cancellation):
    log = make_log(has_pixels=False)
    image = os.urandom(16 * MEBIBYTE)
    with socket.create_server(("127.0.0.1", 0)) as server:
        connected = TcpConnector(*server.getsockname(), cancellation, lambda *_: None, wire_log=log).open()
        peer, _ = server.accept()
    with peer:

        def cancel_inside_the_image():
            peer.recv(1, socket.MSG_PEEK)
            cancellation.cancel()

        threading.Thread(target=cancel_inside_the_image).start()
        with pytest.raises(LinkCancelledError):
            connected.send_all(image, is_pixels=True)
        leaving = threading.Thread(target=connected.leave, args=[b"end", LONG_S])
        leaving.start()
        with peer.makefile("rb") as read:
            assert read.read() == image + b"end"
        peer.shutdown(socket.SHUT_WR)
        leaving.join()
    log.close()
    entries = entries_of(files_of(log)[0])
    assert stream(entries, Side.OPERATOR) == bytes(len(image)) + b"end"
    assert stream([entry for entry in entries if not entry.is_left_out], Side.OPERATOR) == b"end"


@pytest.mark.parametrize("sizes", [(8, 8, 4), (8, 3, 5000), (1 << 19, 1 << 19, 12), (1, 1, 1 << 19)])
def test_of_any_read_only_the_pixels_are_left_out(make_log, sizes):
    log = make_log(has_pixels=False)
    connection = log.open("tcp", "127.0.0.1:1", "127.0.0.1:2")
    buffers, pixel_bytes = [memoryview(bytes([number]) * size) for number, size in enumerate(sizes, 1)], sum(sizes[:2])
    counts = {
        1,
        *(end + more for end in itertools.accumulate(sizes) for more in (-1, 0, 1) if end + more <= sum(sizes)),
    }
    counts = sorted(count for count in counts if count) * 5
    for count in counts:
        connection.received(buffers, count, pixel_bytes=pixel_bytes)
    connection.close()
    log.close()
    entries, expected = entries_of(*files_of(log)), b"".join(buffers)
    logged = [expected[pixel_bytes:count] for count in counts if count > pixel_bytes]
    assert b"".join(entry.data for entry in entries if not entry.is_left_out) == b"".join(logged)
    zeros = (bytes(min(count, pixel_bytes)) + expected[pixel_bytes:count] for count in counts)
    assert stream(entries, Side.VEHICLE) == b"".join(zeros)


def test_datagrams_are_logged_with_who_sent_them(make_log, cancellation):
    log = make_log()
    listener = UdpListener("127.0.0.1", 0, cancellation, log)
    connected = UdpConnector("127.0.0.1", listener.port, cancellation, lambda *_: None, log).open()
    own = f"127.0.0.1:{connected._socket.socket.getsockname()[1]}"
    connected.send(b"telemetry")
    datagram = listener.receive(LONG_S)
    listener.send(b"command", datagram.source)
    assert connected.receive(LONG_S) == b"command"
    connected.close()
    listener.close()
    log.close()
    for path in files_of(log):
        with LogFile(path) as file:
            of_listener = not file.connection.peer
            peer = own if of_listener else f"127.0.0.1:{listener_port(file)}"
            mine, theirs = (b"command", b"telemetry") if of_listener else (b"telemetry", b"command")
            assert {(entry.sender, entry.peer, entry.data) for entry in file.entries()} == {
                (Side.OPERATOR, peer, mine),
                (Side.VEHICLE, peer, theirs),
            }
    assert len(files_of(log)) == 2


def listener_port(file):
    return file.connection.peer.rpartition(":")[2]


@pytest.fixture(params=["mcap", "plain"])
def writer(request, monkeypatch):
    """What writes the files: mcap's writer, or where that package is missing our own."""
    if request.param == "plain":
        monkeypatch.setattr(wire_log, "Writer", None)
    return request.param


def test_the_mcap_library_reads_the_files(make_log, writer):
    log = make_log()
    connection = log.open("tcp", "127.0.0.1:1", "127.0.0.1:2")
    noise, flat = os.urandom(3 * MEBIBYTE), bytes(3 * MEBIBYTE)
    connection.sent(b"one")
    connection.received([memoryview(flat)], len(flat))
    connection.received([memoryview(noise)], len(noise))
    connection.sent(b"two")
    connection.close()
    log.close()
    (path,) = files_of(log)
    with path.open("rb") as file:
        read = list(NonSeekingReader(file).iter_messages(log_time_order=False))
        assert [message.sequence for _, _, message in read] == list(range(len(read)))
        assert (read[0][1].topic, read[0][2].data) == ("sent", b"one")
        assert (read[-1][1].topic, read[-1][2].data) == ("sent", b"two")
        assert {channel.topic for _, channel, _ in read[1:-1]} == {"received"}
        assert b"".join(message.data for _, _, message in read[1:-1]) == flat + noise
        file.seek(0)
        (metadata,) = NonSeekingReader(file).iter_metadata()
    assert metadata.metadata["protocol"] == "robot"
    assert (path.stat().st_size < 4 * MEBIBYTE) == (writer == "mcap")  # which compresses
    entries = entries_of(path)
    assert stream(entries, Side.OPERATOR) == b"onetwo"
    assert stream(entries, Side.VEHICLE) == flat + noise


WRITER = """
import sys, time
from pathlib import Path
from drone_bridge.net.wire_log import WireLog, facts_of
log = WireLog(Path(sys.argv[1]), "killed", facts_of("robot", "operator", "killed", {}), 1 << 26, print)
connection = log.open("tcp", "127.0.0.1:1", "127.0.0.1:2")
for number in range(10**9):
    connection.sent(number.to_bytes(4, "big"))
    if number % 50 == 0:
        print(number, time.time_ns(), flush=True)
    time.sleep(0.001)
"""


def test_the_file_of_a_killed_process_is_whole_up_to_the_last_second(tmp_path):
    command = [sys.executable, "-c", WRITER, tmp_path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        writing = Stopwatch(process.pid)
        first_ns = int(process.stdout.readline().split()[1])
        for line in process.stdout:
            last_ns = int(line.split()[1])
            if last_ns - first_ns > 2e9:
                waited_s = writing.waited_s
                process.send_signal(signal.SIGKILL)
                break
    (path,) = tmp_path.glob("*.mcap")
    entries = entries_of(path)
    assert [int.from_bytes(entry.data, "big") for entry in entries] == list(range(len(entries)))
    assert last_ns - entries[-1].time_ns < 1e9 * (1.0 + waited_s)


def test_a_file_that_ends_anywhere_is_read_up_to_there(make_log, tmp_path, writer):
    log = make_log()
    connection = log.open("tcp", "127.0.0.1:1", "127.0.0.1:2")
    connection.sent(b"early")
    wait_until(lambda: files_of(log) and contents(files_of(log)[0]))
    connection.sent(b"late")
    log.close()
    whole = files_of(log)[0].read_bytes()
    cut = tmp_path / "cut.mcap"
    counts = set()
    for size in range(whole.index(b"sent") - 8, len(whole)):
        cut.write_bytes(whole[:size])
        found = contents(cut)
        assert found == [(Side.OPERATOR, b"early"), (Side.OPERATOR, b"late")][: len(found)]
        counts.add(len(found))
    assert counts == {0, 1, 2}


def test_files_are_bounded_in_size_and_the_oldest_go_but_not_the_beginning(make_log, monkeypatch):
    monkeypatch.setattr(wire_log, "QUEUED_BYTES", 64 * MEBIBYTE)
    log = make_log(total_bytes=24 * MEBIBYTE)
    ended = log.open("tcp", "127.0.0.1:1", "127.0.0.1:2")
    ended.sent(b"an earlier connection")
    ended.close()
    connection = log.open("tcp", "127.0.0.1:1", "127.0.0.1:3")
    sent = [bytes([number]) + os.urandom(MEBIBYTE) for number in range(48)]
    for data in sent:
        connection.sent(data)
    log.close()
    files = files_of(log)
    sizes = [path.stat().st_size for path in files]
    assert sum(sizes) <= 24 * MEBIBYTE
    assert max(sizes) <= 24 * MEBIBYTE // wire_log.FILES_PER_LOG + 2 * MEBIBYTE
    kept = b"".join(entry.data for path in files for entry in entries_of(path))
    everything = b"".join(sent)
    assert kept.startswith(sent[0])  # the beginning, which tells what the rest means
    assert not everything.startswith(kept)  # then there is a gap
    assert kept.endswith(b"".join(sent[-8:]))
    with LogFile(files[-1]) as file:
        assert file.connection.part > len(files)


def test_the_number_of_files_is_bounded(make_log, monkeypatch):
    monkeypatch.setattr(wire_log, "MAX_FILES", 5)
    log = make_log()
    for number in range(12):
        connection = log.open("tcp", "127.0.0.1:1", "127.0.0.1:2")
        connection.sent(bytes([number]))
        connection.close()
    log.close()
    assert [contents(path) for path in files_of(log)] == [[(Side.OPERATOR, bytes([n]))] for n in range(7, 12)]


def test_a_disk_that_is_too_slow_never_holds_the_link_up_and_the_log_says_what_is_missing(make_log, monkeypatch):
    gate, is_written = threading.Event(), threading.Event()
    add, flush = wire_log.WireFile.add, wire_log.WireFile.flush

    def slow(self, *message):
        assert gate.wait(LONG_S)
        add(self, *message)

    def noted(self):  # once all that was queued is written
        flush(self)
        is_written.set()

    monkeypatch.setattr(wire_log.WireFile, "add", slow)
    monkeypatch.setattr(wire_log.WireFile, "flush", noted)
    monkeypatch.setattr(wire_log, "QUEUED_BYTES", 4 * MEBIBYTE)
    log = make_log()
    connection = log.open("tcp", "127.0.0.1:1", "127.0.0.1:2")
    for _ in range(20):
        connection.sent(os.urandom(MEBIBYTE))  # returns, although nothing is written
    gate.set()
    assert is_written.wait(LONG_S)
    connection.sent(b"after")
    log.close()
    entries = entries_of(*files_of(log))
    assert entries[-1].data == b"after"
    missing = 20 * MEBIBYTE - sum(len(entry.data) for entry in entries[:-2])
    assert 16 * MEBIBYTE <= missing < 20 * MEBIBYTE
    assert entries[-2].sender is None
    assert entries[-2].note == f"The disk was too slow: {missing} bytes are missing here."


def test_a_full_disk_ends_the_log_with_a_sentence_and_leaves_what_was_written(make_log, monkeypatch):
    add = wire_log.WireFile.add

    def full(self, topic, peer, sequence, time_ns, data):
        if len(data) > 1000:
            raise OSError(28, "No space left on device")
        add(self, topic, peer, sequence, time_ns, data)

    log = make_log()
    connection = log.open("tcp", "127.0.0.1:1", "127.0.0.1:2")
    connection.sent(b"before")
    wait_until(lambda: files_of(log) and contents(files_of(log)[0]))
    monkeypatch.setattr(wire_log.WireFile, "add", full)
    connection.sent(os.urandom(2 * MEBIBYTE))
    wait_until(lambda: log.failures)
    connection.sent(b"nothing waits for room any more")
    assert log.failures == [f"The wire log ends: nothing more can be written to {log.folder}: No space left on device."]
    assert contents(files_of(log)[0]) == [(Side.OPERATOR, b"before")]


def test_a_folder_that_cannot_be_written_to_is_refused_with_a_sentence(make_log, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(LinkError, match=r"The wire log can't be written to .*file/log: Not a directory\."):
        make_log(folder=tmp_path / "file" / "log")


def test_strangers_at_a_port_share_channels_in_the_end(make_log):
    log = make_log()
    connection = log.open("udp", "127.0.0.1:1", "")
    for number in range(1000):
        connection.received([memoryview(b"hello")], 5, f"10.0.0.1:{number}")
    log.close()
    entries = entries_of(*files_of(log))
    assert len(entries) == 1000
    assert len({entry.peer for entry in entries}) == wire_log.MAX_CHANNELS + 1
