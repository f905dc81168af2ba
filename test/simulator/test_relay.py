# SPDX-License-Identifier: Apache-2.0
"""Relay between a client and a simulator: simulator_server, topics and services, simulator_bridge."""

import sys

import pytest
from processes import Process
from repository import CAPTURES
from ros_session import wait_until
from simulator_client import SimulatorClient
from vanishing import kill, vanish

from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.codec import Attribute, ItemType
from drone_bridge.simulator.session.mirrored_scene import UNKNOWN_STATE

VEHICLE, BUOY, POST = 0, 2, 5
UNKNOWN = sim.Error(0, UNKNOWN_STATE)
ALL = tuple(Attribute)
CAPTURE = CAPTURES / "client_to_simulator.bin"
KNOWN_AXES = [1.0, 0.0, 0.0, 0.0]  # for body_to_model, since learning it turns the vehicle for a moment


def emulator(*options):
    process = Process(
        sys.executable, "-m", "drone_bridge.simulator.emulator", "--port", 0, "--scene", "buoys", *options
    )
    process.port = int(process.wait_for_line(r"listening on .*:(\d+)")[1])
    return process


class Relay:
    """The relay, and clients of both its ends."""

    def __init__(self, name, simulator_options=(), **server_options):
        self.remap = (f"__ns:=/{name}",)
        self.simulator = emulator(*simulator_options)
        self.bridge = self.start_bridge()
        self.server = Process.node(
            "simulator_server",
            port=0,
            remap=self.remap,
            **{"source_timeout": 30.0, "request_timeout": 30.0, "command_timeout": 30.0, **server_options},
        )
        self.port = int(self.server.wait_for_line(r"clients on .*:(\d+)")[1])
        self.clients = []

    def start_bridge(self):
        bridge = Process.node(
            "simulator_bridge",
            port=self.simulator.port,
            body_to_model=KNOWN_AXES,
            request_timeout=20.0,
            rate=100.0,
            remap=self.remap,
        )
        bridge.wait_for_line("Connected to")
        return bridge

    def connect(self, port=None):
        self.clients.append(SimulatorClient(port or self.port))
        return self.clients[-1]

    def operator(self):
        """Return a client once all services are discovered."""
        client = self.connect()
        ids = tuple(range(6))
        wait_until(lambda: tuple(sorted(client.get(sim.ListEntities()).ids)) == ids, "the bridge's services")
        wait_until(lambda: not isinstance(client.ask(sim.GetEntity(VEHICLE, 0)), sim.Error), "a state")
        return client

    def close(self):
        for client in self.clients:
            client.close()
        for process in (self.server, self.bridge, self.simulator):
            process.end()


@pytest.fixture(scope="module")
def relay():
    relay = Relay("shared")
    yield relay
    relay.close()


@pytest.fixture
def operator(relay):
    client = relay.operator()
    yield client
    client.ask(sim.Pause())
    client.close()


@pytest.fixture
def direct(relay):
    """Return a client of the simulator itself."""
    return relay.connect(relay.simulator.port)


def value(client, entity, attribute):
    return client.get(sim.GetEntity(entity, attribute)).value


def assert_same(told, there):
    for mine, real in zip(told, there, strict=True):
        assert mine == (real if isinstance(real, bool) else pytest.approx(real, rel=1e-12, abs=1e-12))


