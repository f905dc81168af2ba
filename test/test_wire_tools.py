# SPDX-License-Identifier: Apache-2.0
"""drone-bridge wire: captures of real programs shown, played to each other and to a bridge."""

import contextlib
import queue
import re
import shutil
import struct
import threading
from dataclasses import replace
from pathlib import Path

import dpkt
import lz4.frame
import pytest
from processes import Process
from ros_session import wait_until
from tcp_peer import LONG_S, Task

from drone_bridge.kind import Side
from drone_bridge.net.wire_log import WireLog, facts_of
from drone_bridge.robot import codec as robot
from drone_bridge.testbed import codec as testbed
from drone_bridge.tools.cli import main as drone_bridge
from drone_bridge.tools.wire.log_file import LogFile, write_log
from drone_bridge.tools.wire.pcap import PcapOptions
from drone_bridge.tools.wire.play import Peer, Replay, compare, read_script
from drone_bridge.tools.wire.sources import only_section, sections

CAPTURES = Path(__file__).parent / "captures"
#: Made by `drone-bridge wire import`; whoever has a log of a peer that misbehaves puts it beside them.
LOGS = sorted((CAPTURES / "wire").glob("*.mcap"))
BYTES = {
    "testbed": ("autopilot_to_testbed.bin", "testbed_to_autopilot.bin"),
    "simulator": ("client_to_simulator.bin", "simulator_to_client.bin"),
    "robot": ("driver_to_robot.bin", "robot_to_driver.bin"),
    "dronegui": (None, "gui_to_controller_navdata.jsonl"),
}
MESSAGES = {"testbed": 1 + 3 + 3, "simulator": 19 + 80, "robot": 6 + 7, "dronegui": 144}
IMAGES_BYTES = 2 * 9216  # of each frame of the captured testbed
by_log = pytest.mark.parametrize("path", LOGS, ids=lambda path: path.stem)


def log_of(protocol):
    return CAPTURES / "wire" / f"{protocol}.mcap"


def read(path):
    with LogFile(path) as file:
        return file.connection, list(file.entries())


def ended(path):
    with LogFile(path) as file:
        return list(file.entries()) and file.has_ended


def script_of(path, role):
    section = only_section(path, PcapOptions())
    return read_script(section.connection, section.entries, role)


def wire(capsys, *arguments):
    status = drone_bridge(["wire", *map(str, arguments)])
    output = capsys.readouterr()
    return status, output.out.splitlines(), output.err


@pytest.mark.parametrize("protocol", BYTES)
def test_the_captures_are_converted_byte_for_byte(protocol, tmp_path, capsys):
    made, separator = tmp_path / "made.mcap", b"\n" if protocol == "dronegui" else b""
    options = []
    for option, name in zip(("--operator", "--vehicle"), BYTES[protocol], strict=True):
        options += [option, CAPTURES / name] if name else []
    assert wire(capsys, "import", "--protocol", protocol, *options, "-o", made)[0] == 0
    entries = read(made)[1]
    for side, name in zip(Side, BYTES[protocol], strict=True):
        sent = separator.join(entry.data for entry in entries if entry.sender is side)
        assert sent + separator == ((CAPTURES / name).read_bytes() if name else separator)
    assert [entry[1:] for entry in entries] == [entry[1:] for entry in read(log_of(protocol))[1]]


@pytest.mark.parametrize("protocol", BYTES)
def test_a_capture_is_shown_one_line_per_message(protocol, capsys):
    status, lines, _ = wire(capsys, "show", log_of(protocol))
    assert status == 0
    assert lines[0].startswith(f"# {protocol} over ")
    assert not [line for line in lines if "BREAKS" in line]
    assert len(lines) == 1 + MESSAGES[protocol]


def test_a_line_has_time_direction_and_what_the_message_says(capsys):
    _, lines, _ = wire(capsys, "show", log_of("testbed"))
    assert lines[2] == (
        "    0.010000    testbed <- SensorFrame left=<9216 bytes, crc32 fc47dd58> right=<9216 bytes, crc32 0331eea6> "
        "time=0 pitch=-3 yaw=2"
    )
    assert lines[3] == (
        "    0.020000  autopilot -> MotionParameters pitch_rate=10.5 roll_rate=-20.25 yaw_rate=30.125 thrust=14.7150002"
    )
    _, lines, _ = wire(capsys, "show", log_of("testbed"), "--only", "motionparameters,Constants")
    assert [line.split()[3] for line in lines[1:]] == ["Constants", *["MotionParameters"] * 3]
    _, lines, _ = wire(capsys, "show", log_of("testbed"), "--only", "Constant")
    assert lines[1:] == [
        "No messages of constant; the log has: Constants, MotionParameters, SensorFrame, autopilot, testbed."
    ]
    _, lines, _ = wire(capsys, "show", log_of("testbed"), "--raw", "--bytes", "16", "--only", "x")
    assert lines[1:4] == [
        "    0.000000    testbed <- 48 bytes",
        "    00000000  42 f0 00 00 42 d1 99 9a 00 00 00 40 00 00 00 30  |B...B......@...0|",
        "    ... 32 more bytes (--bytes 0 shows all)",
    ]


