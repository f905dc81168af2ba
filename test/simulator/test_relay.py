# SPDX-License-Identifier: Apache-2.0
"""Relay between a client and a simulator: simulator_server, topics and services, simulator_bridge."""

import sys

import pytest
from processes import Process
from ros_session import wait_until
from simulator_client import SimulatorClient

from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.codec import Attribute, ItemType

VEHICLE = 0
ALL = tuple(Attribute)
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
        patient = {f"{name}_timeout": 30.0 for name in ("source", "request", "command")}
        self.server = Process.node("simulator_server", port=0, remap=self.remap, **{**patient, **server_options})
        self.port = int(self.server.wait_for_line(r"clients on .*:(\d+)")[1])
        self.clients = []

    def start_bridge(self):
        known = {"body_to_model": KNOWN_AXES, "request_timeout": 20.0, "rate": 100.0}
        bridge = Process.node("simulator_bridge", port=self.simulator.port, remap=self.remap, **known)
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
