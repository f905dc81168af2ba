# SPDX-License-Identifier: Apache-2.0
"""EmulatedBody: a robot that follows a velocity, or a drone that is steered by tilt. Only its actuators lag."""

import cmath
import math

from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.motion.planar_pose import PlanarPose
from drone_bridge.motion.tilted_drone import Shares, pull_of
from drone_bridge.motion.vectors import Triple
from drone_bridge.robot_class.robot import NEUTRALS, Command, Robot, Telemetry, as_commanded
from drone_bridge.robot_class.vehicle.room import EmulatedLidar, distance
from drone_bridge.session.session import EMERGENCY, LAND

#: Time constant of a change of velocity.
RESPONSE_S = 0.3
#: Speed below which the body counts as at rest, m/s or rad/s.
STANDING = 0.01
#: Distance from a wall at which a bumper is pressed, more than the way of a step, m.
TOUCH_M = 0.03
HOVER_HEIGHT = 1.0  # of a takeoff, m
BATTERY_S = 3600.0
STANDS, RISES, FOLLOWS, LANDS, FALLS = "standing", "rising", "following", "landing", "falling"
#: Vertical speeds, m/s: a takeoff lasts 3 to 5 s, as that of a Tello.
VERTICAL = {RISES: 0.3, LANDS: -0.8, FALLS: -3.0}
#: Phases in which requests are accepted, those that they begin, and those in which they are done.
PHASES = {
    "takeoff": ((STANDS,), RISES, FOLLOWS),
    LAND: ((RISES, FOLLOWS, LANDS), LANDS, STANDS),
    EMERGENCY: ((RISES, FOLLOWS, LANDS, FALLS), FALLS, STANDS),
}


class EmulatedBody:
    """State of one robot. x east, y north, z up, m. Heading from east to the left, rad."""

    def __init__(self, robot: type[Robot]) -> None:
        """Start on the ground. A robot with takeoff stays there until it takes off."""
        self.time_s = self.x = self.y = self.z = self.heading = 0.0
        self.velocity = BodyVelocity()
        self.roll = self.pitch = 0.0
        self._robot, self._drone, self._hovers, self._battery_v = robot, robot.drone, robot.hovers, robot.battery_v
        #: Command that it follows, as `decode_command` returns it.
        self.wanted: Command = NEUTRALS[robot.drone is not None]
        self._phases = PHASES if "takeoff" in robot.requests else {}
        self.phase = STANDS if self._phases else FOLLOWS
        #: Whether the walls of the room stop it, and press its bumpers.
        self.has_walls = False
        self._lidar = EmulatedLidar(robot.lidar) if robot.lidar else None

    @property
    def is_moving(self) -> bool:
        return any(abs(part) > STANDING for part in self.velocity.components)

    def begin_in_the_air(self) -> None:
        """Hover, as after a takeoff."""
        self.z, self.phase = HOVER_HEIGHT, FOLLOWS

    def request(self, name: str) -> str:
        """Take off, land or cut the motors. Other requests have no effect. Return the reason of a refusal, or ""."""
        allowed, during, _ = self._phases.get(name, (None, "", ""))
        if allowed and self.phase in allowed:
            self.phase = during
        elif allowed and name != EMERGENCY:
            return f"it is {self.phase}"
        return ""

    def outcome(self, name: str) -> str | None:
        """Return "" once an accepted request is done, the reason if it failed, and None while it lasts."""
        _, during, done = self._phases.get(name, ((), "", self.phase))
        return None if self.phase == during else "" if self.phase == done else f"it is {self.phase}"

    def step(self, seconds: float) -> None:
        """Advance the time."""
        self.time_s += seconds
        wanted = as_commanded(self._robot, self.wanted) if self.phase == FOLLOWS else BodyVelocity()
        if self.phase in VERTICAL:
            wanted = BodyVelocity(up=VERTICAL[self.phase])
        elif isinstance(wanted, Shares) and self._hovers and wanted == Shares():
            wanted = BodyVelocity()
        if isinstance(wanted, Shares):
            self._tilt(wanted, seconds)
        else:
            share = min(1.0, seconds / RESPONSE_S)
            pairs = zip(self.velocity.components, wanted.components, strict=True)
            self.velocity = BodyVelocity(*(now + share * (then - now) for now, then in pairs))
            self.roll = self.pitch = 0.0
        cos, sin = math.cos(self.heading), math.sin(self.heading)
        before = self.x, self.y
        self.x += seconds * (cos * self.velocity.forward - sin * self.velocity.left)
        self.y += seconds * (sin * self.velocity.forward + cos * self.velocity.left)
        if self._touched(0.0):
            (self.x, self.y), self.velocity = before, BodyVelocity(turn=self.velocity.turn)
        self.z = max(0.0, self.z + seconds * self.velocity.up)
        self.heading = math.remainder(self.heading + seconds * self.velocity.turn, math.tau)
        if self.phase == RISES and self.z >= HOVER_HEIGHT:
            self.phase = FOLLOWS
        elif self.phase in (LANDS, FALLS) and self.z <= 0.0:
            self.phase, self.velocity = STANDS, BodyVelocity()
        if self._lidar:
            self._lidar.turn(self.time_s, PlanarPose(self.x, self.y, self.heading))

    def _tilt(self, shares: Shares, seconds: float) -> None:
        """Follow shares by the model of the drone. The velocity is level, so it turns with the heading."""
        drone, now = self._drone, self.velocity
        assert drone
        tilted, climbed = min(1.0, seconds / drone.tilt_lag), min(1.0, seconds / drone.climb_lag)
        self.pitch += tilted * (drone.max_tilt * shares.pitch - self.pitch)
        self.roll += tilted * (drone.max_tilt * shares.roll - self.roll)
        up = now.up + climbed * (drone.max_climb * shares.thrust - now.up)
        turn = now.turn + tilted * (drone.max_yaw_rate * shares.yaw - now.turn)
        speed = complex(now.forward, now.left)
        speed += seconds * (pull_of(self.roll, self.pitch) - drone.drag * speed)
        speed *= cmath.rect(1.0, -turn * seconds)
        self.velocity = BodyVelocity(speed.real, speed.imag, up, turn=turn)

    def _touched(self, within_m: float) -> tuple[Triple, ...]:
        """Return the bumpers that are so near to a wall."""
        places = self._robot.bumpers.values() if self.has_walls else ()
        free = ((place, distance(self.x, self.y, self.heading + math.atan2(place[1], place[0]))) for place in places)
        return tuple(place for place, free_m in free if free_m < math.hypot(*place[:2]) + within_m)

    def telemetry(self) -> Telemetry:
        """Return the measurements of its sensors."""
        charge = max(0.0, 1.0 - self.time_s / BATTERY_S)
        empty_v, full_v = self._battery_v
        place, rates = (self.x, self.y, self.z), (0.0, 0.0, self.velocity.turn)
        is_flying = self.phase not in (STANDS, FALLS) if self._phases else None
        return Telemetry(
            place,
            self.heading,
            self.velocity,
            voltage=empty_v + charge * (full_v - empty_v),
            charge=charge,
            height=self.z,
            roll=self.roll,
            pitch=self.pitch,
            rates=rates,
            is_flying=is_flying,
            is_charging=False,
            time_s=self.time_s,
            scan=self._lidar.scan if self._lidar else None,
            contacts=self._touched(TOUCH_M) if self._robot.bumpers else None,
        )
