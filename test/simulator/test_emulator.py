# SPDX-License-Identifier: Apache-2.0
"""Process tests of the emulated simulator: its output, exit status and messages."""

import struct
import sys

import pytest
from processes import when_listening
from repository import CAPTURES
from simulator_client import SimulatorClient

from drone_bridge.simulator import codec as sim

COMMAND = (sys.executable, "-m", "drone_bridge.simulator.emulator", "--port", 0)
X, V, A, Q, W, CORPOREAL = sim.Attribute
VEHICLE = 0
RUN, COMPLETED, ENTITY_DATA, CAMERA_DATA = 254, 255, 129, 130


@pytest.fixture
def emulate(start_child):
    return lambda *arguments: when_listening(start_child(*COMMAND, *arguments))


@pytest.fixture
def connect(closing):
    return lambda emulator, **options: closing(SimulatorClient(emulator.port, **options))


def test_run_notifies_all_clients_after_its_steps_and_a_pause_is_silent(emulate, connect):
    emulator = emulate()
    alice, bob = connect(emulator), connect(emulator)
    bob.settle()
    stream = alice.add(sim.StreamEntity(VEHICLE, 1, (X,)))
    for steps in (7, 1):
        alice.get(sim.Run(steps))
        alice.collect_until(sim.Completed)
        assert [type(event) for event in alice.events] == steps * [sim.EntityData] + [sim.Completed]
        alice.events.clear()
        bob.wait_for(sim.Completed)
    assert alice.code(sim.Pause()) == 0
    alice.get(sim.Remove(sim.ItemType.ENTITY_STREAM, stream))
    alice.get(sim.Run(10**15))
    assert bob.code(sim.Run(1)) == 0
    bob.get(sim.Pause())
    for client in (alice, bob):
        client.settle()
        assert client.events == []


# Misbehaving and disconnecting clients.


def test_a_non_real_time_simulation_waits_for_a_slow_client(emulate, connect):
    client = connect(emulate("--non-real-time"), receive_buffer=4096)
    for _ in range(20):
        client.add(sim.StreamEntity(VEHICLE, 1, tuple(sim.Attribute)))
    client.get(sim.Run(2000))  # 7 MB
    client.collect_until(sim.Completed)
    assert len(client.take(sim.EntityData)) == 40_000


# Program.


def test_the_end_notifies_each_client(emulate, connect):
    emulator = emulate("--running")
    clients = [connect(emulator) for _ in range(3)]
    clients[0].add(sim.StreamEntity(VEHICLE, 1, tuple(sim.Attribute)))
    for client in clients:
        client.settle()
    connect(emulator).settle()  # and neither reads nor closes
    emulator.send()
    for client in clients:
        client.wait_for(sim.Completed)
        client.wait_until_closed()
    assert emulator.wait() == 0
    emulator.wait_for_line(r"^ended: \d+ steps, .* vehicle at ")
    assert "Traceback" not in emulator.output


# Behaviour of the real server.


def messages(data):
    """Return the type and body of each complete message."""
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
    """Replay the recorded client. Return as many messages as were recorded."""
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


def test_a_recorded_client_receives_the_recorded_messages_in_order(emulate, connect):
    """Another drag, and no acceleration counted one and a half times: within two centimetres all the same."""
    assert in_band(replay(connect(emulate()))) == in_band(RECORDED)
    found = replay(connect(emulate("--quirks", "real")))
    assert in_band(found) == in_band(RECORDED)
    assert out_of_band(found) == out_of_band(RECORDED)

    def track(some):
        return [struct.unpack_from(">3d", body, 6) for kind, body in some if kind == ENTITY_DATA]

    def depths(some):
        return [struct.unpack(">I4f", body)[4] for kind, body in some if kind == CAMERA_DATA]

    for ours, theirs in zip(track(found), track(RECORDED), strict=True):
        assert ours == pytest.approx(theirs, abs=0.02)
    assert depths(found) == pytest.approx(depths(RECORDED), abs=0.02)
