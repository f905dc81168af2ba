# SPDX-License-Identifier: Apache-2.0
"""emulate --replay: captures of real programs as robots, whose bytes a client of the test's own reads."""

import contextlib
import itertools
import os
import select
import socket
import struct
import threading
import time
from argparse import Namespace
from types import SimpleNamespace

import dpkt
import pytest
from captured_logs import CAPTURED, KINDS, OPERATOR, VEHICLE, capture, robots, written
from patience import wait_until
from tcp_peer import LONG_S

from drone_bridge.ardrone.codec import WAKE_UP
from drone_bridge.kind import Side, kinds
from drone_bridge.net import wire_log
from drone_bridge.net.connector import RECEIVED, SENT, Cancellation
from drone_bridge.net.wire_log import WireLog, facts_of
from drone_bridge.tools.cli import main as drone_bridge
from drone_bridge.tools.wire import replay as replays
from drone_bridge.tools.wire.log_file import WireError
from drone_bridge.tools.wire.replay import Replay, opened

HOST = "127.0.0.1"
DATAGRAM_BYTES = 1 << 16
LATE_S = 0.05
ROBOTS = list(robots())


@pytest.fixture
def replayed(monkeypatch):
    """Replay a file as fast as the client allows. Return the port of each link, and what is printed."""
    monkeypatch.setattr(replays, "PATIENCE_S", LONG_S)
    with contextlib.ExitStack() as stack:
        cancellation = Cancellation()

        def start(path, kind, **options):
            printed, ports = [], {each.parameter: 0 for each in kinds()[kind].ports}
            monkeypatch.setattr(replays, "print_event", printed.append)
            options = Namespace(
                **{"host": HOST, "pty": None, "rate": 1e9, "duration": None, "replay": path, **ports, **options}
            )
            replay = Replay(*opened(path, kinds()[kind]), options, cancellation, stack)
            thread = threading.Thread(target=replay.run, args=(replay.links, options, cancellation, None))
            thread.start()
            stack.callback(thread.join)
            stack.callback(cancellation.cancel)
            return [link.port for link in replay.links], printed

        yield start


@contextlib.contextmanager
def client(transport, own, port):
    """Return functions of a client: it sends a piece, receives one, and says whether one is there."""
    kind = socket.SOCK_STREAM if transport == "tcp" else socket.SOCK_DGRAM
    with socket.socket(socket.AF_INET, kind) as end:
        end.settimeout(LONG_S)
        if own:
            end.bind((HOST, own))
        elif transport == "tcp":
            end.connect((HOST, port))
        peer = [(HOST, port)]

        def send(data):
            end.sendall(data) if transport == "tcp" else end.sendto(data, peer[0])

        def receive(size):
            data, source = end.recvfrom(DATAGRAM_BYTES)
            peer[0] = source or peer[0]
            while transport == "tcp" and len(data) < size and (more := end.recv(size - len(data))):
                data += more
            return data

        yield send, receive, lambda: bool(select.select([end], [], [], LATE_S)[0])


def of_one_side(pieces):
    """Return pieces, in which successive ones of one side of a stream are one."""
    joined = []
    for direction, data in pieces:
        if joined and joined[-1][0] == direction:
            joined[-1][1] += data
        else:
            joined.append([direction, data])
    return joined


@pytest.mark.parametrize("name", CAPTURED)
def test_a_capture_becomes_its_robot(name, tmp_path, replayed, free_port):
    ((transport, own, peer, pieces),) = CAPTURED[name]()
    pieces = list(pieces)
    listens = peer == 1000  # the client, on a port of its own
    named = {each.default: each.parameter for each in kinds()[KINDS[name]].ports}
    parameters, port = ({named[own]: free_port}, free_port) if listens else ({}, 0)
    path = written(tmp_path, KINDS[name], (transport, own, peer, pieces))
    with contextlib.ExitStack() as stack:
        if listens:
            send, receive, is_there = stack.enter_context(client(transport, port, 0))
        ((number, *_), printed) = replayed(path, KINDS[name], **parameters)
        if not listens:
            send, receive, is_there = stack.enter_context(client(transport, 0, number))
        waited = False
        for direction, data in of_one_side(pieces) if transport == "tcp" else pieces:
            if direction == OPERATOR:
                assert waited or not is_there(), "it waits for the client"
                waited = True
                send(data)
            else:
                assert receive(len(data)) == data
        wait_until(lambda: any("ends here" in line for line in printed), "the end")
        assert not [line for line in printed if "differs" in line]


