# SPDX-License-Identifier: Apache-2.0
"""TelemetryVehicle: the emulated drone above its rover."""

import json
import math

from flying_vehicle import FlyingVehicle
from house import run_emulation
from vehicle import Told
from virtual_link import SERVER

from drone_bridge.telemetry.bridge import TelemetryBridge
from drone_bridge.telemetry.vehicle.emulator import __main__ as emulator

#: Own constant: height of the drone's centre above its gear, m.
GEAR_M = 0.1


class TelemetryVehicle(FlyingVehicle):
    name, bridge = "telemetry", TelemetryBridge
    RECONNECTS_S, unattended_s, STANDING = 5.0, 60.0, ("on rover", "on ground")

    def __init__(self, life):
        super().__init__(life)
        self._start, self.flight, self._shares = life.rng.choice(("air", "ground")), None, {}
        self.wind = life.rng.choice(((0.0, 0.0), (0.0, 0.0), (2.0, -1.0)))

    def start(self):
        words = ["--start", self._start, "--seed", str(self.life.seed), "--no-images"]
        options = emulator.parse([*words, "--wind", f"{self.wind[0]} {self.wind[1]} 0"])
        setup = {each: getattr(options, each) for each in emulator.FlightSetup.__dataclass_fields__}
        self.flight, link = emulator.LandingFlight(emulator.FlightSetup(**setup)), self.wire.end(SERVER)
        self._broadcast = emulator.Broadcast(self.flight, link, emulator.Watch(self.flight), options)
        run_emulation(self.process, self._broadcast, [link], options, is_lazy=False)  # a step is a frame

    def hear(self, data, source):
        self._shares = shares = json.loads(data)
        self.tell(Told(*(shares.get(name, 0.0) for name in ("pitch", "roll", "thrust", "yaw"))))

    def velocity(self, rng):
        return Told(rng.choice((-0.5, 0.5, 1.0)), rng.choice((0.0, 0.4)), rng.choice((0.0, 0.2, 0.4)), 0.3)

    def allows(self, act):
        return act not in ("stall_device", "late", "split") and super().allows(act)

    rests = False  # it reports in steps

    @property
    def phase(self):
        return self.flight.world.phase.value

    @property
    def height(self):
        return float(self.flight.drone.position[2]) - GEAR_M

    @property
    def speed(self):
        return math.hypot(*self.flight.drone.velocity.tolist())

    def problem(self):
        shares = [abs(self._shares.get(name, 0.0)) for name in ("pitch", "roll", "yaw", "thrust")]
        return f"told {self._shares}" if max(shares) > 1.0 else super().problem()

    def roots(self):
        return (self._broadcast,)
