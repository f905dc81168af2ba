# SPDX-License-Identifier: Apache-2.0
"""Messages of the simulator protocol: recorded bytes, and specified layouts.

Round trips of any message, in any pieces: see conformance/test_messages.py.
"""

import struct

import pytest
from drained import drain
from repository import CAPTURES

from drone_bridge.simulator import codec as sim

FROM_CLIENT = (CAPTURES / "client_to_simulator.bin").read_bytes()
FROM_SERVER = (CAPTURES / "simulator_to_client.bin").read_bytes()
X, V, A, Q, W, CORPOREAL = sim.Attribute
UPRIGHT = (1.0, 0.0, 0.0, 0.0)
RENDER = sim.ExtendedAttribute("render", b"buoy")


def read(connection, pieces):
    events = []
    for piece in pieces:
        connection.receive_data(piece)
        events += drain(connection)
    return events


def one_by_one(data):
    return [bytes([byte]) for byte in data]


# Captures of real programs.


CONVERSATION = [
    (sim.Reassure(), sim.Ok()),
    (sim.GetConfig(), sim.Configured(100.0, 1.0, False, False)),
    (sim.ListEntities(), sim.EntitiesListed((0,))),
    (
        sim.AddEntity(1.0, 0.2, (1.0, 1.0, 1.0), UPRIGHT, (2.0, -0.5, 1.0), UPRIGHT, True, (RENDER,)),
        sim.Added(sim.ItemType.ENTITY, 1),
    ),
    (sim.ListEntities(), sim.EntitiesListed((1, 0))),
    (sim.GetEntity(1, X), sim.EntityGot(X, (2.0, -0.5, 1.0))),
    (sim.GetEntity(0, Q), sim.EntityGot(Q, UPRIGHT)),
    (sim.GetEntity(7, X), sim.Error(0, "No entity with given ID.")),
    (sim.SetEntity(0, V, (0.25, 0.0, 0.0)), sim.Ok()),
    (sim.SetExtended(1, "note", b"hello"), sim.Ok()),
    (sim.GetExtended(1, "note"), sim.ExtendedGot("note", b"hello")),
    (sim.GetExtended(1, "nope"), sim.Error(0, "No extended entity attribute with given key.")),
    (sim.AddCamera(0, UPRIGHT, (0.0, 0.0, 0.0), 1.0), sim.Added(sim.ItemType.CAMERA, 0)),
    (sim.StreamCamera(0, 2, 1), sim.Added(sim.ItemType.CAMERA_STREAM, 0)),
    (sim.AddTrigger(sim.CollisionTrigger(0, 1, 0.5)), sim.Added(sim.ItemType.TRIGGER, 0)),
    (
        sim.AddTrigger(sim.PathTrigger(0, (0.0, 0.0, 0.0), (1.0, 0.0, 0.0), 0.1)),
        sim.Added(sim.ItemType.TRIGGER, 1),
    ),
    (sim.StreamEntity(0, 1, (X, V, Q, W)), sim.Added(sim.ItemType.ENTITY_STREAM, 0)),
    (sim.Run(10), sim.Ok()),
    (sim.Run(0), sim.Ok()),
]


@pytest.mark.parametrize("split", [lambda data: [data], one_by_one])
def test_a_recorded_conversation_is_read_and_written_byte_for_byte(split):
    requests = read(sim.ServerConnection(), split(FROM_CLIENT))
    assert requests == [request for request, _ in CONVERSATION]
    client = sim.ClientConnection()
    assert b"".join(map(client.send, requests)) == FROM_CLIENT

    events = read(client, split(FROM_SERVER))
    answers = [event for event in events if isinstance(event, sim.Answer)]
    assert [(answer.request, answer.response) for answer in answers] == CONVERSATION
    assert len(events) == 80
    kinds = {sim.Answer, sim.EntityData, sim.CameraData, sim.PathStarted, sim.Completed}
    assert {type(event) for event in events} == kinds
    server = sim.ServerConnection()
    assert read(server, [FROM_CLIENT]) == requests
    responses = [event.response if isinstance(event, sim.Answer) else event for event in events]
    assert b"".join(map(server.send, responses)) == FROM_SERVER