def test_the_first_packet_that_differs_is_said_decoded(tmp_path, replayed):
    path = written(tmp_path, "robot", ("tcp", 1000, 25600, ROBOTS))
    (port, *_), printed = replayed(path, "robot")
    with client("tcp", 0, port) as (send, *_):
        send(b"\x00\x00\x02" + b"\x00\x05\x03\x00\x03you" + b"\x00\x05\x03\x00\x03yet")
        wait_until(lambda: printed[1:], "what differs")
    assert printed[1].startswith("Packet 2 of the client differs: RegisterDriver name='you'")
    assert "in the log: RegisterDriver name=" in printed[1]
    assert len([line for line in printed if "differs" in line]) == 1


def test_a_client_that_falls_behind_is_not_waited_for_and_the_next_one_gets_all(tmp_path, replayed, monkeypatch):
    path = written(tmp_path, "robot", ("tcp", 1000, 25600, ROBOTS))
    (port, *_), printed = replayed(path, "robot")
    monkeypatch.setattr(replays, "PATIENCE_S", 0.01)
    for _ in range(2):
        with client("tcp", 0, port) as (send, receive, is_there):
            assert not is_there(), "the conversation begins with the client"
            send(b"\x00\x00\x02")
            assert receive(len(ROBOTS[1][1])) == ROBOTS[1][1]
    assert any("not waited for" in line for line in printed)


def test_a_drone_that_sends_first_does_so_again_until_its_client_is_there(tmp_path, replayed, monkeypatch, free_port):
    pieces = [(VEHICLE, b"{}"), (OPERATOR, b"{}"), (VEHICLE, b"[]")]
    path = written(tmp_path, "telemetry", ("udp", free_port, 1000, pieces))
    _, printed = replayed(path, "telemetry", port=free_port)
    monkeypatch.setattr(replays, "PATIENCE_S", 0.01)
    time.sleep(LATE_S)  # what is tested is a time
    with client("udp", free_port, 0) as (send, receive, _):
        assert receive(2) == b"{}"
        send(b"{}")
        while (data := receive(2)) == b"{}":
            pass
        assert data == b"[]"
        wait_until(lambda: any("ends here" in line for line in printed), "the end")


def test_a_client_that_is_late_gets_all_of_a_drone_that_sends_first(tmp_path, replayed, monkeypatch, free_port):
    pieces = [(VEHICLE, b"{}"), (VEHICLE, b"[]"), (OPERATOR, b"{}")]
    path = written(tmp_path, "telemetry", ("udp", free_port, 1000, pieces))
    (port,), printed = replayed(path, "telemetry", port=free_port)
    monkeypatch.setattr(replays, "PATIENCE_S", 0.01)
    wait_until(lambda: any("ends here" in line for line in printed), "the end")
    time.sleep(LATE_S)  # what is tested is a time
    with client("udp", free_port, port) as (send, receive, is_there):
        send(b"{}")
        assert (receive(2), receive(2)) == (b"{}", b"[]")
        send(b"{}")
        assert not is_there()


@pytest.mark.parametrize("watches", [False, True])
def test_datagrams_wait_for_packets_to_all_ports_and_for_no_video(watches, tmp_path, replayed):
    rows = [("udp", 1001, 5556, [(OPERATOR, command := b"AT*COMWDG=1\r")])]
    rows += [("udp", 1000, 5554, [(OPERATOR, WAKE_UP), (VEHICLE, b"navdata")])]
    rows += [("tcp video", 1002, 5555, [(VEHICLE, b"picture"), (VEHICLE, b"")])]
    ports, printed = replayed(written(tmp_path, "ardrone", *rows), "ardrone")
    with contextlib.ExitStack() as stack:
        (send, *_), (ask, receive, is_there) = [stack.enter_context(client("udp", 0, port)) for port in ports[:2]]
        video = [stack.enter_context(client("tcp", 0, port)) for port in ports[2:] if watches]
        ask(WAKE_UP)
        assert not is_there()
        send(command)
        assert receive(7) == b"navdata"
        for _, read, _ in video:
            assert (read(7), read(1)) == (b"picture", b"")
        wait_until(lambda: any("ends here" in line for line in printed), "the end")
    with client("udp", 0, ports[0]) as (send, *_), client("udp", 0, ports[1]) as (ask, _, is_there):
        for is_coming in (True, False):
            with client("tcp", 0, ports[2]) if is_coming else contextlib.nullcontext():
                assert not is_there()
                send(command)
                ask(WAKE_UP)
                assert not is_there(), "who comes or leaves for the video begins no log anew"