def without_pixels(path):
    """The log of the captured testbed, as it would be had its pixels been left out; and its file."""
    connection, entries = read(log_of("testbed"))
    shortened = []
    for entry in entries:
        if len(entry.data) > IMAGES_BYTES:
            shortened.append(entry._replace(data=bytes(IMAGES_BYTES), is_left_out=True))
        begin = IMAGES_BYTES if len(entry.data) > IMAGES_BYTES else 0
        shortened.append(entry._replace(data=entry.data[begin:]))
    write_log(path, connection, shortened)
    assert read(path) == (connection, shortened)
    assert path.stat().st_size < 2000
    return connection, shortened


def test_a_log_without_pixels_is_shown_and_played_like_another(tmp_path, capsys):
    path = tmp_path / "small.mcap"
    without_pixels(path)
    lines, small = (wire(capsys, "show", log)[1] for log in (log_of("testbed"), path))
    assert small == [re.sub(r"crc32 \w+", "pixels not logged", line) for line in lines]
    assert "left=<9216 bytes, pixels not logged> right=<9216 bytes, pixels not logged> time=0 pitch=-3" in small[2]
    raw = wire(capsys, "show", path, "--raw")[1]
    (index, *_) = [index for index, line in enumerate(raw) if "not logged" in line]
    assert raw[index] == "    0.010000    testbed <- 18432 bytes of pixels, not logged"
    assert raw[index + 1] == "    0.010000    testbed <- 12 bytes"
    for side, replay in zip(Side, play_both(path), strict=True):
        script, whole = script_of(path, side.value), script_of(log_of("testbed"), side.value)
        assert replay.problems == []
        assert list(compare(script.answers, replay.answers)) == list(compare(script.answers, whole.answers)) == []
    frame = script_of(path, "autopilot").answers[1]
    changed = replace(frame, event=replace(frame.event, left=bytes(12), pitch=-4.0))
    assert list(compare([frame], [changed])) == [
        "Message 1, SensorFrame: then left <9216 bytes, pixels not logged>, now <12 bytes, pixels not logged>, "
        "then pitch -3, now -4."
    ]


def test_a_stream_that_breaks_inside_an_image_is_shown_with_zeros_for_its_pixels(tmp_path, capsys):
    connection, entries = without_pixels(tmp_path / "whole.mcap")
    begun = entries[1]._replace(data=bytes(100))
    write_log(tmp_path / "broken.mcap", connection, [entries[0], begun, begun._replace(data=b"", is_left_out=False)])
    _, lines, _ = wire(capsys, "show", tmp_path / "broken.mcap")
    assert lines[2].endswith("BREAKS THE PROTOCOL: The testbed closed inside frame 0, after 100 of 18444 bytes.")
    assert lines[3] == "    (with zeros in place of pixels, which were not logged)"
    assert lines[4].startswith("    00000030  00 00")


def test_where_the_stream_breaks_the_protocol_the_bytes_and_the_sentence_are_shown(tmp_path, capsys):
    connection, entries = read(log_of("robot"))
    number = [index for index, entry in enumerate(entries) if entry.sender is Side.VEHICLE][2]
    broken = entries[number]._replace(data=struct.pack(">HB", 1, 1) + b"\x7f")  # a keep-alive of one byte
    write_log(tmp_path / "broken.mcap", connection, [*entries[:number], broken, *entries[number + 1 :]])
    status, lines, _ = wire(capsys, "show", tmp_path / "broken.mcap")
    assert status == 0
    (index,) = [index for index, line in enumerate(lines) if "BREAKS THE PROTOCOL: The robot sent" in line]
    assert "00 01 01 7f" in lines[index + 1]
    offset = sum(len(entry.data) for entry in entries[:number] if entry.sender is Side.VEHICLE)
    assert lines[index + 1].startswith(f"    {offset:08x}")
    assert any("can't be decoded" in line for line in lines[index + 2 :])
    assert any("driver -> BindSubsystem" in line for line in lines)  # the other direction goes on


