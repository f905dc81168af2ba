# SPDX-License-Identifier: Apache-2.0
"""Recovered and unindexed MCAP files: complete, in the order of time, in little memory."""

import errno
import os
import random
import struct
from unittest.mock import Mock

import pytest
from mcap.opcode import Opcode
from mcap.reader import SeekingReader
from mcap.writer import CompressionType, IndexType, Writer
from rosbags.highlevel import AnyReader

from drone_bridge.tools.bags.bag import BagReader
from drone_bridge.tools.cli import main
from drone_bridge.tools.recover import command

MAGIC, HEAD = b"\x89MCAP0\r\n", struct.Struct("<BQ")
NUMBER = ("std_msgs/msg/Float64", "ros2msg", b"float64 data")
START_NS = 1_700_000_000_000_000_000
JITTER_NS = 198_000_000
#: Ways to write a file without an index.
UNINDEXED = {
    "no summary": {
        "index_types": IndexType.NONE,
        "repeat_channels": False,
        "repeat_schemas": False,
        "use_statistics": False,
        "use_summary_offsets": False,
    },
}


def write(path, count=400, *, is_killed=False, chunk_size=2000, compression=CompressionType.NONE, **options):
    """Write two topics whose messages are out of order; return the expected (topic, time, number) in order."""
    jitter = random.Random(7)
    expected = []
    with path.open("wb") as file:
        writer = Writer(file, chunk_size=chunk_size, compression=compression, **options)
        writer.start("ros2", "another recorder")
        schema = writer.register_schema(*NUMBER)
        channels = {name: writer.register_channel(name, "cdr", schema, {"key": name}) for name in ("/a", "/b")}
        silent = writer.register_channel("/silent", "cdr", schema)
        assert silent
        for number in range(count):
            for name, channel in channels.items():
                time_ns = START_NS + number * 10_000_000 + jitter.randrange(JITTER_NS)
                data = b"\0\1\0\0" + struct.pack("<d", number)
                writer.add_message(channel, time_ns, data, time_ns - 1, number)
                expected.append((name, time_ns, float(number)))
        writer.add_metadata("note", {"by": "a test"})
        writer.flush() if is_killed else writer.finish()
    return sorted(expected, key=lambda each: each[1])


def read(path):
    with AnyReader([path]) as reader:
        return [
            (each.topic, time_ns, reader.deserialize(data, each.msgtype).data)
            for each, time_ns, data in reader.messages()
        ]


def ends_of_chunks(data):
    """Return the position after each chunk of a file, read without the library."""
    position, ends = len(MAGIC), []
    while position + HEAD.size <= len(data):
        kind, size = HEAD.unpack_from(data, position)
        position += HEAD.size + size
        if kind == Opcode.CHUNK:
            ends.append(position)
    return ends


@pytest.mark.parametrize("compression", CompressionType)
def test_what_is_whole_before_a_cut_is_kept_wherever_it_is(tmp_path, compression, capsys):
    path, saved = tmp_path / "killed.mcap", tmp_path / "saved.mcap"
    expected = write(path, is_killed=True, compression=compression)
    data = path.read_bytes()
    ends, counts = ends_of_chunks(data), set()
    for cut in sorted({*range(0, len(data), 997), *(end + by for end in ends for by in (-1, 0, 1, 9)), len(data)}):
        path.write_bytes(data[:cut])
        saved.unlink(missing_ok=True)
        whole = sum(end <= cut for end in ends)
        assert main(["recover", str(path), str(saved)]) == (0 if whole else 1)
        assert saved.exists() == bool(whole)
        if whole:
            found = read(saved)
            assert found == sorted(found, key=lambda each: each[1])
            assert set(found) <= set(expected)
            counts.add((whole, len(found)))
    # Each further chunk has further messages, and the last one all of them.
    assert [chunks for chunks, _ in sorted(counts)] == list(range(1, len(ends) + 1))
    numbers = [count for _, count in sorted(counts)]
    assert numbers == sorted(set(numbers))
    assert numbers[-1] == len(expected)
    assert f"of the first {len(data)} of {len(data)} bytes, of which 0 are unreadable" in capsys.readouterr().out


