# SPDX-License-Identifier: Apache-2.0
"""Questions to the codec of each protocol: each message there and back, the end of a stream.

Any bytes in any split: see test_fuzz.py.
"""

from dataclasses import fields, is_dataclass

import pytest

from drone_bridge.kind import Side, kinds, load
from drone_bridge.wire import ConnectionClosed, LocalProtocolError, RemoteProtocolError

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
