# SPDX-License-Identifier: Apache-2.0
"""FlyingVehicle: base of emulated drones, whose truth is where their physics is."""

import math

from std_srvs.srv import Trigger
from vehicle import Vehicle

from drone_bridge.controllers.drone_controller import DroneController

#: Largest speed of a drone at rest, in gusts, m/s; height of a landing drone that may count as down, m.
RESTING_M_S, DOWN_M = 1.0, 0.12


class FlyingVehicle(Vehicle):
    """Drone with the controller of goals. A kind says where it is, in which phase, and how fast."""

    is_stream, is_drone, flies_by_goals, has_odometry, has_last_words = False, True, True, False, False
    controller = DroneController, {"behaviour": "goals"}
    #: Error of a goal's height that its success allows, m, and the phases of the emulated drone.
    HEIGHT_M, STANDING, LANDING = 0.5, (), ()

    phase, height, speed = "", 0.0, 0.0
    #: Steady wind, m/s along x and y.
    wind = 0.0, 0.0

    @property
    def stands(self):
        return self.phase in self.STANDING

    @property
    def is_known_to_stand(self):
        return self.stands

    def restless(self):
        return not self.stands and self.speed > RESTING_M_S and f"it flies at {self.speed:.2f} m/s"

    def problem(self):
        is_near = math.isfinite(self.height) and -0.5 < self.height < 500.0
        return "" if is_near else f"it is at {self.height} m"

    def request(self, name, flag):
        def problem():
            is_down = self.phase in (*self.STANDING, *self.LANDING)
            return f"it is {self.phase}" if {"takeoff": is_down, "land": not is_down}.get(name) else ""

        return Trigger.Request(), problem

    def untrue(self, name, fields, before):
        if name == "land":
            is_down = self.stands or (not self.LANDING and self.height < DOWN_M)
            return "" if is_down else f"it is {self.phase}, at {self.height:.2f} m"
        wanted = fields["height"] if name == "take_off" else fields["to"][2]
        zeros = (0.0,) if self.KNOWS_GROUND else (0.0, before, -self.START_M)
        if self.stands:
            return f"it is {self.phase}"
        heights = [min(zero + wanted, self.CEILING_M) for zero in zeros]
        is_there = not wanted or any(abs(self.height - each) < self.HEIGHT_M for each in heights)
        return "" if is_there else f"it flies at {self.height:.2f} m"

    #: Height that it does not exceed, m; whether it reports where the ground is, and its height at the start if not, m.
    CEILING_M, KNOWS_GROUND, START_M = math.inf, True, 0.0