# The specification, byte by byte.

ZERO, ONE, TWO, HALF = "0000000000000000", "3ff0000000000000", "4000000000000000", "3fe0000000000000"
THREE = "4008000000000000"
LAYOUTS = [
    (sim.Remove(sim.ItemType.TRIGGER, 258), "00 00000005 03 00000102"),
    (sim.ListEntities(), "01 00000000"),
    (
        sim.AddEntity(2.0, 0.5, (1.0, 2.0, 3.0), UPRIGHT, (1.0, 2.0, 3.0), UPRIGHT, False, (RENDER,)),
        f"02 00000091 {TWO}{HALF}{ONE}{TWO}{THREE}{ONE}{ZERO * 3}{ONE}{TWO}{THREE}{ONE}{ZERO * 3} 00"
        "01 06 72656e646572 00000004 62756f79",
    ),
    (sim.SetEntity(1, W, (1.0, 2.0, 3.0)), f"03 0000001d 00000001 04 {ONE}{TWO}{THREE}"),
    (sim.SetEntity(1, CORPOREAL, True), "03 00000006 00000001 05 01"),
    (sim.SetEntity(1, 77, b"ab"), "03 00000007 00000001 4d 6162"),
    (sim.GetEntity(1, Q), "04 00000005 00000001 03"),
    (sim.ListObjectClasses(), "05 00000000"),
    (sim.ListObjects(b"\1"), "06 00000001 01"),
    (sim.AddObject("wind", b"\1\2"), "07 0000000a 00000004 77696e64 0102"),
    (sim.SetObject(b"\1\2"), "08 00000002 0102"),
    (sim.ListCameras(), "09 00000000"),
    (
        sim.AddCamera(1, UPRIGHT, (1.0, 2.0, 3.0), 0.5, False),
        f"0a 00000045 00000001 {ONE}{ZERO * 3}{ONE}{TWO}{THREE}{HALF} 00",
    ),
    (sim.SetCamera(1, 0, UPRIGHT), f"0b 00000025 00000001 00 {ONE}{ZERO * 3}"),
    (sim.SetCamera(1, 1, (1.0, 2.0, 3.0)), f"0b 0000001d 00000001 01 {ONE}{TWO}{THREE}"),
    (sim.SetCamera(1, 2, 0.5), f"0b 0000000d 00000001 02 {HALF}"),
    (sim.SetCamera(1, 3, True), "0b 00000006 00000001 03 01"),
    (sim.SetCamera(1, 4, b"\7"), "0b 00000006 00000001 04 07"),
    (sim.ViewCamera(b"\1\2"), "0c 00000002 0102"),
    (sim.AddTrigger(sim.CollisionTrigger(1, 2, 0.5)), f"0d 00000011 00 00000001 00000002 {HALF}"),
    (sim.AddTrigger(sim.SweepCollisionTrigger(1, 2)), "0d 00000009 01 00000001 00000002"),
    (sim.AddTrigger(sim.BytecodeTrigger(b"abc")), "0d 00000008 02 00000003 616263"),
    (sim.AddTrigger(sim.UnknownTrigger(4, b"abc")), "0d 00000004 04 616263"),
    (
        sim.AddTrigger(sim.PathTrigger(1, (1.0, 2.0, 3.0), (3.0, 2.0, 1.0), 0.5)),
        f"0d 0000003d 03 00000001 {ONE}{TWO}{THREE}{THREE}{TWO}{ONE}{HALF}",
    ),
    (sim.StreamEntity(1, 2, (X, W)), "0e 0000000b 00000001 00000002 02 00 04"),
    (sim.StreamCamera(1, 2, 3), "0f 0000000c 00000001 00000002 00000003"),
    (sim.BroadcastCamera(1), "10 00000004 00000001"),
    (sim.GetConfig(), "11 00000000"),
    (sim.GetObject(b"\1"), "12 00000001 01"),
    (sim.SetExtended(1, "é", b"\0"), "13 0000000c 00000001 02 c3a9 00000001 00"),
    (sim.GetExtended(1, "k"), "14 00000006 00000001 01 6b"),
    (sim.StreamExtended(1, 2, ("k", "")), "15 0000000c 00000001 00000002 02 01 6b 00"),
    (sim.Spy(), "16 00000000"),
    (sim.Reassure(), "21 00000000"),
    (sim.Run(1 << 32), "fe 00000008 0000000100000000"),
    (sim.Pause(), "ff 00000000"),
    (sim.Ok(), "00 00000000"),
    (sim.Error(2, "no"), "01 0000000a 00000002 00000002 6e6f"),
    (sim.Added(sim.ItemType.SPY, 1), "02 00000005 08 00000001"),
    (sim.EntitiesListed((1, 0)), "03 0000000c 00000002 00000001 00000000"),
    (sim.EntityGot(CORPOREAL, False), "04 00000002 05 00"),
    (sim.ObjectsListed(b"\1\2"), "05 00000002 0102"),
    (sim.ObjectGot(b"\1\2"), "06 00000002 0102"),
    (sim.CameraGot(b"\1\2"), "07 00000002 0102"),
    (sim.Configured(2.0, 0.5, True, False), f"08 00000012 {TWO}{HALF} 01 00"),
    (sim.ExtendedGot("k", b"\0\1"), "09 00000008 01 6b 00000002 0001"),
    (sim.Triggered(1), "80 00000004 00000001"),
    (
        sim.EntityData(1, (Q, CORPOREAL, X), (UPRIGHT, True, (1.0, 2.0, 3.0))),
        f"81 00000041 00000001 03 03 {ONE}{ZERO * 3} 05 01 00 {ONE}{TWO}{THREE}",
    ),
    (sim.EntityData(1, (), ()), "81 00000005 00000001 00"),
    (sim.CameraData(1, 0.5, -1.0, 0.25, 2.0), "82 00000014 00000001 3f000000 bf800000 3e800000 40000000"),
    (sim.Untriggered(1), "83 00000004 00000001"),
    (sim.PathStarted(1), "84 00000004 00000001"),
    (sim.PathFailed(1), "85 00000004 00000001"),
    (sim.PathEnded(1), "86 00000004 00000001"),
    (sim.ExtendedData(1, (RENDER,)), "87 00000014 00000001 01 06 72656e646572 00000004 62756f79"),
    (sim.Spied(True, sim.ItemType.ENTITY, 7), "88 00000003 01 00 07"),
    (sim.Spied(False, sim.ItemType.CAMERA, 258, id_bytes=4), "88 00000006 00 02 00000102"),
    (sim.Completed(), "ff 00000000"),
]


