# SPDX-License-Identifier: Apache-2.0
"""TelloVehicle: the emulated Tello, with the controller of goals, and its truth: what its body does."""

from class_vehicle import ClassVehicle
from std_srvs.srv import Trigger
from vehicle import Told

from drone_bridge.controllers.drone_controller import DroneController
from drone_bridge.robot_class.body import LANDS, STANDS
from drone_bridge.robots.tello import Tello

#: Own constants: speeds at rc 100, m/s and rad/s; error of a height that a goal allows, m.
FULL, HEIGHT_M = (4.0, 4.0, 2.0, 2.0), 0.6
#: Time for which reports may be behind, s.
REPORTED_S = 5.0


class TelloVehicle(ClassVehicle):
    robot, is_drone, has_odometry = Tello, True, False
    watchdog_s, unattended_s, QUANTUM = 15.0, 15.0, 0.03
    SERVICES = {name: name.encode() for name in ("takeoff", "land", "emergency")}  # noqa: RUF012
    controller = DroneController, {"behaviour": "goals"}
    speeds, turns, axes = (-1.0, -0.3, 0.1, 0.5), (-1.2, 0.1, 0.7), ("forward", "left", "up", "turn")

    _followed_s = _stood_s = 0.0

    def decoded(self, packet):
        word, *numbers = packet.decode().split()
        if word != "rc":
            return None
        right, forward, up, clockwise = (int(number) / 100 for number in numbers)
        return Told(forward * FULL[0], -right * FULL[1], up * FULL[2], -clockwise * FULL[3])

    def velocity(self, rng):
        return super().velocity(rng)._replace(up=rng.choice((0.0, 0.3, -0.3)), left=rng.choice((0.0, 0.4)))

    def bounded(self, asked):
        return asked

    # Truth.

    @property
    def stands(self):
        return self.world.body.phase == STANDS

    def place(self):
        return self.world.body.x, self.world.body.y, self.world.body.z

    def body(self):
        return super().body() if self._followed_s > 3.0 else None

    def _step(self):
        super()._step()
        self._followed_s = self._followed_s + 0.02 if self.world.body.phase == "following" else 0.0
        self._stood_s = self._stood_s + 0.02 if self.stands else 0.0

    def conditions(self):
        return () if self._stood_s > REPORTED_S else ("landing",)

    def request(self, name, flag):
        _, unsent = super().request(name, flag)
        body = self.world.body

        def problem():
            if why := unsent():
                return why
            if name == "takeoff" and body.phase in (STANDS, LANDS):
                return f"it is {body.phase}"
            return f"it is {body.phase}" if name == "land" and body.phase not in (STANDS, LANDS) else ""

        return Trigger.Request(), problem

    def untrue(self, name, fields, before):
        """Return why the success of a goal is not true."""
        z = self.world.body.z
        if name == "land":
            return "" if self.stands else f"it is {self.world.body.phase}, at {z:.2f} m"
        wanted = fields["height"] if name == "take_off" else fields["to"][2]
        if self.stands:
            return "it stands"
        return "" if not wanted or abs(z - wanted) < HEIGHT_M else f"it flies at {z:.2f} m"
