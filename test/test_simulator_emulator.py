# SPDX-License-Identifier: Apache-2.0
"""The emulated simulator as its clients meet it: a process, its output, its exit code, what it says on the wire."""

import asyncio
import os
import signal
import socket
import sys
import time
from pathlib import Path

import pytest
from offline_simulator import entity
from processes import Process, when_listening
from ros_session import wait_until
from simulator_client import SimulatorClient

from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.device.requests import Quirks
from drone_bridge.simulator.emulator.server import Connection
from drone_bridge.wire.events import RemoteProtocolError

COMMAND = (sys.executable, "-m", "drone_bridge.simulator.emulator", "--port", 0)
X, V, A, Q, W, CORPOREAL = sim.Attribute
VEHICLE = 0


@pytest.fixture
def emulate(start_child):
    return lambda *arguments: when_listening(start_child(*COMMAND, *arguments))


@pytest.fixture(scope="module")
def shared():
    """A simulator for all tests that need no special one."""
    with Process(*COMMAND, "--verbose") as child:
        yield when_listening(child)


@pytest.fixture
def simulator(shared):
    """The shared simulator: paused, nobody connected, nothing in the world but the vehicle."""
    with SimulatorClient(shared.port) as client:
        client.ask(sim.Pause())
        for number in client.get(sim.ListEntities()).ids:
            if number != VEHICLE:
                client.get(sim.Remove(sim.ItemType.ENTITY, number))
        port = client.socket.getsockname()[1]
    # Who came before this one is in the output before it, and what has been said is read up to here.
    shared.wait_for_line(rf"^127\.0\.0\.1:{port} is gone: ")
    wait_until(lambda: shared.count_lines("^connected to ") == shared.count_lines(" is gone: "), "nobody connected")
    shared.lines.clear()
    return shared


@pytest.fixture
def connect(closing):
    return lambda emulator, **options: closing(SimulatorClient(emulator.port, **options))


# One world for several clients.


def test_it_sends_nothing_unasked_and_starts_paused(simulator, connect):
    client = connect(simulator)
    config = client.get(sim.GetConfig())
    assert (config.frequency, config.speed) == (100, 1)
    assert (config.non_real_time, config.use_desired_thrusters) == (False, False)
    client.add(sim.StreamEntity(VEHICLE, 1, (X,)))
    time.sleep(0.1)  # in which steps would be made
    client.settle()
    assert client.events == []
    assert client.code(sim.Pause()) == 0


def test_all_clients_see_one_world_and_each_gets_its_own_streams(simulator, connect):
    alice, bob = connect(simulator), connect(simulator)
    bob.add(sim.Spy())
    number = alice.add(entity((1, 2, 3), attributes=(sim.ExtendedAttribute("render", b"buoy"),)))
    assert bob.wait_for(sim.Spied) == sim.Spied(True, sim.ItemType.ENTITY, number)
    assert bob.get(sim.GetEntity(number, X)).value == (1, 2, 3)
    bob.get(sim.SetEntity(number, V, (1, 0, 0)))
    assert alice.get(sim.GetEntity(number, V)).value == (1, 0, 0)
    mine, its = alice.add(sim.StreamEntity(number, 1, (X,))), bob.add(sim.StreamEntity(number, 2, (V,)))
    alice.get(sim.Run(4))
    for client, stream, count in ((alice, mine, 4), (bob, its, 2)):
        client.collect_until(sim.Completed)
        assert [event.id for event in client.take(sim.EntityData)] == count * [stream]


def test_what_a_visualizer_polls_is_answered(emulate, connect):
    client = connect(emulate("--scene", "buoys"))
    ids = client.get(sim.ListEntities()).ids
    assert len(ids) == 6
    looks = {number: client.get(sim.GetExtended(number, "render")).data for number in ids}
    assert looks[VEHICLE] == b"vehicle"
    assert {b"red_buoy", b"green_buoy", b"yellow_buoy"} <= set(looks.values())  # the stock world's tags
    for number in ids:
        assert len(client.get(sim.GetEntity(number, X)).value) == 3
        assert client.get(sim.GetEntity(number, Q)).value == (1, 0, 0, 0)