@pytest.mark.parametrize(("message", "layout"), LAYOUTS, ids=lambda value: type(value).__name__)
def test_a_message_is_laid_out_as_documented(message, layout):
    data = bytes.fromhex(layout)
    assert sim.frame(message) == data
    assert type(message).decode(data[5:]) == message


def test_every_specified_type_exists():
    of_requests = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 33, 254, 255}
    of_responses = {*range(10), *range(128, 137), 255}
    assert set(sim.REQUESTS) == of_requests
    assert set(sim.RESPONSES) == of_responses
    assert {type(message) for message, _ in LAYOUTS} == {*sim.REQUESTS.values(), *sim.RESPONSES.values()}


def test_turbulence_is_sixteen_numbers_as_documented():
    turbulence = sim.Turbulence((1, 2, 3), (4, 5, 6), 7, 8, (9, 10, 11), (12, 13, 14), 15, 16)
    assert turbulence.encode() == struct.pack(">16d", *range(1, 17))
    assert sim.Turbulence.decode(turbulence.encode()) == turbulence
    added = sim.frame(sim.AddObject(turbulence.CLASS, turbulence.encode()))
    assert added[5:] == struct.pack(">I10s", 10, b"turbulence") + turbulence.encode()


def test_any_non_zero_bool_is_true():
    server = sim.ServerConnection()
    assert read(server, [bytes.fromhex("03 00000006 00000001 05 80")]) == [sim.SetEntity(1, CORPOREAL, True)]


def test_invalid_utf_8_survives():
    data = bytes.fromhex("14 00000007 00000001 02 ff00")
    (request,) = read(sim.ServerConnection(), [data])
    assert sim.frame(request) == data
