# SPDX-License-Identifier: Apache-2.0
"""A client, simulator_server, topics and services, simulator_bridge, a simulator: as without what is between."""

import sys
from pathlib import Path

import pytest
from processes import Process
from ros_session import wait_until
from simulator_client import SimulatorClient
from vanishing import kill, vanish

from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.codec import Attribute, ItemType

VEHICLE, BUOY, POST = 0, 2, 5
LEVEL = (1.0, 0.0, 0.0, 0.0)
UNKNOWN = sim.Error(0, "The state of this entity is not known.")
ALL = tuple(Attribute)
CAPTURE = Path(__file__).parent / "captures" / "client_to_simulator.bin"
KNOWN_AXES = [1.0, 0.0, 0.0, 0.0]  # for body_to_model: else it is learned, which turns the vehicle for a moment


def emulator(*options):
    process = Process(
        sys.executable, "-m", "drone_bridge.simulator.emulator", "--port", 0, "--scene", "buoys", *options
    )
    process.port = int(process.wait_for_line(r"listening on .*:(\d+)")[1])
    return process


class Relay:
    """All of it, and clients of both its ends."""

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
        self.port = int(self.server.wait_for_line(r"Listening to clients on .*:(\d+)")[1])
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
        """A client that finds all services there."""
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
    """A client of the simulator itself."""
    return relay.connect(relay.simulator.port)


def value(client, entity, attribute):
    return client.get(sim.GetEntity(entity, attribute)).value


def run(client, steps):
    client.get(sim.Run(steps))
    client.wait_for(sim.Completed)


def assert_same(told, there):
    for mine, real in zip(told, there, strict=True):
        assert mine == (real if isinstance(real, bool) else pytest.approx(real, rel=1e-12, abs=1e-12))


def test_the_stream_of_the_vehicle_is_the_simulators_step_by_step(relay, operator, direct):
    mine = operator.add(sim.StreamEntity(VEHICLE, 1, ALL))
    real = direct.add(sim.StreamEntity(VEHICLE, 1, ALL))
    direct.get(sim.SetEntity(VEHICLE, Attribute.VELOCITY, (0.5, -0.2, 0.1)))
    direct.get(sim.SetEntity(VEHICLE, Attribute.ANGULAR_VELOCITY, (0.1, 0.2, 0.7)))
    steps = 50
    operator.get(sim.Run(steps))
    told = [operator.wait_for(sim.EntityData, lambda data: data.id == mine) for _ in range(steps)]
    there = [direct.wait_for(sim.EntityData, lambda data: data.id == real) for _ in range(steps)]
    assert [data.attributes for data in told] == [ALL] * steps
    for one, other in zip(told, there, strict=True):
        assert_same(one.values, other.values)
    assert operator.get(sim.Remove(ItemType.ENTITY_STREAM, mine)) == sim.Ok()
    direct.get(sim.Remove(ItemType.ENTITY_STREAM, real))


def test_every_attribute_is_asked_for_and_set_while_the_world_is_paused(operator, direct):
    q = (0.5, 0.5, -0.5, 0.5)
    for entity in (VEHICLE, BUOY):
        wanted = {0: (1.0, 2.0, 3.0), 3: q, 2: (0.1, 0.2, 0.3)} | (
            {1: (0.1, 0.2, 0.3), 4: (0.3, 0.2, 0.1)} if entity else {}
        )
        for attribute, new in wanted.items():
            assert operator.get(sim.SetEntity(entity, attribute, new)) == sim.Ok()
            assert_same([value(direct, entity, attribute)], [new])
    for attribute in Attribute:
        assert_same([value(operator, BUOY, attribute)], [value(direct, BUOY, attribute)])
    assert operator.ask(sim.GetEntity(77, 0)) == direct.ask(sim.GetEntity(77, 0))
    assert operator.code(sim.GetEntity(VEHICLE, 9)) == 1
    assert operator.code(sim.SetEntity(77, 0, (0.0, 0.0, 0.0))) == 0