# Running.


def test_a_run_makes_exactly_its_steps_and_then_tells_everybody(simulator, connect):
    alice, bob = connect(simulator), connect(simulator)
    bob.settle()
    alice.add(sim.StreamEntity(VEHICLE, 1, (X,)))
    for steps in (7, 1):
        alice.get(sim.Run(steps))
        alice.collect_until(sim.Completed)
        assert [type(event) for event in alice.events] == steps * [sim.EntityData] + [sim.Completed]
        alice.events.clear()
        bob.wait_for(sim.Completed)
    assert alice.code(sim.Pause()) == 0


def test_a_pause_ends_a_run_silently(simulator, connect):
    alice, bob = connect(simulator), connect(simulator)
    bob.settle()
    alice.get(sim.Run(10**15))
    assert alice.code(sim.Run(1)) == 0
    assert bob.code(sim.Run(0)) == 0
    bob.get(sim.Pause())
    for client in (alice, bob):
        client.settle()
        assert client.events == []
    alice.get(sim.Run(1))
    alice.wait_for(sim.Completed)


def test_steps_keep_the_pace(emulate, connect):
    client = connect(emulate("--rate", "400", "--speed", "2"))
    number = client.add(entity())
    client.get(sim.SetEntity(number, V, (1.0, 0, 0)))
    started = time.monotonic()
    client.get(sim.Run(200))
    client.wait_for(sim.Completed)
    assert time.monotonic() - started > 0.49
    assert client.get(sim.GetEntity(number, X)).value[0] == pytest.approx(200 * 2 / 400)


def cpu_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# Clients that misbehave, and clients that go.


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\x63\0\0\0\0", "of type 99"),
        (b"\x21\0\0\0\1\0", "Reassure with 1 bytes instead of 0"),
        (b"\x04\0\0\0\6\0\0\0\0\0\0", "GetEntity with 6 bytes"),
        (b"\x0e\0\0\0\x0a\0\0\0\0\0\0\0\1\xff\0", "StreamEntity that is broken"),
        (b"\x13\xff\xff\xff\xff", "4294967295 bytes"),
        (b"GET / HTTP/1.1\r\n\r\n" * 2000, "of type 71"),
    ],
)
def test_garbage_costs_its_sender_the_connection_and_nobody_else(simulator, connect, data, reason):
    alice, bob = connect(simulator), connect(simulator)
    alice.settle()
    bob.settle()
    bob.send_bytes(data)
    bob.wait_until_closed()
    simulator.wait_for_line(f"is gone: The client .*{reason}")
    alice.settle()


def test_a_client_that_reads_nothing_is_given_up_and_the_world_goes_on(simulator, connect):
    alice, bob = connect(simulator), connect(simulator, receive_buffer=4096)
    alice.add(sim.StreamEntity(VEHICLE, 1, (X,)))
    number = alice.add(entity())
    with SimulatorClient(simulator.port, max_request_bytes=1 << 20) as writer:
        writer.get(sim.SetExtended(number, "big", bytes(500_000)))
    alice.get(sim.Run(0))
    bob.send_bytes_until_closed(sim.frame(sim.GetExtended(number, "big")) * 10)
    simulator.wait_for_line("is gone: it has left more than")
    alice.settle()
    alice.events.clear()  # what was said before
    alice.wait_for(sim.EntityData)


def test_a_dropped_client_that_reads_nothing_leaves_nothing_behind(simulator, connect):
    def sockets():
        return len([path for path in Path(f"/proc/{simulator.pid}/fd").iterdir() if path.is_socket()])

    alice = connect(simulator, max_request_bytes=1 << 20)
    alice.get(sim.SetExtended(VEHICLE, "big", bytes(900_000)))
    before = sockets()
    bob = connect(simulator, receive_buffer=4096)
    bob.send_bytes(4 * sim.frame(sim.GetExtended(VEHICLE, "big")) + b"garbage")
    simulator.wait_for_line("is gone: The client sent a message of type 103")
    wait_until(lambda: sockets() <= before, "the connection to be dropped")
    alice.get(sim.SetExtended(VEHICLE, "big", b""))