@pytest.mark.parametrize("kind", ["kobuki", "create2"])
def test_a_robot_by_serial_line_is_a_pseudo_terminal(kind, tmp_path, replayed):
    report = bytes(range(100))
    path = written(
        tmp_path / "log", kind, ("serial", "/dev/ttyUSB0", "/dev/ttyUSB0", [(OPERATOR, b"\x80"), (VEHICLE, report)])
    )
    replayed(path, kind, pty=str(tmp_path / "line"))
    line = os.open(tmp_path / "line", os.O_RDWR | os.O_NOCTTY)
    try:
        os.write(line, b"\x80")
        data = b""
        while len(data) < len(report):
            data += os.read(line, 1000)
        assert data == report
    finally:
        os.close(line)


def frame(sender, receiver, seq, data=b"", *, flags=dpkt.tcp.TH_ACK):
    """Return a frame of a TCP segment."""
    (source, sport), (target, dport) = sender, receiver
    segment = dpkt.tcp.TCP(sport=sport, dport=dport, seq=seq % 2**32, flags=flags, data=data)
    packet = dpkt.ip.IP(src=socket.inet_aton(source), dst=socket.inet_aton(target), p=6, data=segment)
    packet.len = len(packet)
    return bytes(dpkt.ethernet.Ethernet(type=dpkt.ethernet.ETH_TYPE_IP, data=packet))


def datagram(sender, receiver, data, head=bytes(12) + b"\x08\x00"):
    """Return a frame of a datagram."""
    (source, sport), (target, dport) = sender, receiver
    inside = dpkt.udp.UDP(sport=sport, dport=dport, data=data, ulen=8 + len(data))
    packet = dpkt.ip.IP(src=socket.inet_aton(source), dst=socket.inet_aton(target), p=17, data=inside)
    packet.len = len(packet)
    return head + bytes(packet)


TELLO, PROGRAM = ("192.168.10.1", 8889), ("192.168.10.2", 8889)
STATE = (
    b"pitch:0;roll:0;yaw:0;vgx:0;vgy:0;vgz:0;templ:60;temph:62;tof:10;h:0;bat:87;baro:1;time:0;agx:0;agy:0;agz:0;\r\n"
)
TALK = [(TELLO, PROGRAM, b"ok"), (PROGRAM, TELLO, b"forward 50"), (TELLO, PROGRAM, b"ok"), (PROGRAM, TELLO, b"land")]
#: Captures by format: writer, its options, and the head of each frame.
FORMATS = {
    "pcap": (dpkt.pcap.Writer, {}, bytes(12) + b"\x08\x00"),
    "nanoseconds": (dpkt.pcap.Writer, {"nano": True}, bytes(12) + b"\x08\x00"),
    "pcapng": (dpkt.pcapng.Writer, {}, bytes(12) + b"\x08\x00"),
    "VLAN": (dpkt.pcap.Writer, {}, bytes(12) + b"\x81\x00\x00\x05\x08\x00"),
    "any": (dpkt.pcap.Writer, {"linktype": dpkt.pcap.DLT_LINUX_SLL}, bytes(14) + b"\x08\x00"),
    "any, VLAN": (dpkt.pcap.Writer, {"linktype": dpkt.pcap.DLT_LINUX_SLL}, bytes(14) + b"\x81\x00\x00\x05\x08\x00"),
    "any, 2": (dpkt.pcap.Writer, {"linktype": dpkt.pcap.DLT_LINUX_SLL2}, b"\x08\x00" + bytes(18)),
    "raw": (dpkt.pcap.Writer, {"linktype": 101}, b""),
}


