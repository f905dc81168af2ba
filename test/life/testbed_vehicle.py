# SPDX-License-Identifier: Apache-2.0
"""TestbedVehicle: the emulated drone of the testbed, whose time advances by one step for each reply, in real time."""

import math
import struct
from types import SimpleNamespace

from flying_vehicle import FlyingVehicle
from vehicle import Told
from virtual_link import SERVER

from drone_bridge.net.link_loop import Connected, ReceivedData
from drone_bridge.testbed.bridge.node import TestbedBridge
from drone_bridge.testbed.codec import MotionParameters, TestbedConnection
from drone_bridge.testbed.vehicle.device.drone_state import DroneState
from drone_bridge.testbed.vehicle.emulator import __main__ as emulator

#: Own constants: maxima of thrust, N, and of rates, degrees/s; the ground below the start, m; and the height, m, at
#: which the ground may have held it, and the time after which that is forgotten, s.
MAX_THRUST, MAX_RATE, GROUND_M, LOW_M, TOUCHED_S = 25.0, 720.0, -1.0, 0.5, 15.0


class TestbedVehicle(FlyingVehicle):
    __test__ = False
    name, bridge, is_stream = "testbed", TestbedBridge, True
    RECONNECTS_S, STANDING, KNOWS_GROUND, START_M = 14.0, ("standing",), False, GROUND_M
    parameters = {"attitude_layout": "pose"}  # noqa: RUF012

    def start(self):
        words = ["--width", "8", "--height", "8", "--rate", "30", "--layout", "pose", f"--ground={GROUND_M}"]
        self._options = emulator.parse([*words, "--wind", f"{self.wind[0]} 0 {self.wind[1]}", "--target", "500 0 0"])
        self.drone, self._link, self._peer = emulator.make_drone(self._options), self.wire.end(SERVER), None
        pictures = self.drone.camera.render(DroneState.at_start(), ())
        self.drone.camera.render = lambda *_: pictures  # nobody looks at them
        self.drone.begin()
        self._link.runner = SimpleNamespace(wake=lambda: self.process.run(self._look))

    def _look(self):
        """Handle what has arrived, as `emulator.converse` does for one autopilot after another."""
        while event := self._link.receive():
            if isinstance(event, Connected):
                self._peer, self._connection = event.source, TestbedConnection(self._options.layout)
                self.drone.begin()
                self._link.send(self._connection.send(self.drone.constants), self._peer)
                self._send()
            elif isinstance(event, ReceivedData) and event.source is self._peer:
                self._connection.receive_data(event.data)
                while isinstance(motion := self._connection.next_event(), MotionParameters):
                    self.drone.fly(motion)
                    self.process.after(self.drone.step, lambda peer=self._peer: peer is self._peer and self._send())

    def _send(self):
        self._link.send(self._connection.send(self.drone.sense()), self._peer)

    def hear(self, data, source):
        self._reply = (self._reply + data)[-16:]

    _reply, _low_s = b"", -math.inf

    def velocity(self, rng):
        return Told(rng.choice((-0.5, 0.5, 1.0)), rng.choice((0.0, 0.4)), rng.choice((0.0, 0.2, 0.4)), 0.3)

    def conditions(self):
        if self.height < LOW_M:
            self._low_s = self.life.now_s
        return "landing", *(("doubt",) if self.life.now_s - self._low_s < TOUCHED_S else ())

    @property
    def phase(self):
        return "standing" if self.height < 0.01 else "flying"

    @property
    def height(self):
        return float(self.drone.flight.state.position[1]) - GROUND_M

    @property
    def flown(self):
        state = self.drone.flight.state
        right, _, back = -state.rotation[:, 2]  # the way ahead, whose world has y up
        return -float(state.position[2]), -float(state.position[0]), math.atan2(-right, -back)

    @property
    def speed(self):
        return math.hypot(*self.drone.flight.state.velocity.tolist())

    def problem(self):
        if self.network.split or len(self._reply) < 16:
            return super().problem()
        *rates, thrust = struct.unpack(">4f", self._reply)
        is_within = max(map(abs, rates)) <= MAX_RATE and 0.0 <= thrust <= MAX_THRUST
        return super().problem() if is_within else f"told {rates} degrees/s, {thrust} N"

    def roots(self):
        return (self.drone,)