def test_a_recovered_file_has_index_statistics_and_summary(tmp_path):
    expected = write(tmp_path / "killed.mcap", is_killed=True)
    with (tmp_path / "killed.mcap").open("ab") as file:
        file.write(b"\6\xff\0\0\0\0\0\0\0torn")
    assert main(["recover", str(tmp_path / "killed.mcap"), str(tmp_path / "saved.mcap")]) == 0
    assert read(tmp_path / "saved.mcap") == expected
    with (tmp_path / "saved.mcap").open("rb") as file:
        reader = SeekingReader(file, validate_crcs=True)
        assert (reader.get_header().profile, reader.get_header().library) == ("ros2", "another recorder")
        summary = reader.get_summary()
        assert [message.sequence for _, _, message in reader.iter_messages("/a")] == [
            int(number) for name, _, number in expected if name == "/a"
        ]
    statistics = summary.statistics
    assert (statistics.message_count, statistics.message_start_time) == (len(expected), expected[0][1])
    assert statistics.message_end_time == expected[-1][1]
    assert {each.topic for each in summary.channels.values()} == {"/a", "/b", "/silent"}
    assert summary.channels[1].metadata == {"key": "/a"}
    assert [each.name for each in summary.metadata_indexes] == ["note"]


@pytest.mark.parametrize("how", [*UNINDEXED, "damaged index"])
def test_recover_writes_a_missing_index(tmp_path, how):
    path = tmp_path / "other.mcap"
    expected = write(path, **UNINDEXED.get(how, {}))
    if how == "damaged index":  # the position of the summary, in the footer
        data = path.read_bytes()
        path.write_bytes(data[:-28] + struct.pack("<Q", 2**63) + data[-20:])
    assert main(["recover", str(path), str(tmp_path / "indexed.mcap")]) == 0
    assert read(tmp_path / "indexed.mcap") == expected
    with BagReader(tmp_path / "indexed.mcap") as bag:
        assert [message.time_ns for message in bag.messages()] == [time_ns for _, time_ns, _ in expected]


def test_another_file_is_not_recovered(tmp_path, capsys):
    path = tmp_path / "other.mcap"
    write(path)
    begun = path.read_bytes()[:100], "contains no complete message"
    for content, why in ((random.Random(7).randbytes(3_000_000), "does not begin like an MCAP file"), begun):
        path.write_bytes(content)
        assert main(["recover", str(path), str(tmp_path / "saved.mcap")]) == 1
        assert f"'{path}' {why}." in capsys.readouterr().err
        assert not (tmp_path / "saved.mcap").exists()


@pytest.mark.parametrize("is_killed", [True, False])
def test_a_file_that_is_cut_in_its_end_and_ends_in_zeros_loses_no_message(tmp_path, is_killed):
    path, saved = tmp_path / "killed.mcap", tmp_path / "saved.mcap"
    expected = write(path, is_killed=is_killed)
    path.write_bytes(path.read_bytes()[: None if is_killed else -9])
    os.truncate(path, 2**34)  # zeros, as a power failure leaves them
    assert main(["recover", str(path), str(saved)]) == 0
    assert read(saved) == expected


def test_a_recovery_that_fails_leaves_nothing_but_what_was_there(tmp_path, monkeypatch, capsys):
    path, saved = tmp_path / "killed.mcap", tmp_path / "saved.mcap"
    write(path, is_killed=True)
    with monkeypatch.context() as patch:
        patch.setattr(command, "recover", Mock(side_effect=OSError(errno.ENOSPC, "No space left on device")))
        assert main(["recover", str(path), str(saved)]) == 1
    assert "No space left" in capsys.readouterr().err
    assert not saved.exists()
    saved.write_text("of another")
    assert main(["recover", str(path), str(saved)]) == 1
    assert f"{saved}: File exists" in capsys.readouterr().err
    assert saved.read_text() == "of another"


@pytest.mark.parametrize("compression", CompressionType)
def test_a_damaged_chunk_costs_itself_alone(tmp_path, compression, capsys):
    path = tmp_path / "killed.mcap"
    expected = write(path, is_killed=True, chunk_size=20_000, compression=compression)
    data = bytearray(path.read_bytes())
    at = ends_of_chunks(data)[1] - 100  # in the second chunk
    data[at : at + 8] = bytes(each ^ 0xFF for each in data[at : at + 8])
    path.write_bytes(data)
    assert main(["recover", str(path), str(tmp_path / "saved.mcap")]) == 0
    found = read(tmp_path / "saved.mcap")
    assert 0 < len(found) < len(expected)
    assert set(found) < set(expected)
    assert "which 0 are unreadable" not in capsys.readouterr().out
