# SPDX-License-Identifier: Apache-2.0
"""SimulatorVehicle: the emulated underwater simulator, whose asyncio loop runs in virtual time, and its vehicle."""

import asyncio
import math
import random
from types import SimpleNamespace
from unittest import mock

from flying_vehicle import FlyingVehicle
from vehicle import Told
from virtual_link import SERVER, Streams

from drone_bridge.net.link_loop import Connected, Disconnected
from drone_bridge.simulator.bridge.node import SimulatorBridge
from drone_bridge.simulator.codec import VEHICLE
from drone_bridge.simulator.vehicle.emulator import __main__ as emulator

#: Speed below which it rests, m/s.
RESTS_M_S = 0.02


class VirtualEventLoop(asyncio.BaseEventLoop):
    """Event loop of a process: it runs when something is due, or when data arrive."""

    def __init__(self, process):
        super().__init__()
        self._process, self._number = process, 0
        self._selector = SimpleNamespace(select=lambda timeout: [])

    def time(self):
        return self._process.life.now_s

    def _process_events(self, events):
        pass

    def forget(self):
        """End what the life leaves behind."""
        for task in asyncio.all_tasks(self):
            task.cancel()
        self.run_due()

    def run_due(self):
        """Run what is due, and schedule the rest."""
        asyncio.events._set_running_loop(self)
        try:
            self._run_once()
            while self._ready:
                self._run_once()
        finally:
            asyncio.events._set_running_loop(None)
        self._number += 1
        if self._scheduled:
            number, seconds = self._number, max(1e-6, self._scheduled[0]._when - self.time())
            self._process.after(self._process.life.lazy(seconds), lambda: number == self._number and self.run_due())


class TwoStreams(Streams):
    """Connections of a client: one for requests, and one for streams."""

    CONNECTIONS = 2


class SimulatorVehicle(FlyingVehicle):
    name, bridge, is_stream, WIRE = "simulator", SimulatorBridge, True, TwoStreams
    RECONNECTS_S, parameters = 14.0, {"body_to_model": [1.0, 0.0, 0.0, 0.0]}

    def start(self):
        options = emulator.parse(["--running", "--rate", "25", "--seed", str(self.life.seed)])
        timing = emulator.Timing(options.rate, options.speed)
        self.scene = emulator.SimulatedScene(timing.step_s, lambda line: None, random.Random(options.seed))
        world, context = emulator.World(self.scene), None
        emulator.add_default_environment(world, self.scene, options.btom)
        context = emulator.Context(world, emulator.RunControl(), timing, False)
        self.server = emulator.Server(context, self.scene)
        context.control.run(0)
        self._loop, self._link, self._readers = VirtualEventLoop(self.process), self.wire.end(SERVER), {}
        self._link.runner = SimpleNamespace(wake=lambda: self.process.run(self._look))
        self._loop.create_task(self.server.keep_time())
        self._loop.run_due()
        self.life.at_end.append(self._loop.forget)

    def _look(self):
        while event := self._link.receive():
            if isinstance(event, Connected):
                reader = self._readers[event.source] = asyncio.StreamReader(loop=self._loop)
                self._loop.create_task(self.server.serve(reader, self._writer(event.source)))
            elif isinstance(event, Disconnected):
                self._readers.pop(event.source).feed_eof()
            elif reader := self._readers.get(event.source):
                reader.feed_data(event.data)
        self._loop.run_due()

    def _writer(self, peer):
        info = {"peername": ("10.0.0.1", peer.number), "socket": mock.Mock()}
        close = lambda: self._link.disconnect(peer)  # noqa: E731
        transport = SimpleNamespace(
            is_closing=lambda: peer.is_closed[SERVER], get_write_buffer_size=lambda: 0, abort=close
        )
        return SimpleNamespace(
            write=lambda data: self._link.send(data, peer),
            write_eof=close,
            close=close,
            is_closing=transport.is_closing,
            get_extra_info=info.get,
            transport=transport,
        )

    def hear(self, data, source):
        pass

    def velocity(self, rng):
        return Told(rng.choice((-0.5, 0.5, 1.0)), rng.choice((0.0, 0.4)), rng.choice((0.0, 0.2, -0.2)), 0.3)

    def allows(self, act):
        return act not in ("fly", "soar", "hold_goal", "go", "tour") and super().allows(act)

    @property
    def rests(self):
        return self.speed < RESTS_M_S

    @property
    def speed(self):
        return math.hypot(*self.scene.entities[VEHICLE].v)

    def problem(self):
        place = self.scene.position(VEHICLE)
        return "" if all(map(math.isfinite, place)) and max(map(abs, place)) < 10_000.0 else f"it is at {place}"

    def roots(self):
        return (self.server, self.scene)