def test_the_vehicle_is_steered_by_v_and_w(operator, direct):
    operator.get(sim.Run(0))
    wait_until(lambda: not isinstance(operator.ask(sim.GetEntity(VEHICLE, 0)), sim.Error), "a state")
    wanted = (0.4, -0.3, 0.2)

    def is_followed():
        operator.get(sim.SetEntity(VEHICLE, Attribute.VELOCITY, wanted))
        operator.get(sim.SetEntity(VEHICLE, Attribute.ANGULAR_VELOCITY, (0.0, 0.0, 0.0)))
        return value(direct, VEHICLE, Attribute.VELOCITY) == pytest.approx(wanted, abs=0.05)

    wait_until(is_followed, "the vehicle to be as fast as it was told")
    operator.get(sim.SetEntity(VEHICLE, Attribute.VELOCITY, (0.0, 0.0, 0.0)))
    operator.get(sim.SetEntity(VEHICLE, Attribute.ANGULAR_VELOCITY, (0.0, 0.0, 0.5)))
    wait_until(lambda: value(direct, VEHICLE, Attribute.ANGULAR_VELOCITY)[2] > 0.4, "the vehicle to turn right")


def test_extended_attributes_entities_and_spying(operator, direct):
    spy = operator.add(sim.Spy())
    assert operator.get(sim.GetExtended(BUOY, "render")).data == direct.get(sim.GetExtended(BUOY, "render")).data
    assert operator.get(sim.SetExtended(BUOY, "note", b"\xff\0\1")) == sim.Ok()
    assert direct.get(sim.GetExtended(BUOY, "note")).data == b"\xff\0\1"
    refused = operator.ask(sim.GetExtended(BUOY, "nothing"))
    assert refused == sim.Error(0, "No extended entity attribute with given key.")
    ball = sim.AddEntity(2.0, 0.3, (1.0, 1.0, 1.0), LEVEL, (1.0, 2.0, 3.0), LEVEL, False)
    number = operator.add(ball)
    assert operator.wait_for(sim.Spied, lambda spied: spied.id == number).is_added
    assert number in direct.get(sim.ListEntities()).ids
    assert_same([value(operator, number, 0)], [(1.0, 2.0, 3.0)])
    stream = operator.add(sim.StreamEntity(number, 1, (Attribute.POSITION, Attribute.VELOCITY)))
    operator.get(sim.SetEntity(number, Attribute.VELOCITY, (1.0, 0.0, 0.0)))
    operator.get(sim.Run(0))
    data = operator.wait_for(sim.EntityData, lambda data: data.id == stream and data.values[0][0] > 1.0)
    assert_same(data.values[0][1:], (2.0, 3.0))
    assert operator.get(sim.Remove(ItemType.ENTITY, number)) == sim.Ok()
    assert not operator.wait_for(sim.Spied, lambda spied: spied.id == number).is_added
    assert number not in direct.get(sim.ListEntities()).ids
    assert operator.code(sim.Remove(ItemType.ENTITY, number)) == 0
    operator.get(sim.Remove(ItemType.SPY, spy))


def test_cameras_are_the_simulators(operator, direct):
    camera = operator.add(sim.AddCamera(VEHICLE, LEVEL, (0.1, 0.2, 0.3), 1.5))
    stream = operator.add(sim.StreamCamera(camera, 1, BUOY))
    real = direct.add(sim.StreamCamera(camera, 1, BUOY))
    operator.get(sim.Run(5))
    told = [operator.wait_for(sim.CameraData, lambda data: data.id == stream) for _ in range(5)]
    there = [direct.wait_for(sim.CameraData, lambda data: data.id == real) for _ in range(5)]
    assert [(d.x, d.y, d.radius, d.depth) for d in told] == [(d.x, d.y, d.radius, d.depth) for d in there]
    assert operator.get(sim.SetCamera(camera, sim.CameraAttribute.FOCAL_LENGTH, 2.0)) == sim.Ok()
    assert operator.code(sim.StreamCamera(camera, 1, VEHICLE)) == 2
    assert operator.get(sim.Remove(ItemType.CAMERA, camera)) == sim.Ok()
    assert direct.code(sim.StreamCamera(camera, 1, BUOY)) == 0


