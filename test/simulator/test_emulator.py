# SPDX-License-Identifier: Apache-2.0
"""Process tests of the emulated simulator: its output, exit status and messages."""

import sys

import pytest
from drained import drain
from processes import when_listening
from repository import CAPTURES
from simulator_client import SimulatorClient

from drone_bridge.simulator import codec as sim

COMMAND = (sys.executable, "-m", "drone_bridge.simulator.vehicle.emulator", "--port", 0)
X, V, A, Q, W, CORPOREAL = sim.Attribute
VEHICLE = 0


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


def drain_all(connection, name):
    connection.receive_data((CAPTURES / name).read_bytes())
    return drain(connection)


REQUESTS = drain_all(sim.ServerConnection(), "client_to_simulator.bin")


def split(events):
    """Return the answers, and the messages of streams and triggers."""
    answers = [event.response for event in events if isinstance(event, sim.Answer)]
    return answers, [event for event in events if not isinstance(event, sim.Answer)]


def recorded():
    """Return the recorded answers and other messages."""
    client = sim.ClientConnection()
    for request in REQUESTS:
        client.send(request)
    return split(drain_all(client, "simulator_to_client.bin"))


def replayed(client, count):
    """Replay the recorded client. Return the answers, and this number of other messages."""
    *requests, run_on = REQUESTS
    answers = [client.ask(request) for request in requests]
    client.collect_until(sim.Completed)
    answers.append(client.ask(run_on))
    while len(client.events) < count:
        client.next_event()
    return answers, client.events[:count]


def test_a_recorded_client_receives_the_recorded_messages_in_order(emulate, connect):
    """Another drag, and no acceleration counted one and a half times: within two centimetres all the same."""
    answers, others = recorded()
    assert replayed(connect(emulate()), len(others))[0] == answers
    told, found = replayed(connect(emulate("--quirks", "real")), len(others))
    assert told == answers
    assert [type(each) for each in found] == [type(each) for each in others]
    for ours, theirs in zip(found, others, strict=True):
        if isinstance(theirs, sim.EntityData):
            assert ours.attributes == theirs.attributes
            assert ours.values[0] == pytest.approx(theirs.values[0], abs=0.02)
        elif isinstance(theirs, sim.CameraData):
            assert ours.depth == pytest.approx(theirs.depth, abs=0.02)