def test_a_message_that_is_announced_too_long_does_not_swallow_the_rest_in_silence(tmp_path, capsys):
    connection, entries = read(log_of("robot"))
    number = [index for index, entry in enumerate(entries) if entry.sender is Side.VEHICLE][2]
    entries[number] = entries[number]._replace(data=b"\xff\xff" + entries[number].data[2:])
    write_log(tmp_path / "long.mcap", connection, entries)
    _, lines, _ = wire(capsys, "show", tmp_path / "long.mcap")
    size = sum(len(entry.data) for entry in entries[number:] if entry.sender is Side.VEHICLE)
    said = f"robot <- {size} bytes of a message that is not whole"
    (index,) = [index for index, line in enumerate(lines) if line.endswith(said)]
    assert "ff ff" in lines[index + 1]


def test_a_file_that_is_damaged_anywhere_is_shown_or_refused_with_a_sentence(tmp_path, capsys):
    whole = log_of("robot").read_bytes()
    for offset in range(0, len(whole), 8):
        (tmp_path / "damaged.mcap").write_bytes(whole[:offset] + b"\xff" * 8 + whole[offset + 8 :])
        status, _, errors = wire(capsys, "show", tmp_path / "damaged.mcap")
        assert (status, errors) == (0, "") or (status == 2 and len(errors.splitlines()) == 1)
        assert "Error(" not in errors


@pytest.mark.parametrize("kind", ["pixels", "chunk"])
def test_a_log_that_grows_without_end_when_it_is_read_is_refused_with_a_sentence(tmp_path, capsys, kind):
    path = tmp_path / "hostile.mcap"
    connection, entries = read(log_of("testbed"))
    if kind == "pixels":
        entries = [*entries, entries[-1]._replace(data=range(10**15), is_left_out=True)]
    write_log(path, connection, entries)
    if kind == "chunk":
        packed = lz4.frame.compress(bytes(2**28 + 1))
        content = struct.pack("<QQQI", 0, 0, 1, 0) + struct.pack("<I3sQ", 3, b"lz4", len(packed)) + packed
        whole = path.read_bytes()
        end = whole.index(struct.pack("<BQI", 0x0F, 4, 0))
        path.write_bytes(whole[:end] + struct.pack("<BQ", 0x06, len(content)) + content + whole[end:])
    status, _, errors = wire(capsys, "show", path)
    assert status == 2
    assert {"pixels": "bytes of pixels are left out", "chunk": "unpacks to more than"}[kind] in errors


def play_both(path, rate=None, alter=lambda script: script):
    """Play both sides of a log to each other; return both replays, operator first."""
    connection, _ = read(path)
    ports = queue.SimpleQueue()

    def say(sentence):
        ports.put(int(sentence.rstrip(".").rpartition(":")[2]))

    def perform(side, port, is_listening):
        peer = Peer(connection.transport, "127.0.0.1", port, is_listening=is_listening, say=say)
        with contextlib.closing(peer):
            replay = Replay(alter(script_of(path, side.value)), peer, rate, LONG_S)
            replay.play()
            return replay

    listening = Task(perform, Side.OPERATOR, 0, True)
    connecting = Task(perform, Side.VEHICLE, ports.get(timeout=LONG_S), False)
    return listening.result(), connecting.result()


@by_log
def test_both_sides_of_a_log_play_it_to_each_other_as_it_was(path):
    for side, replay in zip(Side, play_both(path), strict=True):
        script = script_of(path, side.value)
        assert replay.problems == []
        assert replay.sent == len(script.turns)
        assert list(compare(script.answers, replay.answers)) == []


def test_messages_are_played_at_the_recorded_times(tmp_path):
    connection, entries = read(log_of("robot"))
    start_ns = entries[0].time_ns
    slow = [entry._replace(time_ns=start_ns + number * 50_000_000) for number, entry in enumerate(entries)]
    write_log(tmp_path / "slow.mcap", connection, slow)
    came = play_both(tmp_path / "slow.mcap", rate=1.0)[0]
    assert came.problems == []
    assert script_of(tmp_path / "slow.mcap", "driver").turns[-1].due_s == pytest.approx(
        (slow[max(n for n, e in enumerate(slow) if e.sender is Side.OPERATOR)].time_ns - start_ns) / 1e9
    )


