# SPDX-License-Identifier: Apache-2.0
"""TelloVehicle: the emulated Tello, which is told velocities."""

import math

from class_vehicle import ClassVehicle
from flying_vehicle import FlyingVehicle
from vehicle import Told

from drone_bridge.robots.tello import Tello

#: Own constants: speeds at rc 100, m/s and rad/s; time for which reports may be behind, s.
FULL, REPORTED_S = (4.0, 4.0, 2.0, 2.0), 5.0


class TelloVehicle(ClassVehicle, FlyingVehicle):
    robot, flies_by_goals, has_last_words, controller = Tello, False, True, FlyingVehicle.controller
    watchdog_s, unattended_s, QUANTUM, HEIGHT_M, ANSWERS_S = 15.0, 15.0, 0.03, 0.6, 40.0
    SERVICES = {name: name.encode() for name in ("takeoff", "land", "emergency")}  # noqa: RUF012
    STANDING, LANDING = ("standing",), ("landing",)
    speeds, turns = (-1.0, -0.3, 0.1, 0.5), (-1.2, 0.1, 0.7)
    _followed_s = _stood_s = 0.0

    def decoded(self, packet):
        word, *numbers = packet.decode().split()
        if word != "rc":
            return None
        right, forward, up, clockwise = (int(number) / 100 for number in numbers)
        return Told(forward * FULL[0], -right * FULL[1], up * FULL[2], -clockwise * FULL[3])

    def velocity(self, rng):
        return super().velocity(rng)._replace(up=rng.choice((0.0, 0.3, -0.3)), left=rng.choice((0.0, 0.4)))

    @property
    def phase(self):
        return self.world.body.phase

    @property
    def place(self):
        return self.world.body.x, self.world.body.y

    @property
    def flown(self):
        return *self.place, self.world.body.heading

    @property
    def height(self):
        return self.world.body.z

    @property
    def speed(self):
        return 0.0 if self.phase == "falling" else math.hypot(*super().body()[:3])

    def body(self):
        return super().body() if self._followed_s > 3.0 else None

    def _step(self):
        super()._step()
        self._followed_s = self._followed_s + 0.02 if self.phase == "following" else 0.0
        self._stood_s = self._stood_s + 0.02 if self.stands else 0.0

    @property
    def is_known_to_stand(self):
        return self._stood_s > REPORTED_S

    def conditions(self):
        return [each for each in super().conditions() if each != "landing" or not self.is_known_to_stand]

    def untrue(self, name, fields, before):
        is_behind = name == "take_off" and 0.0 < self._stood_s <= REPORTED_S  # its motors' time has a unit of 1 s
        return "" if is_behind else super().untrue(name, fields, before)

    def request(self, name, flag):
        message, unsent = ClassVehicle.request(self, name, flag)
        _, problem = FlyingVehicle.request(self, name, flag)
        return message, lambda: unsent() or problem()
