# SPDX-License-Identifier: Apache-2.0
"""The emulated simulator beside the real one: what that answered to a client, and how it speaks."""

import socket
import struct
import sys
from pathlib import Path

import pytest
from offline_simulator import entity
from processes import when_listening
from simulator_client import SimulatorClient

from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.device.requests import Quirks
from drone_bridge.simulator.emulator.server import Connection

CAPTURES = Path(__file__).parent / "captures"
COMMAND = (sys.executable, "-m", "drone_bridge.simulator.emulator", "--port", 0)
RUN, COMPLETED, ENTITY_DATA, CAMERA_DATA = 254, 255, 129, 130
VEHICLE = 0


@pytest.fixture
def emulate(start_child):
    return lambda *arguments: when_listening(start_child(*COMMAND, *arguments))


@pytest.fixture
def connect(closing):
    return lambda emulator, **options: closing(SimulatorClient(emulator.port, **options))


def messages(data):
    """Return the type and body of each message that has come whole."""
    found, position = [], 0
    while position + 5 <= len(data):
        kind, length = struct.unpack_from(">BI", data, position)
        end = position + 5 + length
        if end > len(data):
            break
        found.append((kind, data[position + 5 : end]))
        position = end
    return found


RECORDED = messages((CAPTURES / "simulator_to_client.bin").read_bytes())


def replay(client):
    """Send what the recorded client sent, as it did; return as many messages as were recorded."""
    requests = messages((CAPTURES / "client_to_simulator.bin").read_bytes())
    assert [kind for kind, _ in requests[-2:]] == [RUN, RUN]
    received = b""

    def send(request):
        kind, body = request
        client.send_bytes(struct.pack(">BI", kind, len(body)) + body)

    def read_until(is_enough):
        nonlocal received
        while not is_enough(messages(received)):
            data = client.socket.recv(65536)
            assert data, "closed"
            received += data

    for number, request in enumerate(requests[:-1], 1):
        send(request)
        read_until(lambda found, number=number: len(in_band(found)) == number)
    read_until(lambda found: COMPLETED in [kind for kind, _ in found])
    send(requests[-1])
    read_until(lambda found: len(found) >= len(RECORDED))
    return messages(received)[: len(RECORDED)]


def in_band(found):
    return [(kind, body) for kind, body in found if kind < 128]


def out_of_band(found):
    return [(kind, len(body)) for kind, body in found if kind >= 128]


@pytest.mark.parametrize("quirks", Quirks)
def test_a_recorded_client_gets_the_recorded_answers(emulate, connect, quirks):
    found = replay(connect(emulate("--quirks", quirks.value)))
    assert in_band(found) == in_band(RECORDED)


def test_a_recorded_client_gets_the_recorded_streams_and_triggers_in_the_recorded_order(emulate, connect):
    found = replay(connect(emulate("--quirks", "real")))
    assert out_of_band(found) == out_of_band(RECORDED)


def test_the_recorded_vehicle_swims_much_the_same(emulate, connect):
    """Another drag, and no acceleration counted one and a half times: within two centimetres all the same."""
    found = replay(connect(emulate("--quirks", "real")))

    def track(some):
        return [struct.unpack_from(">3d", body, 6) for kind, body in some if kind == ENTITY_DATA]

    def depths(some):
        return [struct.unpack(">I4f", body)[4] for kind, body in some if kind == CAMERA_DATA]

    for ours, theirs in zip(track(found), track(RECORDED), strict=True):
        assert ours == pytest.approx(theirs, abs=0.02)
    assert depths(found) == pytest.approx(depths(RECORDED), abs=0.02)


# As the real server.


def test_what_the_real_server_does_not_know_ends_the_connection(emulate, connect):
    emulator = emulate("--quirks", "real")
    for request in (
        sim.Spy(),
        sim.ListObjects(),
        sim.ListCameras(),
        sim.ViewCamera(0, 0),
        sim.StreamExtended(0, 1, ()),
    ):
        client = connect(emulator)
        client.settle()
        client.send_bytes(client.prepare(request))
        client.wait_until_closed()
        emulator.wait_for_line(f"is gone: it has sent {type(request).__name__}, which the CUAUV server does not know")