@pytest.mark.parametrize(("begin", "has_state"), [(0, True), (1, True), (1, False)])
@pytest.mark.parametrize("name", FORMATS)
def test_the_robots_end_is_found_by_its_host_or_by_who_begins(name, begin, has_state, tmp_path, capsys):
    """The program uses the robot's port, too."""
    make, options, head = FORMATS[name]
    sent = [*TALK[begin:], *[(TELLO, (PROGRAM[0], 8890), STATE)] * has_state]
    path = tmp_path / "tello.pcap"
    with path.open("wb") as file:
        writer = make(file, **options)
        for number, each in enumerate(sent):
            writer.writepkt(datagram(*each, head), ts=1000 + number)
    whole = path.read_bytes()
    _, entries = opened(path, kinds()["tello"])
    assert [(each.sender, each.data) for each in entries] == [
        (Side.VEHICLE if source == TELLO else Side.OPERATOR, data) for source, _, data in sent
    ]
    assert [each.time_ns for each in entries] == [10**9 * (1000 + number) for number in range(len(sent))]
    assert drone_bridge(["wire", "show", str(path)]) == 0
    assert "# 1: tello over udp, client 192.168.10.2:8889, robot 192.168.10.1:8889" in capsys.readouterr().out
    path.write_bytes(whole[:-40])
    assert [each.data for each in opened(path, kinds()["tello"])[1] if not each.is_gap] == [
        data for *_, data in sent[:-1]
    ]


def _block(kind, body, length=None):
    """Return a block of pcapng."""
    size = 12 + len(body) if length is None else length
    return struct.pack("<II", kind, size) + body + struct.pack("<I", size)


def _captured(frame, ticks=1000):
    """Return the block of a packet, with its time in microseconds."""
    padding = bytes(-len(frame) % 4)
    return _block(6, struct.pack("<5I", 0, ticks >> 32, ticks & 0xFFFFFFFF, len(frame), len(frame)) + frame + padding)