def test_differing_answers_are_reported():
    then = script_of(log_of("testbed"), "testbed").answers
    now = [*then[:1], type(then[1])(Side.OPERATOR, testbed.MotionParameters(10.5, -20.25, 0.0, 14.715))]
    assert list(compare(then, now)) == [
        "Message 2, MotionParameters: then yaw_rate 30.125, now 0, then thrust 14.7150002, now 14.715.",
        "Message 3 is missing: MotionParameters pitch_rate=10.5 roll_rate=-20.25 yaw_rate=30.125 thrust=14.7150002",
    ]
    ignored = {"MotionParameters.yaw_rate", "MotionParameters.thrust"}
    assert list(compare(then[:2], now, ignored)) == []


def test_a_bridges_log_is_played_to_the_bridge_again_and_it_answers_the_same(tmp_path, domain, capsys):
    logs = tmp_path / "wire"
    with Process.node("testbed_bridge", role="listen", port=0, wire_log=str(logs)) as bridge:
        port = int(bridge.wait_for_line(r"Waiting for a peer on 127\.0\.0\.1:(\d+)").group(1))
        arguments = ["wire", "play", log_of("testbed"), "--as", "testbed", "--at", port, "--fast"]
        assert drone_bridge(list(map(str, arguments))) == 1  # a bridge without a controller hovers
        bridge.stop()
    (path,) = logs.glob("*.mcap")
    connection, _ = read(path)
    assert connection.parameters["attitude_layout"] == "auto"
    script = script_of(path, "testbed")
    assert [answer.event.thrust for answer in script.answers] == pytest.approx([1.5 * 9.81] * 3, rel=0.01)
    small = tmp_path / "small"
    parameters = {"wire_log": str(small), "wire_log_images": False}
    with Process.node("testbed_bridge", role="listen", port=0, **parameters) as bridge:
        port = bridge.wait_for_line(r"Waiting for a peer on 127\.0\.0\.1:(\d+)").group(1)
        assert wire(capsys, "play", path, "--as", "testbed", "--at", port, "--fast")[0] == 0
        wait_until(lambda: any(ended(log) for log in small.glob("*.mcap")), "the end of the log")
        (played,) = small.glob("*.mcap")
        status, lines, _ = wire(capsys, "play", played, "--as", "testbed", "--at", port, "--fast")
        assert (status, lines[0][:26]) == (0, "The log is without pixels:")
        bridge.stop()
    assert played.stat().st_size < 5000
    said = [[answer.text for answer in script_of(log, "autopilot").answers] for log in (path, played)]
    assert said[1] == [re.sub(r"crc32 \w+", "pixels not logged", text) for text in said[0]]


def test_a_driver_played_to_the_robot_emulator_says_what_another_robot_answers(capsys):
    with Process.module("drone_bridge.robot.emulator", "--port", "0", "--no-discovery") as emulator:
        port = int(emulator.wait_for_line(r"127\.0\.0\.1:(\d+)").group(1))
        status, lines, _ = wire(
            capsys, "play", log_of("robot"), "--as", "driver", "--at", port, "--fast", "--patience", "0.3"
        )
    assert status == 1
    assert any("SubsystemInfo: then" in line for line in lines)
    assert "different" in lines[-1]


def test_a_log_that_is_being_written_is_followed(tmp_path):
    log = WireLog(tmp_path, "robot_bridge", facts_of("robot", "operator", "robot_bridge", {}), 1 << 26, print)
    connection = log.open("tcp", "127.0.0.1:1", "127.0.0.1:2")
    driver = robot.DriverConnection()
    connection.sent(driver.send(robot.QuerySubsystems()))
    while not (paths := list(tmp_path.glob("*.mcap"))):
        threading.Event().wait(0.02)
    (section,) = sections(paths[0], PcapOptions(), follow=True)
    assert next(section.entries).data == b"\x00\x00\x02"
    connection.sent(driver.send(robot.RegisterDriver("me")))
    assert next(section.entries).data == b"\x00\x04\x03\x00\x02me"
    connection.close()
    log.close()
    assert list(section.entries) == []


def capture(path, segments, port=25600):
    """Write TCP segments (from the operator?, sequence, flags, data) as tcpdump has them."""
    with path.open("wb") as file:
        writer = dpkt.pcap.Writer(file)
        for number, (is_operators, sequence, flags, data) in enumerate(segments):
            (source, sport), (target, dport) = ends = [(b"\x0a\0\0\1", 40000), (b"\x0a\0\0\2", port)]
            if not is_operators:
                (target, dport), (source, sport) = ends
            tcp = dpkt.tcp.TCP(sport=sport, dport=dport, seq=sequence % 2**32, flags=flags, data=data)
            ip = dpkt.ip.IP(src=source, dst=target, p=6, data=tcp)
            ip.len = len(ip)
            writer.writepkt(bytes(dpkt.ethernet.Ethernet(data=ip)), ts=1000 + number / 100)


