# SPDX-License-Identifier: Apache-2.0
"""Packets of video that wait for the decoder: in order, without those that would give wrong pictures."""

from drone_bridge.pictures.packet_queue import MOST_WAITING, PacketQueue, QueuedFrame
from drone_bridge.pictures.source import VideoFrame


def put(queue, *numbers, key=(), stream=1):
    """Put frames with these numbers; return how many were dropped."""
    frames = [VideoFrame(b"", "", "front", number in key, number, stream) for number in numbers]
    return sum(queue.put(QueuedFrame(frame, None, 0.0)) for frame in frames)


def taken(queue):
    numbers = []
    while queue:
        numbers.append(queue.next().frame.number)
    return numbers


def test_frames_come_in_order_from_the_first_key_on():
    queue = PacketQueue()
    assert put(queue, 1, 2, 3, 4, key={3}) == 2
    assert taken(queue) == [3, 4]
    assert put(queue, 5, 6) == 0
    assert taken(queue) == [5, 6]


def test_after_a_lost_frame_all_are_dropped_until_the_next_key():
    queue = PacketQueue()
    assert put(queue, 1, 2, 4, 5, 6, 7, 8, key={1, 7}) == 3
    assert taken(queue) == [1, 2, 7, 8]


def test_frames_of_another_stream_need_a_key_of_their_own():
    queue = PacketQueue()
    put(queue, 1, 2, key={1})
    assert put(queue, 3, stream=2) == 1
    assert put(queue, 4, 5, key={4}, stream=2) == 0
    assert taken(queue) == [1, 2, 4, 5]


def test_a_slow_decoder_goes_on_with_the_newest_key():
    queue = PacketQueue()
    assert put(queue, *range(1, 21), key={1, 11}) == 10
    assert taken(queue) == list(range(11, 21))


def test_without_a_key_that_waits_all_are_dropped_until_the_next_one():
    queue = PacketQueue()
    put(queue, *range(1, MOST_WAITING + 1), key={1})
    assert put(queue, MOST_WAITING + 1) == MOST_WAITING + 1
    assert not queue
    assert put(queue, MOST_WAITING + 2) == 1
    assert put(queue, 30, 31, key={30}) == 0
    assert taken(queue) == [30, 31]


def test_it_never_holds_more_than_the_limit():
    queue = PacketQueue()
    for number in range(1000):
        put(queue, number, key={number} if number % 40 == 0 else ())
        assert len(queue) <= MOST_WAITING


def test_newest_independent_picture_replaces_queued_ones():
    queue = PacketQueue()
    assert put(queue, 1, 2, 3, key={1, 2, 3}) == 0
    assert taken(queue) == [3]


def test_a_decoder_that_has_lost_its_pictures_gets_a_key_first():
    queue = PacketQueue()
    put(queue, 1, 2, key={1})
    queue.restart()
    assert put(queue, 3, 4, key={4}) == 1
    assert taken(queue) == [4]
