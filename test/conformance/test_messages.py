# SPDX-License-Identifier: Apache-2.0
"""Tests of the codec of each protocol: round trips of messages with any values, and the end of a stream.

Any bytes in any split: see test_fuzz.py.
"""

import contextlib
import functools
import math
import warnings
from array import array
from dataclasses import fields, is_dataclass, replace
from decimal import Decimal

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from drone_bridge.kind import Side, kinds, load
from drone_bridge.wire import ConnectionClosed, LocalProtocolError, RemoteProtocolError
from drone_bridge.wire.outgoing import encoded

each_kind = pytest.mark.parametrize("kind", kinds().values(), ids=lambda kind: kind.name)
each_side = pytest.mark.parametrize("side", Side, ids=lambda side: side.value)


def conversation_of(kind):
    """Return the sample conversation while tests are collected. A kind that can't make it is skipped by name."""
    try:
        return load(kind.conversation)()
    except Exception as error:  # a class of another package may raise any exception
        warnings.warn(f"The messages of {kind.name} are not tested: {type(error).__name__}: {error}", stacklevel=2)
        return ()


@functools.cache
def sample(name):
    """Return the sample conversation of a kind."""
    return load(kinds()[name].conversation)()


def sent_by(kind):
    """Return the sample conversation as (sender, bytes, event at the other end), in order."""
    connections = {side: kind.connect(side) for side in Side}
    for sent in sample(kind.name):
        data = connections[sent.side].send(sent.message)
        yield sent.side, data, sent.message if sent.read is None else sent.read
        other = connections[sent.side.other]
        other.receive_data(data)
        list(other.events())


def primed(kind, reader):
    """Return a connection that has sent all that it may before reading."""
    connection = kind.connect(reader)
    for sent in sample(kind.name):
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
def test_each_message_is_read_as_sent(kind, splits):
    readers = {side: kind.connect(side) for side in Side}
    for sent in sample(kind.name):
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
def test_a_value_that_is_no_message_is_refused_with_a_sentence(kind, side):
    connection = kind.connect(side)
    for wrong in (None, 7, "text", b"bytes", object(), object, [], {}):
        with pytest.raises(LocalProtocolError, match=r"\w+ .*\.$"):
            connection.send(wrong)


@each_kind
@each_side
def test_the_end_of_a_stream_is_regular_only_between_messages(kind, side):
    if not kind.is_stream:
        return  # a datagram is whole, or was lost
    reads = [data for sender, data, _ in sent_by(kind) if sender is not side]
    for cut, is_clean in ((0, True), *([(1, False)] if len(reads[0]) > 1 else [])):
        connection = primed(kind, side)
        connection.receive_data(reads[0][: len(reads[0]) - cut])
        list(connection.events())
        connection.receive_eof()
        if is_clean:
            assert isinstance(connection.next_event(), ConnectionClosed)
        else:
            with pytest.raises(RemoteProtocolError, match=r"\w+ .*\.$"):
                connection.next_event()


# Messages with other values than in the sample conversation, and with wrong types.

EDGES = [edge + step for bits in (7, 8, 15, 16, 31, 32, 63, 64) for edge in (2**bits, -(2**bits)) for step in (-1, 0)]
INTS = st.integers(0, 5) | st.sampled_from([*EDGES, -1, 10**400])
FLOATS = st.floats() | st.floats(-1, 1) | st.sampled_from([1e39, 3.5e38, 0.1, 10**400, -0.0, 1])
SURROGATES_OF_A_LETTER = b"\xc3\xa9".decode("ascii", "surrogateescape")
STRINGS = st.text(max_size=5) | st.sampled_from([SURROGATES_OF_A_LETTER, "\ud800", "x" * 256, "x" * 65536, "a\nb"])
BYTES = st.binary(max_size=9) | st.sampled_from([bytes(70_000), bytearray(b"ab"), memoryview(b"abc")])
WRONG = [None, "7", b"7", 1.5, (), (1,), [[]], {}, {1: 2}, Decimal(2)]
WRONG += [object(), object, math.nan, 2**70, "\ud800", True]
OF_TYPE = {bool: st.booleans(), int: INTS, float: FLOATS, str: STRINGS, bytes: BYTES}
#: Longest tuple of which each item is a part; of a longer one, such as a scan, the first, second and last item are.
WHOLE_TUPLE = 4


def leaves(value, path=()):
    """Yield the path to each part of a message: names of fields, and indices in tuples."""
    yield path, value
    if is_dataclass(value):
        for each in fields(value):
            yield from leaves(getattr(value, each.name), (*path, each.name))
    elif isinstance(value, tuple):
        is_whole = len(value) <= WHOLE_TUPLE or hasattr(value, "_make")
        for place in range(len(value)) if is_whole else (0, 1, len(value) - 1):
            yield from leaves(value[place], (*path, place))