def test_a_slow_client_is_waited_for_when_time_is_not_real(emulate, connect):
    client = connect(emulate("--non-real-time"), receive_buffer=4096)
    for _ in range(20):
        client.add(sim.StreamEntity(VEHICLE, 1, tuple(sim.Attribute)))
    client.get(sim.Run(2000))  # 7 MB
    client.collect_until(sim.Completed)
    assert len(client.take(sim.EntityData)) == 40_000


def test_a_flood_of_requests_does_not_stop_the_world(simulator, connect):
    alice, bob = connect(simulator), connect(simulator, max_outstanding=1 << 20)
    alice.add(sim.StreamEntity(VEHICLE, 1, (X,)))
    requests = 20_000
    bob.send_bytes(b"".join(bob.prepare(sim.Reassure()) for _ in range(requests)))
    alice.get(sim.Run(10))
    alice.wait_for(sim.Completed)
    for _ in range(requests):
        bob.next_event()


def test_no_more_than_32_clients_are_served(simulator, connect):
    clients = [connect(simulator) for _ in range(32)]
    for client in clients:
        client.settle()
    connect(simulator).wait_until_closed()
    simulator.wait_for_line("^refused .*: 32 clients are enough")


# Faults and the program.


@pytest.mark.parametrize(("fault", "error"), [("truncate@1", "closed inside"), ("garbage@1", "ids of 36 bytes")])
def test_faults_break_the_first_connection_only(emulate, connect, fault, error):
    emulator = emulate("--fault", fault)
    client = connect(emulator)
    client.settle()
    with pytest.raises(RemoteProtocolError, match=error):
        client.ask(sim.GetConfig())
    again = connect(emulator)
    for _ in range(3):
        again.settle()


def test_the_fault_split_sends_bytes_one_by_one(emulate, connect):
    client = connect(emulate("--fault", "split@0", "--running"))
    for _ in range(3):
        assert client.get(sim.GetEntity(VEHICLE, Q)).value
    client.add(sim.StreamEntity(VEHICLE, 1, tuple(sim.Attribute)))
    client.wait_for(sim.EntityData)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_cleanly_and_tells_each_client(emulate, connect, number):
    emulator = emulate("--running")
    clients = [connect(emulator) for _ in range(3)]
    clients[0].add(sim.StreamEntity(VEHICLE, 1, tuple(sim.Attribute)))
    for client in clients:
        client.settle()
    emulator.send(number)
    emulator.send(number)  # impatience changes nothing
    for client in clients:
        client.wait_for(sim.Completed)
        client.wait_until_closed()
    assert emulator.wait() == 0
    emulator.wait_for_line(r"^ended: \d+ steps, .* vehicle at ")
    assert "Traceback" not in emulator.output


def test_it_ends_with_a_client_that_neither_reads_nor_closes(emulate, connect):
    emulator = emulate("--running")
    connect(emulator).settle()
    assert emulator.stop() == 0


def test_a_client_that_has_just_left_does_not_keep_others_from_hearing_of_the_end():
    async def end_with_a_client_that_has_gone():
        ended = asyncio.get_running_loop().create_future()

        def serve(_, writer):
            connection = Connection("a client", writer, Quirks.NONE, None)
            client.close()  # so what is sent to it now is answered with a reset, at once
            try:
                connection.post(sim.Completed())
                connection.send_goodbye()
                ended.set_result(None)
            except OSError as error:
                ended.set_exception(error)
            connection.close()

        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            client = socket.create_connection(server.sockets[0].getsockname())
            await ended

    asyncio.run(end_with_a_client_that_has_gone())
