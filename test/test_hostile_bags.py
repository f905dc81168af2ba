# SPDX-License-Identifier: Apache-2.0
"""MCAP files that are small and unpack to much: they are refused with a sentence, before they take time or memory."""

import tracemalloc
from functools import cache

import pytest
from mcap.data_stream import RecordBuilder
from mcap.records import Channel, Chunk, ChunkIndex, DataEnd, Footer, Header, Message, Schema, Statistics

from drone_bridge.tools.bags.bounds import MAX_CHUNK_BYTES, zstd
from drone_bridge.tools.cli import main
from drone_bridge.tools.mcap_records import MAGIC

MIB = 2**20
MAX_BYTES = 2 * MAX_CHUNK_BYTES
SCHEMA = Schema(id=1, name="std_msgs/msg/ByteMultiArray", encoding="ros2msg", data=b"byte[] data\n")
CHANNEL = Channel(id=1, topic="/zeros", message_encoding="cdr", metadata={}, schema_id=1)


def written(*records):
    builder = RecordBuilder()
    for record in records:
        record.write(builder)
    return builder.end()


def message(size):
    return written(Message(channel_id=1, sequence=0, log_time=10, publish_time=10, data=bytes(size)))


@cache
def packed(message_size, count):
    """Return that many messages of zeros as a chunk has them, and their size unpacked."""
    compressor = zstd.ZstdCompressor(level=1)
    head, one = written(SCHEMA, CHANNEL), message(message_size)
    together = max(1, MIB // len(one))
    pieces = [compressor.compress(head)]
    pieces += [compressor.compress(one * together) for _ in range(count // together)]
    return b"".join([*pieces, compressor.flush()]), len(head) + len(one) * (count // together * together)


def chunk(data, size):
    return Chunk(
        compression="zstd", data=data, message_start_time=10, message_end_time=10, uncompressed_crc=0,
        uncompressed_size=size,
    )  # fmt: skip


def plain(path, *chunks):
    """Write a file without an index."""
    end = written(DataEnd(data_section_crc=0), Footer(summary_start=0, summary_offset_start=0, summary_crc=0))
    path.write_bytes(MAGIC + written(Header(profile="ros2", library=""), *chunks) + end + MAGIC)


def indexed(path, data, size, times):
    """Write a file whose index names its only chunk so many times."""
    begin = MAGIC + written(Header(profile="ros2", library=""))
    body = written(chunk(data, size))
    index = ChunkIndex(
        chunk_length=len(body), chunk_start_offset=len(begin), compression="zstd", compressed_size=len(data),
        message_end_time=10, message_index_length=31, message_index_offsets={1: len(begin) + len(body)},
        message_start_time=10, uncompressed_size=size,
    )  # fmt: skip
    statistics = Statistics(
        attachment_count=0, channel_count=1, channel_message_counts={1: times}, chunk_count=times, message_count=times,
        message_end_time=10, message_start_time=10, metadata_count=0, schema_count=1,
    )  # fmt: skip
    end = written(DataEnd(data_section_crc=0))
    summary = written(SCHEMA, CHANNEL, *[index] * times, statistics)
    footer = written(Footer(summary_start=len(begin + body + end), summary_offset_start=0, summary_crc=0))
    path.write_bytes(begin + body + end + summary + footer + MAGIC)


FILES = {
    "unpacks to 1 GiB": (lambda path: plain(path, chunk(*packed(MIB, 1024))), "bytes; 134217728 are allowed"),
    "claims to be small": (lambda path: plain(path, chunk(packed(MIB, 1024)[0], MIB)), "size mismatch"),
    "claims to be large": (lambda path: plain(path, chunk(packed(MIB, 8)[0], 2**62)), "bytes; 134217728 are allowed"),
    "many messages": (lambda path: plain(path, chunk(*packed(0, 4_000_000))), "has more messages than that"),
    "one chunk many times": (lambda path: indexed(path, *packed(64 * MIB, 1), 100), "names more than the file holds"),
    "indexed 1 GiB": (lambda path: indexed(path, *packed(MIB, 1024), 1), "are unpacked for one moment"),
}


@pytest.mark.parametrize("command", ["info", "play", "report"])
@pytest.mark.parametrize("kind", FILES)
def test_a_hostile_file_is_refused_with_a_sentence(tmp_path, capsys, command, kind):
    write, sentence = FILES[kind]
    path = tmp_path / "hostile.mcap"
    write(path)
    assert path.stat().st_size < 600_000
    tracemalloc.start()
    try:
        assert main([command, str(path)]) == 1
        assert tracemalloc.get_traced_memory()[1] < MAX_BYTES
    finally:
        tracemalloc.stop()
    printed = capsys.readouterr().err
    assert sentence in printed
    assert len(printed.splitlines()) == 1


def test_a_file_that_unpacks_to_much_is_read_if_it_can_be_a_recording(tmp_path, capsys):
    plain(tmp_path / "dark.mcap", chunk(*packed(MIB, 64)))
    assert main(["info", str(tmp_path / "dark.mcap")]) == 0
    assert "64 messages" in capsys.readouterr().out
    indexed(tmp_path / "indexed.mcap", *packed(MIB, 64), 1)
    assert main(["info", str(tmp_path / "indexed.mcap")]) == 0
