# SPDX-License-Identifier: Apache-2.0
"""Questions to the codec of each protocol: each message there and back, any bytes in any split, the end of a stream."""

import random
from dataclasses import fields, is_dataclass

import pytest

from drone_bridge.kind import Side, kinds, load
from drone_bridge.wire import NEED_DATA, ConnectionClosed, LocalProtocolError, RemoteProtocolError

MAX_EVENTS = 10_000  # of one input: more than its bytes can hold
INTERESTING = (0, 1, 0x7F, 0x80, 0xFE, 0xFF)

each_kind = pytest.mark.parametrize("kind", kinds().values(), ids=lambda kind: kind.name)
each_side = pytest.mark.parametrize("side", Side, ids=lambda side: side.value)


def sent_by(kind):
    """Return the conversation as (who sends, its bytes, what the other end reads), in order."""
    connections = {side: kind.connect(side) for side in Side}
    for sent in load(kind.conversation)():
        data = connections[sent.side].send(sent.message)
        yield sent.side, data, sent.message if sent.read is None else sent.read
        other = connections[sent.side.other]
        other.receive_data(data)
        list(other.events())


def primed(kind, reader):
    """Return a connection that has sent what it would have sent before it reads: as much as it may without reading."""
    connection = kind.connect(reader)
    for sent in load(kind.conversation)():
        if sent.side is reader:
            try:
                connection.send(sent.message)
            except LocalProtocolError:
                break
    return connection


def plain(value):
    """Return a value with arrays of pixels as bytes."""
    if is_dataclass(value):
        return type(value), tuple(plain(getattr(value, each.name)) for each in fields(value) if each.compare)
    if isinstance(value, tuple | list):
        return tuple(map(plain, value))
    return bytes(value) if hasattr(value, "tobytes") else value


@each_kind
@pytest.mark.parametrize("splits", ["whole", "byte by byte"])
def test_each_message_is_read_as_it_was_sent(kind, splits):
    readers = {side: kind.connect(side) for side in Side}
    for sent in load(kind.conversation)():
        data = readers[sent.side].send(sent.message)
        reader = readers[sent.side.other]
        pieces = [data[i : i + 1] for i in range(len(data))] if kind.is_stream and splits != "whole" else [data]
        events = []
        for piece in pieces:
            reader.receive_data(piece)
            events += reader.events()
        assert list(map(plain, events)) == [plain(sent.message if sent.read is None else sent.read)]


@each_kind
@each_side
def test_whatever_is_no_message_is_refused_with_a_sentence(kind, side):
    connection = kind.connect(side)
    for wrong in (None, 7, "text", b"bytes", object(), object, [], {}):
        with pytest.raises(LocalProtocolError, match=r"\w+ .*\.$"):
            connection.send(wrong)


@each_kind
@each_side
def test_a_stream_that_ends_between_messages_ended_well_and_inside_one_did_not(kind, side):
    if not kind.is_stream:
        return  # a datagram is whole, or was lost
    reads = [data for sender, data, _ in sent_by(kind) if sender is not side]
    for cut, is_clean in ((0, True), (1, False)):
        connection = primed(kind, side)
        connection.receive_data(reads[0][: len(reads[0]) - cut])
        list(connection.events())
        connection.receive_eof()
        if is_clean:
            assert isinstance(connection.next_event(), ConnectionClosed)
        else:
            with pytest.raises(RemoteProtocolError, match=r"\w+ .*\.$"):
                connection.next_event()


def mutated(data, chance):
    """Return the data with some bytes changed, left out, repeated, inserted, or cut off."""
    result = bytearray(data)
    for _ in range(chance.randint(0, 6)):
        place, length = chance.randrange(len(result) + 1), chance.choice((1, 1, 2, 4, 8, 64))
        match chance.randrange(5):
            case 0:
                del result[place : place + length]
            case 1:
                result[place:place] = chance.randbytes(length)
            case 2:
                result[place:place] = result[max(0, place - length) : place]
            case 3:
                result[place : place + length] = bytes([chance.choice(INTERESTING)]) * length
            case 4 if place < len(result):
                result[place] ^= 1 << chance.randrange(8)
    return bytes(result)


@each_kind
@each_side
def test_any_bytes_in_any_split_give_events_or_a_violation(kind, side):
    reads = [data for sender, data, _ in sent_by(kind) if sender is not side]
    seeds = [b"".join(reads)] if kind.is_stream else reads
    for number in range(300):
        chance = random.Random(f"{kind.name} {side.value} {number}")
        data = mutated(chance.choice(seeds), chance)
        cuts = sorted(chance.randrange(len(data) + 1) for _ in range(chance.randint(0, 8))) if kind.is_stream else []
        connection, count = primed(kind, side), 0
        for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
            connection.receive_data(data[start:end])
            while count < MAX_EVENTS:
                try:
                    event = connection.next_event()
                except RemoteProtocolError:
                    if kind.is_stream:
                        break
                    continue
                if event is NEED_DATA or isinstance(event, ConnectionClosed):
                    break
                count += 1
            assert count < MAX_EVENTS, data.hex()
