# SPDX-License-Identifier: Apache-2.0
"""drone-bridge wire keep: what leaves the machine of a robot's owner, as bytes of the new file."""

import pytest
from captured_logs import OPERATOR, VEHICLE, written

from drone_bridge.kind import Side
from drone_bridge.net import wire_log
from drone_bridge.tools.cli import main as drone_bridge
from drone_bridge.tools.wire import keep
from drone_bridge.tools.wire.log_file import LogFile

#: Packets, and what is left of them.
PRIVATE = [
    (OPERATOR, b"wifi OurHouse s3cret!\n", b"wifi xxxxxxxx x0xxxx!\n"),
    (OPERATOR, b"password :          s3cret!;\n", b"password :          x0xxxx!;\n"),
    (OPERATOR, b'AT*CONFIG=5,"network:ssid_single","bed"\r\n', b'AT*CONFIG=5,"network:ssid_single","xxx"\r\n'),
    (VEHICLE, b'{"token": "abc-123"}\n', b'{"token": "xxx-000"}\n'),
    (VEHICLE, b"general:drone_serial = PS721000AB\r\n", b"general:drone_serial = xx000000xx\r\n"),
    (VEHICLE, b"Serial Number,OPS01234AA-0000001,P\r\n", b"Serial Number,xxx00000xx-0000000,P\r\n"),
    (VEHICLE, b"robot ip 192.168.1.5;\n", b"robot ip 000.000.0.0;\n"),
    (VEHICLE, b"mac a0:b1:c2:0d:e4:f5\n", b"mac x0:x0:x0:0x:x0:x0\n"),
    (VEHICLE, b"in Jo's garden\n", b"in xx's garden\n"),
    (VEHICLE, b"bat:87;agx:-1.0;v 0.0.1;\n", b"bat:87;agx:-1.0;v 0.0.1;\n"),
]
ANSWER = [(OPERATOR, b"sn?", b"sn?"), (VEHICLE, b"0TQDG2K", b"0xxxx0x"), (VEHICLE, b"87", b"87")]
JPEG = b"\xff\xd8\xff\xe0 picture"


@pytest.fixture
def kept(tmp_path, monkeypatch, capsys):
    """Keep a minute. Return what is printed, and sender, data and missing bytes of each entry."""
    monkeypatch.chdir(tmp_path)

    def keep_of(path, *words):
        assert drone_bridge(["wire", "keep", str(path), "mine", *words]) == 0
        with LogFile(tmp_path / "mine.mcap") as log:
            assert (log.source.name, log.source.parameters) == ("mine", {"rate": 20.0, "role": "connect"})
            entries = [(each.sender, each.data, each.omitted) for each in log.entries()]
        return capsys.readouterr().out, entries

    return keep_of


PARAMETERS = {"host": "192.168.1.5", "login": "~/jo_login", "rate": 20.0, "role": "connect"}


@pytest.mark.parametrize("transport", ["udp", "tcp"])
def test_what_is_private_is_taken_out_in_its_length(transport, kept, tmp_path):
    packets = PRIVATE if transport == "tcp" else PRIVATE + ANSWER
    step = 9 if transport == "tcp" else 99  # a stream is cut anywhere
    pieces = [(way, data[at : at + step]) for way, data, _ in packets for at in range(0, len(data), step)]
    path = written(tmp_path / "log", "tello", (transport, 1000, 8889, pieces), **PARAMETERS)
    printed, entries = kept(path, "--remove", "Jo")
    for way, side in ((OPERATOR, Side.OPERATOR), (VEHICLE, Side.VEHICLE)):
        left = b"".join(left for to, _, left in packets if to == way)
        assert b"".join(data for sender, data, _ in entries if sender is side) == left
    whole = (tmp_path / "mine.mcap").read_bytes()
    assert not [each for each in (b"127.0.0.1", b"jo_login", b"a_bridge", b"192.168") if each in whole]
    for what in ("3 logins", "2 addresses", "2 network names", "1 'Jo'", "serial numbers"):
        assert what in printed


def test_pictures_are_left_out(kept, tmp_path):
    rows = [
        ("udp", 1000, 8889, [(VEHICLE, JPEG), (VEHICLE, b"bat:1;")]),
        ("udp video", 11111, 8889, [(VEHICLE, b"h264")]),
    ]
    path = written(tmp_path / "log", "tello", *rows, **PARAMETERS)
    printed, entries = kept(path)
    assert "2 pictures" in printed
    assert [data for _, data, _ in entries] == [b"bat:1;"]
    assert drone_bridge(["wire", "keep", str(path), "mine"]) == 2, "it exists"


@pytest.mark.parametrize("long", [b"login" + b" " * (1 << 18), b"serialn" * (1 << 16), b"ssid " * (1 << 16)])
def test_a_long_run_of_one_text_is_searched_in_one_pass(long, kept, tmp_path):
    """Several passes take longer than any test may."""
    _, ((_, data, _),) = kept(written(tmp_path / "log", "tello", ("tcp", 1000, 8889, [(VEHICLE, long)]), **PARAMETERS))
    assert len(data) == len(long)


def test_the_last_minute_and_the_beginning_are_kept(kept, tmp_path, monkeypatch):
    monkeypatch.setattr(keep, "MINUTE_S", 0)
    monkeypatch.setattr(keep, "HEAD_BYTES", 10)
    pieces = [(VEHICLE, b"%04d" % number) for number in range(9)]
    assert wire_log.HEAD_BYTES > 10
    _, entries = kept(written(tmp_path / "log", "tello", ("udp", 1000, 8889, pieces), **PARAMETERS))
    assert [(data, omitted) for _, data, omitted in entries] == [(b"0000", 0), (b"0001", 0), (b"", 24), (b"0008", 0)]