def test_the_vehicle_s_stream_equals_the_simulator_s_step_by_step(relay, operator, direct):
    mine = operator.add(sim.StreamEntity(VEHICLE, 1, ALL))
    real = direct.add(sim.StreamEntity(VEHICLE, 1, ALL))
    direct.get(sim.SetEntity(VEHICLE, Attribute.VELOCITY, (0.5, -0.2, 0.1)))
    direct.get(sim.SetEntity(VEHICLE, Attribute.ANGULAR_VELOCITY, (0.1, 0.2, 0.7)))
    for _ in range(20):  # one by one, since topics keep only the newest of many
        operator.get(sim.Run(1))
        while {sim.EntityData, sim.Completed} - set(map(type, operator.events)):  # in any order
            operator.next_event()
        (told,) = operator.take(sim.EntityData)
        operator.events.clear()
        there = direct.wait_for(sim.EntityData, lambda data: data.id == real)
        assert told.attributes == ALL
        assert told.id == mine
        assert_same(told.values, there.values)
    assert operator.get(sim.Remove(ItemType.ENTITY_STREAM, mine)) == sim.Ok()
    direct.get(sim.Remove(ItemType.ENTITY_STREAM, real))


def answers_to_capture(client):
    """Replay a client of the CUAUV server. Return the answers and the ends of runs."""
    connection = sim.ServerConnection()
    connection.receive_data(CAPTURE.read_bytes())
    answers = []
    while isinstance(request := connection.next_event(), sim.Request):
        answers.append(client.ask(request))
        connection.send(answers[-1])  # it is an answer to this
        if isinstance(request, sim.Run) and request.steps:
            client.wait_for(sim.Completed)
    return answers


def test_recorded_requests_are_answered_as_without_the_relay():
    alone = emulator()
    relay = Relay("capture")
    try:
        expected = answers_to_capture(relay.connect(alone.port))
        told = answers_to_capture(relay.operator())
    finally:
        relay.close()
        alone.end()
    assert [type(answer) for answer in told] == [type(answer) for answer in expected]
    for mine, real in zip(told, expected, strict=True):
        if isinstance(real, sim.EntityGot):
            assert_same([mine.value], [real.value])
        elif not isinstance(real, sim.Added):  # streams have other IDs here
            assert mine == real


def test_operator_bridge_and_server_may_be_killed_and_the_bridge_restarted(ros):
    timeouts = {"source_timeout": 2.0, "request_timeout": 5.0, "command_timeout": 1.0}
    relay = Relay("faults", simulator_options=("--running",), **timeouts)
    try:
        # The operator vanishes while it steers: the vehicle stops.
        watcher, first = relay.connect(relay.simulator.port), relay.operator()

        def is_fast(steering):
            steering.get(sim.SetEntity(VEHICLE, Attribute.VELOCITY, (2.0, 0.0, 0.0)))
            return value(watcher, VEHICLE, Attribute.VELOCITY)[0] > 1.5

        def is_still():
            return abs(value(watcher, VEHICLE, Attribute.VELOCITY)[0]) < 0.01

        wait_until(lambda: is_fast(first), "the vehicle to move")
        vanish(first.socket)
        wait_until(is_still, "the vehicle to stop")
        # The bridge is killed: the stream ends, nothing stale is sent, and requests to its services get an error.
        operator = relay.operator()
        stream = operator.add(sim.StreamEntity(VEHICLE, 1, (Attribute.VELOCITY,)))
        operator.wait_for(sim.EntityData, lambda data: data.id == stream)
        wait_until(lambda: "simulator_bridge" in ros.node.get_node_names(), "the bridge")
        kill(relay.bridge)
        wait_until(lambda: operator.ask(sim.GetEntity(VEHICLE, 0)) == UNKNOWN, "the end of states and services")
        assert "simulator_bridge" in ros.node.get_node_names(), "DDS itself missed it first, after 20 s"
        assert operator.code(sim.SetEntity(BUOY, 0, (0.0, 0.0, 0.0))) == 1  # as without the service
        relay.bridge.end()
        relay.bridge = relay.start_bridge()
        operator.take(sim.EntityData)
        operator.wait_for(sim.EntityData, lambda data: data.id == stream)
        # The server is killed: its clients' connections end, and the bridge stops the vehicle.
        wait_until(lambda: is_fast(operator), "the vehicle to move again")
        kill(relay.server)
        operator.wait_until_closed()
        wait_until(is_still, "the vehicle to stop again")
    finally:
        relay.close()