def test_streams_and_triggers_stay_whatever_remove_is_answered_with(emulate, connect):
    client = connect(emulate("--quirks", "real"))
    stream = client.add(sim.StreamEntity(VEHICLE, 1, (0,)))
    for kind in (
        sim.ItemType.ENTITY_STREAM,
        sim.ItemType.TRIGGER,
        sim.ItemType.EXTENDED_STREAM,
        sim.ItemType.CAMERA_BROADCAST,
        9,
    ):
        client.get(sim.Remove(kind, stream))
    client.get(sim.Run(1))
    client.wait_for(sim.EntityData)


def test_what_turbulence_is_called_when_it_is_added_is_what_removes_gravity(emulate, connect):
    client = connect(emulate("--quirks", "real"))
    zero = (0.0, 0.0, 0.0)
    force = sim.Turbulence((30.0, 0.0, 0.0), (30.0, 0.0, 0.0), 0.0, 0.0, zero, zero, 0.0, 0.0)
    added = [client.add(sim.AddObject(sim.Turbulence.CLASS, force.encode())) for _ in range(2)]
    assert added == [0, 1]
    client.get(sim.Remove(sim.ItemType.OBJECT, added[0]))
    client.add(sim.StreamEntity(VEHICLE, 1, (1,)))
    client.get(sim.Run(1))
    [(north, _, down)] = client.wait_for(sim.EntityData).values
    assert north > 0.019  # two of them for a hundredth of a second on 30 kg
    assert down < -0.09  # only its buoyancy is left


def test_a_body_of_more_than_1024_bytes_ends_the_connection(emulate, connect):
    emulator = emulate("--quirks", "real")
    client = connect(emulator, max_request_bytes=2048)
    client.get(sim.SetExtended(VEHICLE, "k", bytes(1024 - 10)))
    client.send_bytes(client.prepare(sim.SetExtended(VEHICLE, "k", bytes(1025 - 10))))
    client.wait_until_closed()
    emulator.wait_for_line("sent SetExtended with 1025 bytes; 1024 are allowed")


def test_a_request_in_pieces_ends_the_connection(emulate, connect):
    emulator = emulate("--quirks", "real")
    client = connect(emulator)
    for request in (sim.GetConfig(), sim.ListEntities()):
        client.get(request)
    client.send_bytes(client.prepare(sim.GetConfig()) + sim.frame(sim.SetExtended(VEHICLE, "a", b"b"))[:8])
    assert isinstance(client.next_event().response, sim.Configured)  # what is whole is answered first
    client.wait_until_closed()
    emulator.wait_for_line("is gone: it has sent a request in pieces")


def test_requests_in_one_packet_are_no_pieces(emulate, connect):
    client = connect(emulate("--quirks", "real"))
    client.send_bytes(b"".join(map(client.prepare, (sim.GetConfig(), sim.ListEntities(), sim.GetConfig()))))
    for _ in range(3):
        client.next_event()


def test_completed_overtakes_the_last_step_and_the_first_step_overtakes_ok(emulate, connect):
    client = connect(emulate("--quirks", "real"))
    client.add(entity())
    client.add(sim.AddTrigger(sim.PathTrigger(VEHICLE, (9, 9, 9), (8, 8, 8), 0.1)))
    client.add(sim.StreamEntity(VEHICLE, 1, (0,)))
    client.get(sim.Run(3))
    assert len(client.events) == 1
    while len(client.events) < 4:
        client.next_event()
    assert [type(event) for event in client.events] == [sim.EntityData, sim.EntityData, sim.Completed, sim.EntityData]


class Transport:
    """What a connection writes to."""

    def __init__(self, sockets):
        self.transport = self
        self.written = []
        self._socket = sockets

    def get_extra_info(self, _):
        return self._socket

    def get_write_buffer_size(self):
        return 0

    def is_closing(self):
        return False

    def write(self, data):
        self.written.append(data)


@pytest.mark.parametrize(
    ("quirks", "written"),
    [
        (Quirks.NONE, [b"\x02\0\0\0\5\0\0\0\0\7\xff\0\0\0\0"]),
        (Quirks.REAL, [b"\x02\0\0\0\5", b"\0\0\0\0\7", b"\xff\0\0\0\0"]),
    ],
)
def test_the_real_server_sends_header_and_body_by_themselves(quirks, written):
    with socket.socket() as idle:
        writer = Transport(idle)
        connection = Connection("peer", writer, quirks, None)
        connection.post(sim.Added(0, 7))
        connection.post(sim.Completed())
        assert writer.written == []
        connection.flush()
        assert writer.written == written
        assert bool(idle.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)) == (quirks is Quirks.NONE)
