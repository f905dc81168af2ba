# SPDX-License-Identifier: Apache-2.0
"""drone-bridge wire show: captures of real programs as the log of a bridge that was between them."""

import json
import math
import struct

import pytest
from captured_logs import CONVERSATIONS, OPERATOR, VEHICLE, capture, lockstep, robots, written
from repository import CAPTURES

from drone_bridge.kind import Side, kinds
from drone_bridge.net.connector import RECEIVED
from drone_bridge.net.wire_log import WireLog, facts_of
from drone_bridge.net.wire_log_file import CONNECTIONS, OMITTED, WireLogFile
from drone_bridge.tools.cli import main as drone_bridge
from drone_bridge.tools.wire.decoding import NOT_KEPT, SOUGHT, DecodedMessage, Decoder, UndecodedBytes, Violation
from drone_bridge.tools.wire.log_file import LogEntry, LoggedConnection, LogSource

MESSAGES = {"testbed": 1 + 3 + 3, "simulator": 19 + 80, "robot": 6 + 7, "dronegui": 144}


@pytest.fixture
def write(tmp_path):
    """Make the log of a bridge, see `written`; return its path."""

    def make(protocol, *connections, **parameters):
        return written(tmp_path / f"{len(list(tmp_path.iterdir()))}", protocol, *connections, **parameters)

    return make


def log_of(write, protocol):
    return write(protocol, *CONVERSATIONS[protocol]())


def show(capsys, *arguments):
    status = drone_bridge(["wire", "show", *map(str, arguments)])
    output = capsys.readouterr()
    return status, output.out.splitlines(), output.err


def without_times(lines):
    return [line[13:] for line in lines if not line.startswith("#")]


@pytest.mark.parametrize("protocol", CONVERSATIONS)
def test_a_conversation_is_shown_one_line_per_message(write, protocol, capsys):
    status, lines, errors = show(capsys, log_of(write, protocol))
    assert (status, errors) == (0, "")
    assert lines[0].startswith(f"# 1: {protocol} over ")
    assert not [line for line in lines if "BREAKS" in line or "can't be decoded" in line]
    assert len(lines) == 1 + MESSAGES[protocol]


def test_a_line_has_the_direction_and_the_message(write, capsys):
    path = log_of(write, "testbed")
    _, lines, _ = show(capsys, path)
    assert lines[0].startswith("# 1: testbed over tcp, autopilot 127.0.0.1:1000, testbed 127.0.0.1:8000; 20")
    assert lines[1].startswith("    0.000000  1   testbed <- Constants ")
    assert without_times(lines)[1:3] == [
        " 1   testbed <- SensorFrame left=<9216 bytes, crc32 fc47dd58> right=<9216 bytes, crc32 0331eea6> "
        "time=0 pitch=-3 yaw=2",
        " 1 autopilot -> MotionParameters pitch_rate=10.5 roll_rate=-20.25 yaw_rate=30.125 thrust=14.7150002",
    ]
    _, lines, _ = show(capsys, path, "--raw")
    assert lines[1:3] == [
        "    0.000000  1   testbed <- 48 bytes",
        "    00000000  42 f0 00 00 42 d1 99 9a 00 00 00 40 00 00 00 30  |B...B......@...0|",
    ]


def test_connections_of_one_node_are_distinguished(write, capsys):
    path = write("robot", ("tcp", 1000, 2000, [*robots(), (VEHICLE, b"")]), ("tcp", 1001, 2000, robots()))
    _, lines, _ = show(capsys, path)
    assert [line.split(":")[0] for line in lines if line.startswith("#")] == ["# 1", "# 2"]
    one, two = ([line[2:] for line in without_times(lines) if line.startswith(f" {number}")] for number in (1, 2))
    assert [*two, "  robot <- ConnectionClosed"] == one
    raw = without_times(show(capsys, path, "--raw")[1])
    assert [line for line in raw if line.startswith((" 1 ", " 2 "))] == [
        " 1 driver -> 47 bytes",
        " 1  robot <- 367 bytes",
        " 1  robot <- the end",
        " 2 driver -> 47 bytes",
        " 2  robot <- 367 bytes",
    ]