def test_triggers_and_objects_are_the_simulators(operator, direct):
    operator.get(sim.SetEntity(VEHICLE, Attribute.POSITION, (0.0, 0.0, 0.0)))
    operator.get(sim.SetEntity(BUOY, Attribute.POSITION, (0.2, 0.0, 0.0)))
    near = operator.add(sim.AddTrigger(sim.CollisionTrigger(VEHICLE, BUOY, 0.5)))
    operator.get(sim.Run(1))
    assert operator.wait_for(sim.Triggered).id == near
    wait_until(lambda: direct.code(sim.Pause()) == 0, "the end of the step")
    operator.get(sim.SetEntity(BUOY, Attribute.POSITION, (20.0, 0.0, 0.0)))
    operator.get(sim.Run(1))
    assert operator.wait_for(sim.Untriggered).id == near
    itself = sim.AddTrigger(sim.CollisionTrigger(VEHICLE, VEHICLE, 0.5))
    assert operator.ask(itself) == direct.ask(itself)
    still = sim.Turbulence((0.0,) * 3, (0.0,) * 3, 0.0, 0.0, (0.0,) * 3, (0.0,) * 3, 0.0, 0.0)
    added = operator.add(sim.AddObject(sim.Turbulence.CLASS, still.encode()))
    assert added in direct.get(sim.ListObjects()).ids
    assert operator.get(sim.Remove(ItemType.OBJECT, added)) == sim.Ok()
    assert operator.code(sim.AddObject("wind", b"")) == 0


def test_running_and_pausing_are_the_simulators(operator, direct):
    assert operator.get(sim.GetConfig()) == direct.get(sim.GetConfig())
    assert operator.code(sim.Pause()) == 0  # it is paused
    operator.get(sim.Run(0))
    assert operator.ask(sim.Run(0)) == direct.ask(sim.Run(0)) == sim.Error(0, "The simulator is not paused.")
    operator.get(sim.Pause())
    assert direct.code(sim.Pause()) == 0
    run(operator, 3)


def answers_to_capture(client):
    """Send what a client of the CUAUV server has sent; return the answers and the ends of runs."""
    connection = sim.ServerConnection()
    connection.receive_data(CAPTURE.read_bytes())
    answers = []
    while isinstance(request := connection.next_event(), sim.Request):
        answers.append(client.ask(request))
        connection.send(answers[-1])  # it is an answer to this
        if isinstance(request, sim.Run) and request.steps:
            client.wait_for(sim.Completed)
    return answers


def test_what_a_client_of_the_real_server_has_asked_is_answered_as_without_the_relay():
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
        elif not isinstance(real, sim.Added):  # streams here have IDs of their own
            assert mine == real


def test_a_pause_while_the_bridge_is_away_is_the_simulator_s_when_it_comes_back():
    timeouts = {"source_timeout": 2.0, "request_timeout": 5.0, "command_timeout": 1.0}
    relay = Relay("killed", simulator_options=("--running",), **timeouts)
    lost = sim.Error(0, "The bridge behind this server does not answer.")
    still, fast = (sim.SetEntity(VEHICLE, Attribute.VELOCITY, (v, 0.0, 0.0)) for v in (0.0, 2.0))
    try:
        operator, watcher = relay.operator(), relay.connect(relay.simulator.port)
        stream = operator.add(sim.StreamEntity(VEHICLE, 1, (Attribute.VELOCITY,)))
        operator.wait_for(sim.EntityData, lambda data: data.id == stream)
        kill(relay.bridge)
        wait_until(lambda: operator.ask(still) == lost, "the end of the services", period_s=0.1)
        assert operator.get(sim.Pause()) == sim.Ok()
        relay.bridge.end()
        relay.bridge = relay.start_bridge()
        # The simulator is paused as well, or this would be refused.
        wait_until(lambda: operator.ask(sim.Run(0)) == sim.Ok(), "the simulator to have been paused", period_s=0.5)
        operator.take(sim.EntityData)

        def is_fast():
            operator.ask(fast)
            return value(watcher, VEHICLE, Attribute.VELOCITY)[0] > 1.5

        wait_until(is_fast, "the vehicle to move", period_s=0.05)
        operator.wait_for(sim.EntityData, lambda data: data.id == stream)
        assert watcher.ask(sim.Run(0)) == sim.Error(0, "The simulator is not paused.")
    finally:
        relay.close()


