# SPDX-License-Identifier: Apache-2.0
"""Connections of the simulator protocol: order of answers, invalid messages, limits, the end."""

import struct

import pytest

from drone_bridge.simulator import codec as sim
from drone_bridge.wire.events import LocalProtocolError, RemoteProtocolError

DATA = sim.EntityData(3, (sim.Attribute.POSITION,), ((1.0, 2.0, 3.0),))


def client_after(*requests, **limits):
    connection = sim.ClientConnection(**limits)
    for request in requests:
        connection.send(request)
    return connection


def header(kind, length):
    return struct.pack(">BI", kind, length)


def test_ok_is_accepted_as_an_answer_to_spy():
    for answer in (sim.Ok(), sim.Added(sim.ItemType.SPY, 3)):
        client = client_after(sim.Spy())
        client.receive_data(sim.frame(answer))
        assert client.next_event() == sim.Answer(sim.Spy(), answer)


@pytest.mark.parametrize(
    ("request_", "response"),
    [
        (sim.Reassure(), sim.EntitiesListed(())),
        (sim.ListEntities(), sim.Ok()),
        (sim.AddEntity(1.0, 1.0, (1.0,) * 3, (1.0,) * 4, (0.0,) * 3, (1.0,) * 4), sim.Added(sim.ItemType.CAMERA, 1)),
        (sim.AddTrigger(sim.SweepCollisionTrigger(0, 1)), sim.Added(sim.ItemType.ENTITY, 1)),
        (sim.GetEntity(0, sim.Attribute.POSITION), sim.EntityGot(sim.Attribute.VELOCITY, (0.0,) * 3)),
        (sim.GetExtended(0, "a"), sim.ExtendedGot("b", b"")),
        (sim.GetObject(), sim.ObjectsListed()),
        (sim.Spy(), sim.Added(sim.ItemType.ENTITY, 1)),
    ],
    ids=repr,
)
def test_an_answer_to_another_request_is_refused(request_, response):
    client = client_after(request_)
    client.receive_data(sim.frame(response))
    for _ in range(2):
        with pytest.raises(RemoteProtocolError, match=f"answered {type(request_).__name__}"):
            client.next_event()


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (header(10, 0), "type 10"),
        (header(137, 0), "type 137"),
        (header(0, 1), "Ok with 1 bytes instead of 0"),
        (header(128, 3), "Triggered with 3 bytes instead of 4"),
        (header(129, (16 << 20) + 1), "16777217 bytes"),
        (header(3, 8) + struct.pack(">II", 2, 7), "ids of 8 bytes should follow at byte 4"),
        (header(3, 8) + struct.pack(">II", 0, 7), "should end at byte 4, and 4 more follow"),
        (header(3, 4) + b"\xff" * 4, "ids of 17179869180 bytes"),
        (header(129, 4) + bytes(4), "1 bytes should follow at byte 4"),
        (header(129, 6) + b"\0\0\0\1\1\6", "attribute 6"),
        (header(129, 14) + b"\0\0\0\1\1\0" + bytes(8), "24 bytes should follow at byte 6"),
        (header(136, 4) + bytes(4), "3 or 6"),
        (header(1, 8) + struct.pack(">II", 0, 1), "message of 1 bytes should follow"),
    ],
)
def test_a_client_rejects_invalid_messages(data, error):
    client = client_after(sim.ListEntities())
    client.receive_data(data)
    with pytest.raises(RemoteProtocolError, match=error):
        client.next_event()


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (header(23, 0), "type 23"),
        (header(1, 1), "ListEntities with 1 bytes instead of 0"),
        (header(4, 6), "GetEntity with 6 bytes instead of 5"),  # the specified `data`, which no program sends
        (header(13, 0), "1 bytes should follow at byte 0"),
        (header(3, 13) + struct.pack(">IBd", 0, 0, 1.0), "24 bytes should follow at byte 5"),
        (header(3, 7) + b"\0\0\0\0\5\1\1", "should end at byte 6"),
        (header(14, 9) + struct.pack(">IIB", 0, 1, 9), "attributes of 9 bytes"),
        (header(21, 9) + struct.pack(">IIB", 0, 1, 9), "1 bytes should follow at byte 9"),
        (header(20, 5) + b"\0\0\0\0\1", "key of 1 bytes"),
        (header(19, 9) + b"\0\0\0\0\0\xff\xff\xff\xff", "data of 4294967295 bytes"),
        (header(7, (16 << 20) + 1), "16777216 are allowed"),
    ],
)
def test_a_server_rejects_invalid_messages(data, error):
    server = sim.ServerConnection()
    server.receive_data(data)
    for _ in range(2):
        with pytest.raises(RemoteProtocolError, match=error):
            server.next_event()


def test_a_client_refuses_requests_too_long_for_a_real_server():
    client = sim.ClientConnection()
    client.send(sim.AddObject("turbulence", bytes(1010)))
    with pytest.raises(LocalProtocolError, match="AddObject has 1025 bytes"):
        client.send(sim.AddObject("turbulence", bytes(1011)))
    assert client.outstanding == 1
    assert len(sim.ClientConnection(max_request_bytes=2000).send(sim.AddObject("turbulence", bytes(1011)))) == 1030


def test_outstanding_requests_are_limited():
    client = client_after(sim.Reassure(), sim.Reassure(), max_outstanding=2)
    with pytest.raises(LocalProtocolError, match="2 requests"):
        client.send(sim.Reassure())
    client.receive_data(sim.frame(sim.Ok()))
    client.next_event()
    client.send(sim.Reassure())
    assert client.outstanding == 2


def test_a_server_sends_only_answers_to_pending_requests():
    server = sim.ServerConnection()
    with pytest.raises(LocalProtocolError, match="no request is pending"):
        server.send(sim.Ok())
    assert server.send(sim.Completed()) == header(255, 0)
    server.receive_data(sim.frame(sim.ListEntities()))
    assert server.next_event() == sim.ListEntities()
    with pytest.raises(LocalProtocolError, match="not an answer to ListEntities"):
        server.send(sim.Ok())
    server.send(sim.EntitiesListed((0,)))
    assert server.outstanding == 0


def test_the_end_after_a_message_comes_after_it():
    client = client_after(sim.Spy())
    client.receive_data(sim.frame(DATA))
    client.receive_eof()
    assert client.next_event() == DATA
    assert client.next_event() == sim.ConnectionClosed()
    assert client.outstanding == 1