def replaced_third(replacement):
    """The robot's captured messages, of which the third is replaced by what a function makes of it."""
    sent, begin = capture("robot_to_driver.bin"), 0
    for number in range(7):
        end = begin + 3 + int.from_bytes(sent[begin : begin + 2], "big")
        message = sent[begin:end]
        yield VEHICLE, replacement(message) if number == 2 else message
        begin = end


def test_a_violation_is_shown_with_its_bytes_and_the_error(write, capsys):
    broken = list(replaced_third(lambda _: struct.pack(">HB", 1, 1) + b"\x7f"))  # a keep-alive of one byte
    status, lines, _ = show(
        capsys, write("robot", ("tcp", 1000, 2000, [*broken, (OPERATOR, capture("driver_to_robot.bin"))]))
    )
    assert status == 0
    (index,) = [index for index, line in enumerate(lines) if "BREAKS THE PROTOCOL: The robot sent" in line]
    offset = sum(len(data) for _, data in broken[:2])
    assert lines[index + 1].startswith(f"    {offset:08x}  00 01 01 7f")
    assert any("can't be decoded" in line for line in lines[index + 2 :])
    assert any("driver -> BindSubsystem" in line for line in lines)  # the other direction goes on


def test_bytes_of_another_baud_rate_are_shown_as_no_packet(write, capsys):
    _, lines, _ = show(
        capsys, write("create2", ("tcp", 1000, 2000, [(VEHICLE, b"\xaa\x55\x4d" * 20), (VEHICLE, b"\x55" * 5)]))
    )
    assert [line.split(" <- ")[1].partition(": ")[0] for line in lines[1:]] == [
        "60 bytes that are no packet",
        "5 bytes that are no packet",
    ]
    assert "aa 55 4d" in lines[1]


def test_an_excessive_message_size_is_reported(write, capsys):
    sent = list(replaced_third(lambda message: b"\xff\xff" + message[2:]))
    _, lines, _ = show(capsys, write("robot", ("tcp", 1000, 2000, sent)))
    size = sum(len(data) for _, data in sent[2:])
    (index,) = [index for index, line in enumerate(lines) if line.endswith(f"{size} bytes of an incomplete message")]
    assert lines[index].startswith("         end  1 ")
    assert "ff ff" in lines[index + 1]


def test_a_stream_that_breaks_inside_a_message_is_shown_with_its_bytes(write, capsys):
    (_, constants), (_, frame), *_ = lockstep()
    _, lines, _ = show(
        capsys, write("testbed", ("tcp", 1000, 2000, [(VEHICLE, constants), (VEHICLE, frame[:100]), (VEHICLE, b"")]))
    )
    assert "BREAKS THE PROTOCOL" in lines[2]
    assert "100 of 18444 bytes" in lines[2]
    assert lines[3].startswith("    00000030  ")


def test_damaged_file_is_shown_or_refused_with_a_sentence(write, tmp_path, capsys):
    whole = log_of(write, "robot").read_bytes()
    for offset in range(0, len(whole), 8):
        (tmp_path / "damaged.mcap").write_bytes(whole[:offset] + b"\xff" * 8 + whole[offset + 8 :])
        (tmp_path / "cut.mcap").write_bytes(whole[:offset])
        for name in ("damaged", "cut"):
            status, lines, errors = show(capsys, tmp_path / f"{name}.mcap")
            assert (status, errors, bool(lines)) == (0, "", True) or (status, len(errors.splitlines())) == (2, 1)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [({"protocol": "morse"}, "the protocol 'morse'"), ({"side": "nobody"}, "record of its source")],
)
def test_a_log_of_others_is_refused_with_a_sentence(tmp_path, capsys, change, sentence):
    log = WireLog(tmp_path, "other", {**facts_of("robot", "operator", "other", {}), **change}, print)
    log.close()
    status, _, errors = show(capsys, *tmp_path.iterdir())
    assert status == 2
    assert sentence in errors


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        (CAPTURES / "robot_to_driver.bin", "neither a wire log nor a capture"),
        ("/dev/null/none.mcap", "Not a directory"),
        (CAPTURES / "none.mcap", "No such file"),
    ],
)
def test_what_is_no_log_is_refused_with_a_sentence(path, sentence, capsys):
    status, lines, errors = show(capsys, path)
    assert (status, lines, len(errors.splitlines())) == (2, [], 1)
    assert sentence in errors


