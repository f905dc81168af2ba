# SPDX-License-Identifier: Apache-2.0
"""Tests of the topic table of each protocol: messages survive a hop through the legacy protocol."""

import re
from array import array

import pytest
from builtin_interfaces.msg import Time

from drone_bridge.kind import Side, kinds, load
from drone_bridge.wire.counters import Counter

STAMP = Time(sec=3, nanosec=500_000_000)
KINDS = [kind for kind in kinds().values() if kind.topics]
each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
each_served_kind = pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.server], ids=lambda kind: kind.name)


def rows_of(table, translation, wire):
    """Return the rows of a wire message by topic, each with the source of its message."""
    whole = {row.name: (row, wire) for row in table.rows if isinstance(wire, row.of)}
    return whole | {topic: (table.row(topic), part) for topic, part in table.parts(translation, wire)}


def messages_of(table, translation, wire):
    """Return the messages of a wire message on reversible topics, by topic."""
    made = {}
    for topic, (row, part) in rows_of(table, translation, wire).items():
        message = row.to_ros(translation, part, STAMP) if row.to_ros else None
        if message is not None:
            made[topic] = message
    return made


def assert_alike(one, other, where):
    """Compare messages by field. NaN equals NaN, and a quaternion its negative."""
    assert type(one) is type(other), where
    if hasattr(one, "get_fields_and_field_types"):
        names = one.get_fields_and_field_types()
        if set(names) == {"x", "y", "z", "w"}:
            products = [getattr(one, name) * getattr(other, name) for name in names]
            assert abs(sum(products)) == pytest.approx(1.0, abs=1e-6), where
            return
        for name in names:
            assert_alike(getattr(one, name), getattr(other, name), f"{where}.{name}")
    elif isinstance(one, float):
        assert one == pytest.approx(other, rel=1e-6, abs=1e-6, nan_ok=True), where
    elif isinstance(one, array) or hasattr(one, "tolist"):
        assert_alike(one.tolist(), other.tolist(), where)
    elif isinstance(one, list | tuple):
        assert len(one) == len(other), where
        for number, pair in enumerate(zip(one, other, strict=True)):
            assert_alike(*pair, f"{where}[{number}]")
    else:
        assert one == other, where


def told(kind):
    """Return the vehicle's messages of the sample conversation, as read by the bridge."""
    operator, vehicle = kind.connect(Side.OPERATOR), kind.connect(Side.VEHICLE)
    for sent in load(kind.conversation)():
        connections = (vehicle, operator) if sent.side is Side.VEHICLE else (operator, vehicle)
        connections[1].receive_data(connections[0].send(sent.message))
        events = list(connections[1].events())
        if sent.side is Side.VEHICLE:
            yield from events


@each_served_kind
def test_published_messages_survive_a_legacy_hop(kind):
    table = load(kind.topics)
    hops = 0
    # A prepared message is changed by the next one, and a vehicle's first messages determine how later ones are
    # decoded. Bridge, server and the bridge behind it therefore each have one translation for all messages.
    bridge, server, bridge_behind = (table.make_translation() for _ in range(3))
    for wire in (*told(kind), *table.samples()):
        assemble = table.assembled.get(type(wire))
        if assemble is None:
            continue
        rows = {topic: row for topic, (row, _) in rows_of(table, bridge, wire).items() if row.from_ros}
        before = messages_of(table, bridge, wire)
        if not before:  # such as half of a pose
            continue

        def value(topic, before=before, rows=rows):
            return rows[topic].from_ros(server, before[topic]) if topic in rows and topic in before else None

        after = messages_of(table, bridge_behind, assemble(server, value, STAMP))
        hops += 1
        for name in before:
            if name in rows:
                assert_alike(before[name], after.get(name), f"{type(wire).__name__} on {name}")
    assert hops >= len(table.assembled) > 0


@each_kind
def test_each_row_has_a_meaning_and_a_destination(kind):
    table = load(kind.topics)
    names = [(row.name, row.of) for row in table.rows]
    assert len(set(names)) == len(names)
    for row in table.rows:
        assert row.to_ros or row.from_ros, row.name
        assert row.meaning or row.name.startswith("/"), row.name


@each_kind
def test_counters_have_snake_case_names(kind):
    for part in filter(None, (kind.bridge, kind.server)):
        assert part.make
        names = (*Counter.declared, *(row.count for row in load(kind.topics).rows if row.count))
        assert [name for name in names if not re.fullmatch("[a-z][a-z0-9_]*", name)] == [], part