BEGIN = _block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)) + _block(1, struct.pack("<HHI", 1, 0, 0))
#: A fragment of IPv6, with options behind its header.
FRAGMENT = bytes(12) + b"\x86\xdd" + struct.pack(">IHBB", 6 << 28, 24, 44, 64) + bytes(40) + b"\x11" + bytes(15)
WHOLE = datagram(TELLO, PROGRAM, b"ok")
DAMAGED = {
    "a packet": _captured(FRAGMENT) + _captured(WHOLE),
    "a length": _captured(WHOLE) + _block(6, b"", 4),
    "a time": _captured(WHOLE, ticks=2**64 - 1),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_capture_is_read_as_far_as_it_is_whole(damage, tmp_path, capsys):
    path = tmp_path / "tello.pcapng"
    path.write_bytes(BEGIN + DAMAGED[damage])
    assert drone_bridge(["wire", "show", "--protocol", "tello", str(path)]) == 0
    assert capsys.readouterr().out.count("ok") == 1


def test_a_program_at_the_robots_port_gets_what_it_sends_for(tmp_path, replayed):
    path = tmp_path / "tello.pcap"
    with path.open("wb") as file:
        writer = dpkt.pcap.Writer(file)
        for number, each in enumerate([(PROGRAM, TELLO, b"command"), *TALK]):
            writer.writepkt(datagram(*each), ts=1000 + number)
    (port,), _ = replayed(path, "tello")
    with client("udp", 0, port) as (send, receive, is_there):
        assert not is_there()
        send(b"command")
        assert [receive(2), receive(2)] == [b"ok", b"ok"]


def test_a_saved_minute_says_what_it_lacks_and_goes_on_with_whole_messages(tmp_path, replayed, monkeypatch):
    """Its head ends inside a message."""
    now_ns = itertools.count(10**12, 10**8)
    clock = SimpleNamespace(monotonic_ns=lambda: next(now_ns), time_ns=lambda: next(now_ns), monotonic=lambda: 1e4)
    monkeypatch.setattr(wire_log, "time", SimpleNamespace(**vars(time) | vars(clock)))
    monkeypatch.setenv("DRONE_BRIDGE_WIRE", str(tmp_path))
    saved = []
    log = WireLog(None, "robot_bridge", facts_of("robot", "operator", "x", {}), print, on_saved=saved.append)
    tap, (_, begin), report = log("tcp", "a:1", "b:25600"), ROBOTS[1], ROBOTS[1][1][-5:]
    tap(SENT, ROBOTS[0][1])
    tap(SENT, b"\x00\x00\x02" * 40)
    tap(RECEIVED, begin)
    for _ in range(1000):
        tap(RECEIVED, report[:2])
        tap(RECEIVED, report[2:])
        tap(SENT, b"\x00\x00\x02")
    assert log.save("test")
    assert log.close()
    assert saved
    (path,) = tmp_path.glob("*.mcap")
    (port, *_), printed = replayed(path, "robot")
    reader = kinds()["robot"].connect(Side.OPERATOR)
    with client("tcp", 0, port) as (send, receive, is_there):
        send(ROBOTS[0][1])
        send(b"\x00\x00\x02" * 300)
        wait_until(lambda: any("ends here" in line for line in printed), "the end")
        count = 0
        while is_there():
            reader.receive_data(receive(1))
            count += len(list(reader.events()))
    assert count > 100
    assert [line for line in printed if "are not in the log" in line] == printed[1:2]
    assert not [line for line in printed if "differs" in line or "not waited for" in line]


DRIVER, ROBOT = ("10.0.0.2", 40000), ("10.0.0.1", 25600)


@pytest.mark.parametrize("is_cut", [False, True])
@pytest.mark.parametrize("container", [dpkt.pcap, dpkt.pcapng])
def test_a_capture_of_tcp_may_begin_late_with_repeated_and_late_segments(container, is_cut, tmp_path):
    ours, theirs = (data for _, data in ROBOTS)
    begin = 2**32 - 20  # the numbers wrap
    frames = (
        [] if is_cut else [frame(DRIVER, ROBOT, begin - 1, flags=dpkt.tcp.TH_SYN), frame(ROBOT, DRIVER, 99, flags=0x12)]
    )
    frames += [frame(DRIVER, ROBOT, begin, ours[:10])]
    frames += [frame(DRIVER, ROBOT, begin + 5, ours[5:20]), frame(DRIVER, ROBOT, begin + 30, ours[30:])]
    frames += [frame(DRIVER, ROBOT, begin + 20, ours[20:25]), frame(DRIVER, ROBOT, begin + 25, ours[25:30])]
    frames += [frame(DRIVER, ROBOT, begin, ours[:10]), frame(ROBOT, DRIVER, 100, theirs[:200])]
    frames += [frame(ROBOT, DRIVER, 300, theirs[200:]), frame(ROBOT, DRIVER, 100 + len(theirs), flags=0x11)]
    with (tmp_path / "robot.pcap").open("wb") as file:
        writer = container.Writer(file)
        for number, each in enumerate([frame(DRIVER, ("10.0.0.9", 80), 1, b"other"), *frames]):
            writer.writepkt(each, ts=1000.0 + number)
    source, entries = opened(tmp_path / "robot.pcap", kinds()["robot"])
    assert source.kind.name == "robot"
    assert [entry.is_gap for entry in entries].count(True) == 2 * is_cut
    data = {side: b"".join(each.data for each in entries if each.sender is side) for side in Side}
    assert data == {Side.OPERATOR: ours, Side.VEHICLE: theirs}
    assert (entries[-1].sender, entries[-1].data) == (Side.VEHICLE, b"")


def test_what_can_not_be_replayed_is_refused_with_a_sentence(tmp_path, capsys):
    path = written(tmp_path / "log", "robot", ("tcp", 1000, 25600, ROBOTS[:1]))
    for words, sentence in (
        (["kobuki", f"--replay={path}"], "is of robot, not of kobuki"),
        (["robot", "--replay", str(path), "--port", "0"], "sent nothing"),
        (["robot", "--replay", __file__], "neither a wire log nor a capture"),
        (["robot", "--replay", str(tmp_path / "none")], f"emulate: {tmp_path / 'none'}: No such file or directory."),
    ):
        assert drone_bridge(["emulate", *words]) == 2
        assert sentence in capsys.readouterr().err
    with pytest.raises(WireError):
        opened(tmp_path / "log" / path.name, kinds()["tello"])
    assert capture("robot_to_driver.bin") == ROBOTS[1][1]