def test_a_capture_of_tcpdump_is_read_whatever_the_order_of_its_segments(tmp_path, capsys):
    syn, ack, fin = dpkt.tcp.TH_SYN, dpkt.tcp.TH_ACK, dpkt.tcp.TH_FIN
    sent = (CAPTURES / "robot_to_driver.bin").read_bytes()
    asked = (CAPTURES / "driver_to_robot.bin").read_bytes()
    first = 2**32 - 50  # so that it begins again from 0 on the way
    segments = [(True, 99, syn, b""), (False, first - 1, syn | ack, b""), (True, 100, ack, asked)]
    segments += [(False, first, ack, sent[:100]), (False, first + 200, ack, sent[200:])]
    segments += [(False, first, ack, sent[:100]), (False, first + 90, ack, sent[90:200])]
    segments += [(False, first + len(sent), fin | ack, b"")]
    capture(tmp_path / "robot.pcap", segments)
    (section,) = sections(tmp_path / "robot.pcap", PcapOptions())
    assert section.connection.protocol == "robot"
    assert (section.connection.own, section.connection.peer) == ("10.0.0.1:40000", "10.0.0.2:25600")
    entries = list(section.entries)
    assert b"".join(entry.data for entry in entries if entry.sender is Side.VEHICLE) == sent
    assert b"".join(entry.data for entry in entries if entry.sender is Side.OPERATOR) == asked
    status, lines, _ = wire(capsys, "show", tmp_path / "robot.pcap", "--only", "robot")
    assert status == 0
    assert [line.split()[3] for line in lines[1:]][:3] == ["SensorInfo", "SubsystemInfo", "FirmwareInfo"]
    assert wire(capsys, "import", tmp_path / "robot.pcap", "-o", tmp_path / "imported")[0] == 0
    (imported,) = (tmp_path / "imported").glob("*.mcap")
    assert read(imported)[1] == entries


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["show", CAPTURES / "robot_to_driver.bin"], "is not a wire log"),
        (["show", "/dev/null/none.mcap"], "Not a directory"),
        (["play", log_of("robot"), "--as", "gui", "--at", "1"], "The robot protocol has no role 'gui'"),
        (["play", log_of("robot"), "--as", "driver", "--at", "1"], "127.0.0.1:1 can't be reached"),
        (["play", log_of("dronegui"), "--as", "gui", "--at", "1", "--peer", "9.9.9.9:9"], "no peer '9.9.9.9:9'"),
        (["import", "-o", "/dev/null"], "Name a capture"),
    ],
)
def test_impossible_requests_are_refused_with_a_sentence(arguments, sentence, capsys):
    status, _, errors = wire(capsys, *arguments)
    assert status == 2
    assert sentence in errors


def test_what_a_capture_lacks_is_not_blamed_on_the_peers(tmp_path, capsys):
    """Of a testbed's frames, one lacks a segment; and a capture that begins later lacks the beginning."""
    sequences, packets = {True: 1000, False: 2000}, []
    for number, entry in enumerate(read(log_of("testbed"))[1]):
        is_autopilots = entry.sender is Side.OPERATOR
        for begin in range(0, len(entry.data), 1400):
            data = bytes(entry.data[begin : begin + 1400])
            if (number, begin) != (3, 2800):
                packets.append((is_autopilots, sequences[is_autopilots], dpkt.tcp.TH_ACK, data))
            sequences[is_autopilots] += len(data)
    capture(tmp_path / "lost.pcap", [(True, 999, dpkt.tcp.TH_SYN, b""), *packets], port=8000)
    capture(tmp_path / "begun.pcap", packets[20:], port=8000)
    whole, lost, begun = (
        [line.split(maxsplit=1)[1] for line in wire(capsys, "show", path)[1]]
        for path in (log_of("testbed"), tmp_path / "lost.pcap", tmp_path / "begun.pcap")
    )
    hole = lost.index("1400 bytes were not captured here.")
    assert [line for line in lost[1:hole] if "can't be decoded" in line] == []
    assert lost[1:4] == whole[1:4]
    assert [line for line in lost[hole + 1 :] if "can't be decoded" not in line] == whole[6 : 6 + 2]
    assert begun[1] == "The beginning was not captured, without which the rest can't be decoded."
    assert not any("BREAKS" in line for line in [*lost, *begun])