def test_what_an_operator_added_is_gone_with_the_simulation():
    relay = Relay("anew")
    try:
        operator = relay.operator()
        camera = operator.add(sim.AddCamera(VEHICLE, LEVEL, (0.1, 0.2, 0.3), 1.5))
        near = operator.add(sim.AddTrigger(sim.CollisionTrigger(VEHICLE, BUOY, 0.5)))
        assert operator.get(sim.ListCameras()).ids == (camera,)
        relay.simulator.end()
        relay.simulator = emulator("--port", relay.simulator.port)
        wait_until(lambda: operator.get(sim.ListCameras()).ids == (), "the end of the camera", period_s=0.1)
        assert operator.code(sim.Remove(ItemType.TRIGGER, near)) == 0
        assert operator.add(sim.AddCamera(VEHICLE, LEVEL, (0.1, 0.2, 0.3), 1.5)) == 0  # the new one's first
    finally:
        relay.close()


def test_operator_bridge_and_server_may_vanish_and_the_bridge_come_back(ros):
    timeouts = {"source_timeout": 2.0, "request_timeout": 5.0, "command_timeout": 1.0}
    relay = Relay("faults", simulator_options=("--running",), **timeouts)
    try:
        # The operator vanishes while it steers: the vehicle stands still.
        watcher, first = relay.connect(relay.simulator.port), relay.operator()

        def is_fast(steering):
            steering.get(sim.SetEntity(VEHICLE, Attribute.VELOCITY, (2.0, 0.0, 0.0)))
            return value(watcher, VEHICLE, Attribute.VELOCITY)[0] > 1.5

        def is_still():
            return abs(value(watcher, VEHICLE, Attribute.VELOCITY)[0]) < 0.01

        wait_until(lambda: is_fast(first), "the vehicle to move")
        vanish(first.socket)
        wait_until(is_still, "the vehicle to stand still")
        # The bridge is killed: the stream ends, nothing old is told, and what its services would do gets an error.
        operator = relay.operator()
        stream = operator.add(sim.StreamEntity(VEHICLE, 1, (Attribute.VELOCITY,)))
        operator.wait_for(sim.EntityData, lambda data: data.id == stream)
        wait_until(lambda: "simulator_bridge" in ros.node.get_node_names(), "the bridge")
        kill(relay.bridge)
        wait_until(lambda: operator.ask(sim.GetEntity(VEHICLE, 0)) == UNKNOWN, "the end of states and services")
        assert "simulator_bridge" in ros.node.get_node_names(), "DDS itself missed it first, after 20 s"
        assert operator.code(sim.SetEntity(BUOY, 0, (0.0, 0.0, 0.0))) == 1  # as where nobody offers it
        relay.bridge.end()
        relay.bridge = relay.start_bridge()
        operator.take(sim.EntityData)
        operator.wait_for(sim.EntityData, lambda data: data.id == stream)
        # The server is killed: its clients' connections end, and the bridge has the vehicle stand still.
        wait_until(lambda: is_fast(operator), "the vehicle to move again")
        kill(relay.server)
        operator.wait_until_closed()
        wait_until(is_still, "the vehicle to stand still again")
    finally:
        relay.close()
