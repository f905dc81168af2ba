# SPDX-License-Identifier: Apache-2.0
"""Emulated simulator without sockets and clock: immediate answers, and steps made by the test."""

import random

from drone_bridge.simulator.codec import AddEntity, Error, frame
from drone_bridge.simulator.vehicle.device.requests import Context, answer
from drone_bridge.simulator.vehicle.device.world import RunControl, Timing, World
from drone_bridge.simulator.vehicle.emulator.scene import SimulatedScene, add_default_environment

LEVEL = (1.0, 0.0, 0.0, 0.0)


def entity(position=(0, 0, 0), mass=1.0, radius=0.2, inertia=(1, 1, 1), btom=LEVEL, q=LEVEL, corporeal=False, **more):
    """Return a request for an entity that by default is moved only by its own velocity."""
    return AddEntity(mass, radius, inertia, btom, position, q, corporeal, **more)


class RecordingClient:
    """Owner of streams, triggers and spies, with its received `events`."""

    def __init__(self):
        self.events = []

    def post(self, response):
        assert frame(response)
        self.events.append(response)

    def take(self):
        events, self.events = self.events, []
        return events


class OfflineSimulator:
    """World with the default environment, and a default client."""

    def __init__(self, rate=100.0, speed=1.0, seed=0, btom=LEVEL):
        timing = Timing(rate, speed)
        self.reports = []
        self.scene = SimulatedScene(timing.step_s, self.reports.append, random.Random(seed))
        self.world = World(self.scene)
        add_default_environment(self.world, self.scene, btom)
        self.context = Context(self.world, RunControl(), timing)
        self.client = RecordingClient()

    def ask(self, request, client=None):
        """Return the answer, which may be an Error."""
        response = answer(self.context, client or self.client, request)
        if isinstance(response, Error):
            return response
        assert type(response) is request.ANSWER
        assert request.is_answered_by(response)
        assert frame(response)
        return response

    def get(self, request, client=None):
        """Return the answer, which must not be an Error."""
        response = self.ask(request, client)
        assert not isinstance(response, Error), f"{request!r} was answered with {response!r}"
        return response

    def add(self, request, client=None):
        """Return the ID of the added item."""
        return self.get(request, client).id

    def code(self, request):
        """Return the code of the Error that answers this. Its text must be a sentence."""
        response = self.ask(request)
        assert isinstance(response, Error), f"{request!r} was answered with {response!r}"
        assert response.message.endswith(".")
        return response.code

    def step(self, count=1):
        """Make steps. Return the events of the client."""
        for _ in range(count):
            self.scene.step()
            self.world.notify_step()
        return self.client.take()
