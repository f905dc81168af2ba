# SPDX-License-Identifier: Apache-2.0
"""MCAP files of other tools, with other encodings and messages of one time; and files that can't be read or written."""

import errno
import os
import struct
import subprocess
import sys

import pytest
from mcap.writer import Writer

from drone_bridge.tools.bags.bag import BagReader, BagReadError, run_on_bag
from drone_bridge.tools.info.command import print_info, topic_rates

NUMBER = ("std_msgs/msg/Float64", "ros2msg", b"float64 data")
START_NS = 1_700_000_000_000_000_000
OTHERS = {
    "json": ("note", "jsonschema", b"{}"),
    "protobuf": ("foxglove.Log", "protobuf", b"\n\xff\xfe\x00binary"),
}


def write(path, channels, *, count=5, period_ns=100_000_000):
    with path.open("wb") as file:
        bag = Writer(file)
        bag.start("ros2", "a test")
        ids = {
            bag.register_channel(topic, encoding, bag.register_schema(*schema)): encoding
            for topic, encoding, schema in channels
        }
        for number in range(count):
            for channel, encoding in ids.items():
                data = b"\0\1\0\0" + struct.pack("<d", number) if encoding == "cdr" else b"{}"
                bag.add_message(channel, START_NS + number * period_ns, data, 0)
        bag.finish()
    return path


@pytest.mark.parametrize("encoding", OTHERS)
def test_a_bag_with_topics_in_another_encoding_is_refused_with_a_sentence(tmp_path, encoding):
    path = write(tmp_path / "mixed.mcap", [("/x", "cdr", NUMBER), ("/note", encoding, OTHERS[encoding])])
    with pytest.raises(BagReadError, match=r"mixed\.mcap' is damaged, or has topics in another encoding than ROS 2: "):
        BagReader(path)


@pytest.mark.parametrize(("count", "period_ns"), [(5, 0), (1, 0), (0, 0)])
def test_messages_of_one_time_have_no_gap_and_no_rate(tmp_path, capsys, count, period_ns):
    path = write(tmp_path / "same.mcap", [("/x", "cdr", NUMBER)], count=count, period_ns=period_ns)
    with BagReader(path) as bag:
        assert print_info(bag) == 0
        assert all(each.rate_hz is None and not each.longest_gap_ns for each in topic_rates(bag.messages()).values())
    [row] = [line.split() for line in capsys.readouterr().out.splitlines() if line.strip().startswith("/x")]
    assert row == ["/x", NUMBER[0], str(count), "-", "-"]


def test_a_file_that_can_t_be_read_is_reported_as_such(tmp_path, monkeypatch, capsys):
    path = tmp_path / "locked.mcap"
    path.write_bytes(b"\x89MCAP0\r\n")

    def refuse(self, *_, **__):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(self))

    monkeypatch.setattr(type(path), "open", refuse)
    assert run_on_bag("info", path, print_info) == 1
    told = capsys.readouterr().err
    assert "can't be opened as a bag" in told
    assert "Permission denied" in told
    assert "written" not in told


def test_a_full_disk_and_a_closed_pipe_end_a_command_without_traceback(tmp_path):
    path = write(tmp_path / "bag.mcap", [("/x", "cdr", NUMBER)])
    run = [sys.executable, "-u", "-m", "drone_bridge.tools.cli", "info"]
    reader, writer = os.pipe()
    os.close(reader)  # as of | head
    for words, output, expected in (
        ([path], writer, (141, "")),
        (["robot"], "/dev/full", (1, "drone-bridge: the output can't be written: No space left on device.\n")),
    ):
        with open(output, "w") as file:
            ended = subprocess.run([*run, *words], stdout=file, stderr=subprocess.PIPE, text=True, check=False)
        assert (ended.returncode, ended.stderr) == expected


def test_a_disk_that_is_full_is_named_by_its_file_or_as_the_output(tmp_path, capsys):
    path = write(tmp_path / "bag.mcap", [("/x", "cdr", NUMBER)])

    def fill(*file):
        raise OSError(errno.ENOSPC, "full", *file)

    assert run_on_bag("report", path, lambda _: fill()) == run_on_bag("report", path, lambda _: fill("x.csv")) == 1
    assert capsys.readouterr().err.split(" can't")[:2] == [
        "drone-bridge report: the output",
        " be written: full.\ndrone-bridge report: 'x.csv'",
    ]
