# SPDX-License-Identifier: Apache-2.0
"""Relay between a client and a simulator: simulator_server, topics and services, simulator_bridge."""

import sys

import pytest
from processes import Process, when_listening
from ros_session import wait_until
from simulator_client import SimulatorClient

from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.codec import Attribute

VEHICLE = 0
ALL = tuple(Attribute)
EMULATOR = (sys.executable, "-m", "drone_bridge.simulator.vehicle.emulator", "--port", 0, "--scene", "buoys")
#: With a known body_to_model, since learning it turns the vehicle for a moment.
BRIDGE = {"body_to_model": [1.0, 0.0, 0.0, 0.0], "request_timeout": 20.0, "rate": 100.0}
SERVER = {"source_timeout": 30.0, "request_timeout": 30.0, "command_timeout": 30.0}


@pytest.fixture
def direct(start_child, closing):
    """Return a client of the simulator itself."""
    return closing(SimulatorClient(when_listening(start_child(*EMULATOR)).port))


@pytest.fixture
def operator(direct, start_child, closing):
    """Return a client of the server once all services are discovered."""
    namespace = {"make": Process.node, "remap": ("__ns:=/shared",)}
    port = direct.socket.getpeername()[1]
    start_child("simulator_bridge", port=port, **namespace, **BRIDGE).wait_for_line("Connected to")
    server = start_child("simulator_server", port=0, **namespace, **SERVER)
    client = closing(SimulatorClient(int(server.wait_for_line(r"clients on .*:(\d+)")[1])))
    wait_until(lambda: sorted(client.get(sim.ListEntities()).ids) == list(range(6)), "the bridge's services")
    wait_until(lambda: not isinstance(client.ask(sim.GetEntity(VEHICLE, 0)), sim.Error), "a state")
    return client


def test_the_vehicle_s_stream_equals_the_simulator_s_step_by_step(operator, direct):
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
        for value, expected in zip(told.values, there.values, strict=True):
            assert value == pytest.approx(expected, rel=1e-12, abs=1e-12)