@pytest.mark.parametrize("said", [{"bytes": 10**12}, {"bytes": -1}, {"bytes": math.inf}, {"bytes": "many"}])
def test_an_entry_that_leaves_out_an_impossible_number_of_bytes_is_refused(said, tmp_path, capsys):
    file = WireLogFile(tmp_path, "log", facts_of("tello", "operator", "log", {}), 0.0)
    ends = {"number": 1, "transport": "udp", "own": "a:1", "peer": "b:2"}
    file.write([(0, 0, CONNECTIONS, 1, json.dumps(ends).encode())], 1 << 20)
    file.write([(0, 0, OMITTED, 1, json.dumps({"direction": RECEIVED, **said}).encode())], 1 << 20)
    file.close()
    status, _, errors = show(capsys, file.path)
    assert status == 2
    assert f"{file.path} is damaged: connection 1 has no valid entry" in errors


def cut_testbed():
    (_, constants), (_, first), reply, (_, second), _, (_, third), last = lockstep()
    begin = [(VEHICLE, constants), (VEHICLE, first), reply]
    return (
        begin,
        [(VEHICLE, second[-500:]), reply, (VEHICLE, third[:7000]), (VEHICLE, third[7000:]), last],
        2,
    )  # of a frame


def cut_robot():
    (_, driver), (_, sent) = robots()
    begin = [(OPERATOR, driver), (VEHICLE, sent[:-2])]  # inside a message
    query = OPERATOR, b"\x00\x00\x02"
    return begin, [(VEHICLE, sent[5:100]), query, (VEHICLE, sent[:150]), (VEHICLE, sent[150:]), query], 1 + 7 + 1


@pytest.mark.parametrize(("protocol", "cut"), [("testbed", cut_testbed), ("robot", cut_robot)])
def test_a_stream_is_decoded_from_the_next_message_after_lost_bytes(protocol, cut):
    begin, rest, messages = cut()
    source = LogSource(kinds()[protocol], Side.OPERATOR, "a_bridge", {})
    connection = LoggedConnection(1, "tcp", "127.0.0.1:1000", "127.0.0.1:2000", 0)
    sides = {OPERATOR: Side.OPERATOR, VEHICLE: Side.VEHICLE}
    entries = [LogEntry(number, connection, sides[sender], data) for number, (sender, data) in enumerate(begin)]
    entries += [LogEntry(len(entries), connection, side, b"", 12345, is_gap=True) for side in Side]
    entries += [
        LogEntry(len(entries) + number, connection, sides[sender], data) for number, (sender, data) in enumerate(rest)
    ]
    decoder = Decoder(source, connection)
    outcomes = [outcome for entry in entries for outcome in decoder.feed(entry)]
    after = outcomes[outcomes.index(UndecodedBytes(Side.VEHICLE, 12345, NOT_KEPT)) + 1 :]
    assert [outcome.reason for outcome in outcomes if isinstance(outcome, UndecodedBytes)] == [
        NOT_KEPT,
        NOT_KEPT,
        SOUGHT,
    ]
    assert len([outcome for outcome in after if isinstance(outcome, DecodedMessage)]) == messages
    assert not [outcome for outcome in outcomes if isinstance(outcome, Violation)]
    assert list(decoder.unfinished()) == []


def test_a_picture_that_was_not_kept_hides_no_message():
    (_, constants), (_, frame), reply, *_ = lockstep()
    source = LogSource(kinds()["testbed"], Side.OPERATOR, "a_bridge", {})
    connection = LoggedConnection(1, "tcp", "127.0.0.1:1000", "127.0.0.1:8000", 0)
    decoder, outcomes = Decoder(source, connection), []
    for side, data, omitted in (
        (Side.VEHICLE, constants, 0),
        (Side.VEHICLE, frame[:10], 0),
        (Side.VEHICLE, b"", len(frame) - 22),
        (Side.VEHICLE, frame[-12:], 0),
        (Side.OPERATOR, reply[1], 0),
    ):
        outcomes += decoder.feed(LogEntry(0, connection, side, data, omitted))
    assert [type(outcome.meaning).__name__ for outcome in outcomes] == ["Constants", "SensorFrame", "MotionParameters"]
    assert (outcomes[1].event.pitch, outcomes[1].event.yaw) == (-3.0, 2.0)
