# SPDX-License-Identifier: Apache-2.0
"""Steered: emulated vehicles whose bridges need only the velocity, without sockets."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from testbed_velocity_flights import frame_of, make_flight
from velocity_flights import STEP_S, Moment, encoded_command

from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.motion.matrices import Vector
from drone_bridge.motion.quaternions import euler_from_quaternion
from drone_bridge.motion.wxyz import WxyzQuaternion
from drone_bridge.robot.codec import SkidSteerUpdate
from drone_bridge.robot.units import SkidSteer
from drone_bridge.robot.vehicle.emulator import TrackedRobot
from drone_bridge.simulator import units
from drone_bridge.simulator.codec import VEHICLE, Attribute, SetEntity
from drone_bridge.simulator.vehicle.device.world import World as SimulatorWorld
from drone_bridge.simulator.vehicle.emulator.scene import SimulatedScene, add_default_environment
from drone_bridge.testbed.codec import REPLY, AngleUnit, MotionParameters, pack_reply
from drone_bridge.testbed.vehicle.device.drone_state import Airframe
from drone_bridge.testbed.vehicle.device.drone_state import DroneInput as TestbedMotion
from drone_bridge.testbed.vehicle.emulator.world import Sphere, SphereWorld
from drone_bridge.testbed.vehicle.emulator.world import WorldFlight as TestbedEmulator


class TestbedDrone:
    """The testbed's drone, in the layout with positions."""

    step_s = 1 / 60

    def __init__(self, gusts: float = 0.0, seed: int = 0) -> None:
        self._bridge = make_flight()
        world = SphereWorld((Sphere((0.0, 0.0, 1e6), 1.0),))
        self._flight = TestbedEmulator(world, Airframe(), self.step_s, gusts, seed)

    def advance(self, wanted: BodyVelocity) -> None:
        """Move for a step, following a velocity like its bridge."""
        self._bridge.reported(self._bridge.measurement(frame_of("pose", self._flight.state)), 0.0)
        answer, _ = self._bridge.answer(wanted)
        motion = MotionParameters(*REPLY.unpack(encoded_command(pack_reply, answer)))
        self._flight.advance(TestbedMotion.from_answer(motion, AngleUnit.DEGREES))

    def state(self) -> tuple[Vector, Vector, float]:
        """Return position, m, velocity, m/s, and heading, rad, in the world."""
        state = self._flight.state
        (x, y, z), (vx, vy, vz) = state.position.tolist(), state.velocity.tolist()
        return np.array([x, -z, y]), np.array([vx, -vz, vy]), math.pi / 2 - math.radians(state.angles[0])


class Robot:
    """The tracked robot."""

    step_s = 0.02

    def __init__(self) -> None:
        self._robot = TrackedRobot()
        chassis = self._robot.chassis
        self._skid_steer = SkidSteer(chassis.wheel_separation, chassis.max_speed)

    def advance(self, wanted: BodyVelocity) -> None:
        speeds = self._skid_steer.speeds(self._skid_steer.within_maxima(wanted))
        update = SkidSteerUpdate.decode(encoded_command(SkidSteerUpdate.encode, SkidSteerUpdate(0, *speeds)))
        self._robot.drive(update.left, update.right)
        self._robot.advance(self.step_s)

    def state(self) -> tuple[Vector, Vector, float]:
        robot = self._robot
        velocity = robot.speed * np.array([math.cos(robot.heading), math.sin(robot.heading), 0.0])
        return np.array([robot.x, robot.y, 0.0]), velocity, robot.heading


class Submarine:
    """The underwater simulator's vehicle, whose velocities are set 50 times per second."""

    step_s = 0.01
    _EVERY = 2

    def __init__(self) -> None:
        self._scene = SimulatedScene(self.step_s, lambda sentence: None)
        add_default_environment(SimulatorWorld(self._scene), self._scene)
        self._steps = 0

    def advance(self, wanted: BodyVelocity) -> None:
        if self._steps % self._EVERY == 0:
            for request in units.set_velocity(VEHICLE, wanted, self._attitude()):
                read = SetEntity.decode(encoded_command(SetEntity.encode, request))
                self._scene.set_attribute(VEHICLE, read.attribute, read.value)
        self._steps += 1
        self._scene.step()

    def state(self) -> tuple[Vector, Vector, float]:
        return self._vector(Attribute.POSITION), self._vector(Attribute.VELOCITY), self._yaw

    @property
    def _yaw(self) -> float:
        return euler_from_quaternion(units.orientation(self._attitude()))[2]

    def _vector(self, attribute: Attribute) -> Vector:
        x, y, z = self._scene.attribute(VEHICLE, attribute)  # type: ignore[misc]
        return np.array(units.world(x, y, z))

    def _attitude(self) -> WxyzQuaternion:
        return self._scene.attribute(VEHICLE, Attribute.ORIENTATION)  # type: ignore[return-value]


def drive(
    vehicle: TestbedDrone | Robot | Submarine, wanted: Callable[[float], BodyVelocity], duration_s: float
) -> list[Moment]:
    """Follow velocities. A command reaches the vehicle with the next step. Return its state every STEP_S."""
    moments: list[Moment] = []
    time_s = 0.0
    while time_s < duration_s:
        vehicle.advance(wanted(time_s))
        time_s += vehicle.step_s
        while len(moments) * STEP_S < time_s:
            moments.append(Moment(len(moments) * STEP_S, *vehicle.state()))
    return moments