def with_part(value, path, part):
    """Return a message with another part at a path."""
    if not path:
        return part
    step, *rest = path
    if isinstance(step, str):
        return replace(value, **{step: with_part(getattr(value, step), rest, part)})
    items = [*value[:step], with_part(value[step], rest, part), *value[step + 1 :]]
    return value._make(items) if hasattr(value, "_make") else tuple(items)


def until(kind, number):
    """Return the connections of sender and reader in their state before a message of the sample conversation."""
    connections = {side: kind.connect(side) for side in Side}
    *before, now = sample(kind.name)[: number + 1]
    for sent in before:
        connections[sent.side.other].receive_data(connections[sent.side].send(sent.message))
        list(connections[sent.side.other].events())
    return connections[now.side], connections[now.side.other]


def is_same(sent, read):
    """Return whether they are equal within the wire's precision, and across equivalent types."""
    if is_dataclass(sent) and type(sent) is type(read):
        return all(is_same(getattr(sent, each.name), getattr(read, each.name)) for each in fields(sent) if each.compare)
    if isinstance(sent, tuple | list) and isinstance(read, tuple | list):
        return len(sent) == len(read) and all(map(is_same, sent, read))
    if isinstance(read, float) and not isinstance(sent, str | bytes):
        return sent == read or (math.isnan(sent) and math.isnan(read)) or array("f", [sent])[0] == read
    return bool(sent == (bytes(read) if hasattr(read, "tobytes") else read))


def assert_read(message, events):
    """Assert that a message was read, regardless of its sequence number and request."""
    read = [part for event in events for _, part in leaves(event) if type(part) is type(message)]
    assert any(is_same(message, part) for part in read), f"sent {message!r}, read {events!r}"


each_message = pytest.mark.parametrize(
    ("kind", "number"),
    [
        pytest.param(kind, number, id=f"{kind.name} {number} {type(sent.message).__name__}")
        for kind in kinds().values()
        for number, sent in enumerate(conversation_of(kind))
    ],
)


@each_message
@settings(suppress_health_check=list(HealthCheck), phases=[Phase.generate])
@given(data=st.data())
def test_messages_with_any_values_are_read_as_sent(kind, number, data):
    sender, reader = until(kind, number)
    message = sample(kind.name)[number].message
    carried = [(path, part) for path, part in leaves(message) if path and part is not None]
    for path, part in data.draw(st.lists(st.sampled_from(carried), max_size=3)) if carried else ():
        other = data.draw(OF_TYPE.get(type(part), st.nothing()) | st.sampled_from(WRONG))
        with contextlib.suppress(AttributeError, TypeError, IndexError):  # its container was removed
            message = with_part(message, path, other)
    try:
        sent = sender.send(message)
    except LocalProtocolError:
        return
    reader.receive_data(sent)
    assert_read(message, list(reader.events()))


def computed_numbers():
    """Return each floating-point number of each command, as kind, index of the message, and path."""
    commands = [
        (kind, number, sent.message)
        for kind in kinds().values()
        for number, sent in enumerate(conversation_of(kind))
        if sent.side is Side.OPERATOR
    ]
    return [
        pytest.param(kind, number, path, id=f"{kind.name} {number} {type(message).__name__} {path}")
        for kind, number, message in commands
        for path, part in leaves(message)
        if type(part) is float
    ]


@pytest.mark.parametrize(("kind", "number", "path"), computed_numbers())
def test_an_out_of_range_number_of_a_command_is_clamped(kind, number, path):
    """A computed value may exceed the range by a rounding error, which must not end the link."""
    message = sample(kind.name)[number].message
    for computed in (math.nextafter(1.0, 2.0), -math.nextafter(1.0, 2.0), 1e300, -1e300):
        sender, reader = until(kind, number)
        reader.receive_data(encoded(sender.send, with_part(message, path, computed), None, pytest.fail))
        assert list(reader.events())


@each_message
def test_parts_of_the_wrong_type_are_refused_with_a_sentence(kind, number):
    message = sample(kind.name)[number].message
    sender, _ = until(kind, number)
    refusals = []
    for path, _ in leaves(message):
        for wrong in WRONG:
            try:
                sender.send(with_part(message, path, wrong))
                sender, _ = until(kind, number)
            except LocalProtocolError as error:
                refusals.append(str(error))
    assert refusals
    assert [each for each in refusals if not each.endswith(".")] == []
