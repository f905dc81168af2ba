# SPDX-License-Identifier: Apache-2.0
"""TelemetryVehicle: the emulated drone above its rover, and its truth: where its physics is."""

import json
import math

from house import run_emulation
from vehicle import Told, Vehicle
from virtual_link import SERVER

from drone_bridge.controllers.drone_controller import DroneController
from drone_bridge.telemetry.bridge import TelemetryBridge
from drone_bridge.telemetry.emulator import __main__ as emulator

#: Own constants: height of the drone's centre above its gear, m; range of shares on the wire.
GEAR_M, SHARE = 0.1, 1.0
#: Error of a goal's height that its success allows, m.
HEIGHT_M = 0.5
#: Largest speed of a drone at rest, in gusts, m/s.
RESTING_M_S = 1.0


class TelemetryVehicle(Vehicle):
    name, bridge = "telemetry", TelemetryBridge
    is_stream, is_drone, flies_by_goals, has_odometry, has_last_words = False, True, True, False, False
    unattended_s = 60.0
    RECONNECTS_S, controller = 5.0, (DroneController, {"behaviour": "goals"})

    def __init__(self, life):
        super().__init__(life)
        self._flies_at_first = life.rng.random() < 0.5
        self.flight, self.command = None, {}
        self.moved_s = life.now_s

    def start(self):
        start = ["--start", "air" if self._flies_at_first else "ground", "--seed", str(self.life.seed), "--no-images"]
        options = emulator.parse([*start, "--gusts", "0.3"])
        setup = {each: getattr(options, each) for each in emulator.FlightSetup.__dataclass_fields__}
        self.flight = emulator.LandingFlight(emulator.FlightSetup(**setup))
        link = self.wire.end(SERVER)
        broadcast = emulator.Broadcast(self.flight, link, emulator.Watch(self.flight), options)
        self.broadcast = broadcast
        run_emulation(self.process, broadcast, link, options)

    def hear(self, data, source):
        self.command = json.loads(data)

    def velocity(self, rng):
        return Told(rng.choice((-0.5, 0.5, 1.0)), rng.choice((0.0, 0.4)), rng.choice((0.0, 0.2, 0.4)), 0.3)

    def allows(self, act):
        return act in ("rest", "fly", "watch", "walk_away", "cut", "slow", "lossy", "stall_bridge", "restart_bridge",
                       "kill_bridge", "stall_programs", "soar", "hold_in_flight")  # fmt: skip

    # Truth.

    @property
    def height(self):
        return float(self.flight.world.drone.position[2]) - GEAR_M

    @property
    def stands(self):
        return self.flight.world.phase is not emulator.LandingPhase.FLYING

    def place(self):
        x, y, _ = self.flight.world.drone.position.tolist()
        return x, y, self.height

    def problem(self):
        place = self.place()
        if not all(map(math.isfinite, place)) or max(map(abs, place)) > 1000.0:
            return f"it is at {place}"
        shares = [abs(self.command.get(name, 0.0)) for name in ("pitch", "roll", "yaw", "thrust")]
        return "" if max(shares) <= SHARE else f"told {self.command}"

    def restless(self):
        """Return how it moves although nobody commands it."""
        speed = math.hypot(*self.flight.world.drone.velocity.tolist())
        return not self.stands and speed > RESTING_M_S and f"flies at {speed:.2f} m/s"

    def untrue(self, name, fields, before):
        """Return why the success of a goal is not true."""
        height = self.height
        if name == "land":
            return "" if self.stands or height < 0.12 else f"it flies at {height:.2f} m"
        if name == "take_off":
            wanted = fields["height"]
            if self.stands:
                return f"it stands, at {height:.2f} m"
            return "" if not wanted or abs(height - wanted) < HEIGHT_M else f"it flies at {height:.2f} m"
        return "" if abs(height - fields["to"][2]) < HEIGHT_M + 0.1 else f"its height is {height:.2f} m"

    def roots(self):
        return (self.broadcast,)
