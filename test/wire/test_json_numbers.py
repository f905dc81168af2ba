# SPDX-License-Identifier: Apache-2.0
"""Numbers in JSON: 320 and 320.0 are equal in every protocol of documents, and true is no number."""

import json
import re

import pytest

from drone_bridge.dronegui.codec import ReceiverConnection
from drone_bridge.kind import Side, kinds, load
from drone_bridge.wire import RemoteProtocolError
from drone_bridge.wire.json_faults import fault_in
from drone_bridge.wire.json_numbers import is_number, whole_number


def is_of_documents(kind):
    sent = next(iter(load(kind.conversation)()))
    return not kind.is_stream and kind.connect(sent.side).send(sent.message).startswith(b"{")


DOCUMENTS = [kind for kind in kinds().values() if is_of_documents(kind)]


def rewritten(value, write):
    """Return a document with each of its numbers as `write` has it."""
    if isinstance(value, dict):
        return {name: rewritten(each, write) for name, each in value.items()}
    if isinstance(value, list):
        return [rewritten(each, write) for each in value]
    return write(value) if is_number(value) else value


@pytest.mark.parametrize("write", [float, lambda value: int(value) if float(value).is_integer() else value])
@pytest.mark.parametrize("kind", DOCUMENTS, ids=lambda kind: kind.name)
def test_every_number_of_a_document_may_be_written_either_way(kind, write):
    for sent in load(kind.conversation)():
        data = kind.connect(sent.side).send(sent.message)
        reader, other_reader = kind.connect(sent.side.other), kind.connect(sent.side.other)
        reader.receive_data(data)
        other_reader.receive_data(json.dumps(rewritten(json.loads(data), write)).encode())
        assert repr(other_reader.next_event()).replace("12345.0", "12345") == repr(reader.next_event())


@pytest.mark.parametrize("kind", DOCUMENTS, ids=lambda kind: kind.name)
def test_true_is_no_number_of_a_document(kind):
    for sent in load(kind.conversation)():
        document = json.loads(kind.connect(sent.side).send(sent.message))
        if document == rewritten(document, lambda value: True) or document.get("type") == "checksum":
            continue  # it has no number, or none that anybody reads
        reader = kind.connect(sent.side.other)
        reader.receive_data(json.dumps(rewritten(document, lambda value: True)).encode())
        with pytest.raises(RemoteProtocolError, match=r"is True.* number"):
            reader.next_event()


def test_a_packet_is_numbered_by_a_float():
    receiver = ReceiverConnection()
    receiver.receive_data(b'{"seq": 7.0}')
    assert repr(receiver.next_event().seq) == "7"
    receiver.receive_data(b'{"seq": 7.5}')  # as the real GUI takes it
    assert receiver.next_event().seq == 7.5


def test_a_whole_number_is_an_integer_and_nothing_else_is_one():
    for value in (0, -3, 2**70, -3.0, 1e300):
        assert type(whole_number(value)) is int
        assert whole_number(value) == value
    for value in (0.5, float("inf"), float("nan"), True, None, "1", [], {}, -1e-300):
        assert whole_number(value) is None


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "-nan", "inf"])
@pytest.mark.parametrize("kind", DOCUMENTS, ids=lambda kind: kind.name)
def test_a_non_finite_number_is_refused_with_its_field(kind, number):
    for sent in load(kind.conversation)():
        if kind.name == "dronegui" and sent.side is Side.VEHICLE:
            continue  # navdata has what a drone does not know as NaN
        document = json.loads(kind.connect(sent.side).send(sent.message))
        first = next(names_of_numbers(document))
        reader = kind.connect(sent.side.other)
        reader.receive_data(json.dumps(rewritten(document, lambda value: "@")).replace('"@"', number).encode())
        with pytest.raises(RemoteProtocolError, match=rf" is not JSON: {re.escape(first)} is {number}, and JSON has "):
            reader.next_event()


def names_of_numbers(document):
    """Return the names of the numbers of a document."""
    for name, value in document.items():
        if isinstance(value, dict):
            yield from names_of_numbers(value)
        elif is_number(value):
            yield name


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        (b"", b"\0", "it ends in NUL"),
        (b"", b"\n\0\0\r\n", "it ends in NUL"),
        (b"\xef\xbb\xbf", b"", "it begins with a byte order mark"),
    ],
)
@pytest.mark.parametrize("kind", DOCUMENTS, ids=lambda kind: kind.name)
def test_text_around_a_document_is_refused(kind, before, after, sentence):
    for sent in load(kind.conversation)():
        reader = kind.connect(sent.side.other)
        reader.receive_data(before + kind.connect(sent.side).send(sent.message) + after)
        with pytest.raises(RemoteProtocolError, match=f"^The (packet|document) is not JSON: {sentence}"):
            reader.next_event()


@pytest.mark.parametrize(
    "text",
    ['{"a": "NaN", "b": }', '{"nan": tru}', r'{"a": "\"x\": NaN", }', '{"a": nano}', '{"a": in.f}', '{"a": "\0"}'],
)
def test_no_other_fault_is_taken_for_a_missing_number(text):
    assert fault_in(text, "Expecting value", 3) == " is not JSON: Expecting value at character 3."
