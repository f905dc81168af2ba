# SPDX-License-Identifier: Apache-2.0
"""Pictures of H.264 in datagrams, cut as a Tello cuts them, from the stream of a real AR.Drone 2."""

import re

import pytest
from repository import CAPTURES

from drone_bridge.ardrone.codec import FrameType, PaveReader
from drone_bridge.vision.h264_pictures import MAX_PICTURE_BYTES, H264Pictures

CUT = 1460


@pytest.fixture(scope="module")
def pictures():
    path = CAPTURES / "ardrone" / "uavpilot_video.bin"
    frames = [frame for frame in PaveReader().receive(path.read_bytes()) if frame.payload]
    first = next(number for number, frame in enumerate(frames) if frame.type == FrameType.IDR)
    return [(frame.payload, frame.type == FrameType.IDR) for frame in frames[first:]]


def datagrams(payload):
    """Return the datagrams of a picture: parameters in their own, and what is longer in pieces."""
    for unit in (b"\0\0\0\1" + unit for unit in re.split(rb"\x00{2,3}\x01", payload)[1:]):
        yield from (unit[at : at + CUT] for at in range(0, len(unit), CUT))


def test_each_picture_comes_with_its_last_datagram(pictures):
    reader = H264Pictures()
    for number, (payload, is_key) in enumerate(pictures, 1):
        *before, last = datagrams(payload)
        if len(last) == CUT:
            pytest.skip("it ends with the next one")
        came = list(reader.receive(before)) if number > 1 else [*reader.receive(before)][:0]
        assert came == []
        (picture,) = reader.receive([last])
        assert (picture.is_key, picture.number) == (is_key, number)
        assert picture.data.replace(b"\0\0\0\1", b"\0\0\1") == payload.replace(b"\0\0\0\1", b"\0\0\1")


def test_a_picture_without_a_shorter_datagram_ends_with_the_next_one():
    reader = H264Pictures()
    one, other = b"\0\0\1\x65\x88" + b"a" * 95, b"\0\0\1\x41\x9a" + b"b" * 95
    assert list(reader.receive([one])) == []
    assert [picture[:2] for picture in reader.receive([other, other])] == [(one, True), (other, False)]


def test_a_lost_beginning_leaves_a_gap_in_the_numbers():
    reader = H264Pictures()
    begin, rest, end = b"\0\0\1\x41\x9a" + b"a" * 95, b"b" * 100, b"c"
    assert [each.number for each in reader.receive([begin, rest, end])] == [1]
    assert next(each.number for each in reader.receive([rest, end, begin, end])) > 2


def test_slices_of_one_picture_stay_together():
    reader = H264Pictures()
    first, later, end = b"\0\0\1\x41\x9a" + b"a" * 95, b"\0\0\1\x41\x1a" + b"b" * 95, b"c"
    list(reader.receive([first, end, later, end] * 2))
    came = [picture.data for picture in reader.receive([first, end, later, end] * 3)]
    assert came[1:] == [first + end + later + end] * (len(came) - 1)
    assert len(came) > 1


def test_it_keeps_no_more_than_a_picture():
    reader = H264Pictures()
    list(reader.receive([b"\0\0\1\x41\x9a" + b"a" * 1000] + [b"b" * 1005] * (2 * MAX_PICTURE_BYTES // 1005)))
    assert len(reader._data) <= MAX_PICTURE_BYTES
