# SPDX-License-Identifier: Apache-2.0
"""ServedWorld: what simulator_server makes of requests, without a node, a socket or a clock."""

import asyncio
from types import SimpleNamespace

import pytest
from plain_node import PlainNode

from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.device.requests import Context, Quirks
from drone_bridge.simulator.device.world import RunControl, Timing, World
from drone_bridge.simulator.server.clients import ClientSession
from drone_bridge.simulator.server.forwarding import Forwarder, ServiceError
from drone_bridge.simulator.server.scene import MirroredEntity, MirroredScene
from drone_bridge.simulator.server.steering import VelocityCommands
from drone_bridge.simulator.topics import Axes
from drone_bridge.wire.outgoing import encoded

VEHICLE = 0


class PlainBridge:
    """Its services: each gives the response that is set for it, as those of a bridge are; None is no response."""

    def __init__(self):
        self.responses = {}
        self.asked = []
        self.are_lost = False

    def offers(self, service):
        return service in self.responses

    async def call(self, service, request, *, moves_vehicle=False):
        self.asked.append((service, request))
        fields = self.responses[service]
        response = None if fields is None else SimpleNamespace(**{"code": -1, "message": "", **fields})
        if response is None or not response.success:
            raise ServiceError(response)
        return response


class ServedWorld:
    """What sessions share, and one of them. `now_s` is the time; `bridge` what is behind it."""

    def __init__(self, axes=None, make_bridge=lambda node: PlainBridge(), source_timeout_s=1.0):
        axes = axes or Axes()
        self.now_s = 0.0
        self.node = PlainNode()
        self.bridge = make_bridge(self.node)
        self.scene = MirroredScene(axes, VEHICLE, lambda: self.now_s, lambda: source_timeout_s)
        self.scene.add(VEHICLE, MirroredEntity(has_source=True, is_configured=True))
        self.world = World(self.scene)
        self.world.entity_added(VEHICLE, {"render": b"vehicle"})
        self.control = RunControl()
        self.commands = VelocityCommands(self.node, axes, lambda: self.scene.state(VEHICLE), lambda: self.now_s)
        self.scene.steer = self.commands.set
        self.mirrored = []
        self.forwarder = Forwarder(
            self.bridge,
            axes,
            Context(self.world, self.control, Timing()),
            self.scene,
            VEHICLE,
            self.commands,
            self.mirrored.append,
            self.world.entity_removed,
            lambda: False,
        )
        self.sent = bytearray()
        self.refusals = []
        self.session = self.connect()

    def connect(self):
        """Another client."""
        connection = SimpleNamespace(peer="a client", send=self.sent.extend, abort=pytest.fail, proceed=self.proceed)
        return ClientSession(connection, self, Quirks.NONE, lambda: None)

    # The Server of sessions.

    def encode(self, send, message, neutral=None):
        return encoded(send, message, neutral, self.refusals.append)

    def update_time(self):
        self.scene.update_time()

    def flush(self):
        self.commands.tick()
        self.commands.flush()
        self.session.send_queued()

    def proceed(self):
        while self.session.handle_next():
            pass
        self.session.flush()

    def answer(self, client, request):
        return self.forwarder.answer(client, request)

    # What a test does.

    def ask(self, request):
        """Return the answer to what the session's client sends."""
        return asyncio.run(self.answered(request))

    async def answered(self, request):
        client = sim.ClientConnection()
        self.session.receive_data(client.send(request))
        self.proceed()
        while not self.sent:
            if (pending := self.session._pending) and pending.done():
                pending.result()  # raises what ended it without an answer
            self.node.spin()
            await asyncio.sleep(0)
        client.receive_data(bytes(self.sent))
        self.sent.clear()
        return client.next_event().response

    def news(self):
        """Return what was sent that answers nothing."""
        client = sim.ClientConnection()
        client.receive_data(bytes(self.sent))
        self.sent.clear()
        return list(client.events())