def test_a_datagram_in_fragments_is_put_together_and_a_cut_one_is_said_to_be_cut(tmp_path, capsys):
    _, entries = read(log_of("dronegui"))
    udp = dpkt.udp.UDP(sport=9, dport=5561, data=bytes(entries[0].data))
    udp.ulen = len(udp)
    path = tmp_path / "fragments.pcap"
    with path.open("wb") as file:
        writer = dpkt.pcap.Writer(file)
        for begin in (0, 40, 16):  # the last of the three is captured second
            end = {0: 16, 16: 40}.get(begin)
            ip = dpkt.ip.IP(src=b"\x0a\0\0\1", dst=b"\x0a\0\0\2", id=7, p=17, data=bytes(udp)[begin:end])
            ip.offset, ip.mf, ip.len = begin // 8, int(end is not None), len(ip)
            writer.writepkt(bytes(dpkt.ethernet.Ethernet(data=ip)), ts=1000)
        ip = dpkt.ip.IP(src=b"\x0a\0\0\1", dst=b"\x0a\0\0\2", p=17, data=udp, len=20 + len(udp))
        writer.writepkt(bytes(dpkt.ethernet.Ethernet(data=ip))[:60], ts=1001)
    lines = wire(capsys, "show", path)[1]
    whole_log = wire(capsys, "show", log_of("dronegui"))[1]
    assert lines[1].partition("Demo")[2] == whole_log[1].partition("Demo")[2] != ""
    assert lines[2].endswith(f"Only 18 of the {len(entries[0].data)} bytes of a datagram were captured.")
    path.write_bytes(path.read_bytes()[: -60 - 4])  # within the head of the last packet
    cut = wire(capsys, "show", path)[1]
    assert cut[:2] == lines[:2]
    assert cut[2].endswith("The capture can't be read any further: got 12, 16 needed at least.")


def test_a_capture_of_which_only_the_end_of_a_connection_has_bytes_is_shown(tmp_path, capsys):
    segments = [
        (True, 999, dpkt.tcp.TH_SYN, b""),
        (True, 1100, 0, robot.DriverConnection().send(robot.QuerySubsystems())),
    ]
    capture(tmp_path / "robot.pcap", segments)
    lines = wire(capsys, "show", tmp_path / "robot.pcap")[1]
    assert lines[1].endswith("100 bytes were not captured here.")
    assert lines[2].endswith("3 bytes that can't be decoded")


def test_a_testbeds_log_is_decoded_again_after_a_gap(tmp_path, capsys):
    connection, entries = read(log_of("testbed"))
    frame = entries[1]
    within = frame._replace(data=frame.data[100:])
    for part, some in ((1, [entries[0], frame]), (4, [within, *entries[2:]])):
        write_log(tmp_path / f"bed-000{part}.mcap", replace(connection, part=part), some)
    _, whole, _ = wire(capsys, "show", log_of("testbed"))
    _, lines, _ = wire(capsys, "show", tmp_path / "bed-0004.mcap")
    assert lines[:3] == whole[:3]
    assert lines[3].endswith("  2 of the connection's files no longer exist.")
    assert [line.split(maxsplit=3)[1:] for line in lines[4:6]] == [
        ["testbed", "<-", f"{len(within.data)} bytes that can't be decoded"],
        ["autopilot", "->", "16 bytes that can't be decoded"],
    ]
    assert lines[6:] == whole[4:]
    status, _, errors = wire(capsys, "play", tmp_path / "bed-0004.mcap", "--as", "testbed", "--at", "1")
    assert status == 2
    assert errors == "The log has a gap, and can't be played: 2 of the connection's files no longer exist.\n"


def test_a_log_that_lacks_its_beginning_is_reported_as_such(tmp_path, capsys):
    connection, entries = read(log_of("robot"))
    part = type(connection).from_facts({**connection.facts(), "part": "3"})
    write_log(tmp_path / "robot-0003.mcap", part, entries)
    _, lines, _ = wire(capsys, "show", tmp_path / "robot-0003.mcap")
    assert lines[1] == "The files that this one continues no longer exist, so it is unknown where a message begins."
    shutil.copy(tmp_path / "robot-0003.mcap", tmp_path / "other.mcap")
    assert wire(capsys, "play", tmp_path / "other.mcap", "--as", "robot", "--at", "1")[0] == 2
