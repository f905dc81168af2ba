# SPDX-License-Identifier: Apache-2.0
"""Flights by velocities of the five vehicles, and how they stop, without a clock.

The emulated vehicles are steered by the control laws and translations of their bridges, which see only what the wire
carries, at the rates of the wire, without sockets. What they compute goes through the codec, as from a bridge: a number
that the wire can't carry ends the program.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeVar

import numpy as np
from geometry_msgs.msg import Twist

from drone_bridge.dronegui.bridge import AR_DRONE
from drone_bridge.dronegui.codec import ControllerConnection, ControlPacket, Controls, Demo, ReceiverConnection
from drone_bridge.dronegui.emulator import Flight, Phase, blocks
from drone_bridge.dronegui.session.controller import HOVER
from drone_bridge.dronegui.topics import controls_from_shares, measured_motion
from drone_bridge.motion.matrices import Vector
from drone_bridge.motion.quaternions import Quaternion, euler_from_quaternion
from drone_bridge.motion.tilt_control import TiltControl
from drone_bridge.motion.tilted_drone import Motion, Shares, TiltedDrone, Velocity
from drone_bridge.motion.velocity_control import VelocityCommand, VelocityParameters
from drone_bridge.robot.codec import SkidSteerUpdate
from drone_bridge.robot.emulator import TrackedRobot
from drone_bridge.robot.topics import SkidSteer
from drone_bridge.simulator.codec import VEHICLE, Attribute, SetEntity
from drone_bridge.simulator.device.world import World as SimulatorWorld
from drone_bridge.simulator.emulator.scene import SimulatedScene, add_default_environment
from drone_bridge.simulator.topics import Velocity as SimulatorVelocity
from drone_bridge.simulator.topics import axes, set_velocity
from drone_bridge.telemetry import codec as telemetry
from drone_bridge.telemetry.bridge import LANDING_DRONE
from drone_bridge.telemetry.codec import PERIOD_S
from drone_bridge.telemetry.emulator.world import LandingFlight, Setup
from drone_bridge.telemetry.topics import TABLE, Signs, command_from_shares
from drone_bridge.testbed.bridge.flight import TestbedFlight
from drone_bridge.testbed.codec import REPLY, AngleUnit, Constants, MotionParameters, SensorFrame, pack_reply
from drone_bridge.testbed.device.drone_state import Airframe
from drone_bridge.testbed.device.drone_state import Motion as TestbedMotion
from drone_bridge.testbed.emulator.world import Flight as TestbedEmulator
from drone_bridge.testbed.emulator.world import Sphere, World
from drone_bridge.testbed.topics import pose
from drone_bridge.wire.outgoing import encoded

STEP_S = 0.01
#: From a measurement to the bridge, and from the bridge to the drone.
DELAY_S = 0.01
#: As in the bridges: what was measured before is not flown by.
FRESH_S = 0.2
FLYING_S = 5.0  # before a drone is told to stop
STOPPING_S = 3.0
STANDING_S = 10.0
SPEEDS = (0.5, 1.5, 2.0)  # m/s; the last one is the default limit, and needs all of the AR.Drone's tilt for a while
GUSTS = (0.0, 0.3)  # m/s


CommandT = TypeVar("CommandT")


def encoded_command(send: Callable[[CommandT], bytes], command: CommandT) -> bytes:
    """Return a command as a bridge sends it. Raises ValueError for what is sent as neutral instead."""

    def refuse(sentence: str) -> None:
        raise ValueError(sentence)

    data = encoded(send, command, None, refuse)
    assert data is not None
    return data


class Vehicle(Protocol):
    """An emulated drone in the air that is commanded by tilt."""

    drone: TiltedDrone
    rate: float  # of commands, Hz
    hovers: bool  # by itself, when it gets no shares

    def advance(self) -> Motion | None:
        """Fly for STEP_S; return what is measured, if it is time for that."""

    def follow(self, shares: Shares | None) -> None:
        """Follow shares from now on; None is the drone's own neutral."""

    def state(self) -> tuple[Vector, Vector, float]:
        """Return position, m, velocity, m/s, and heading, rad, in the world."""


class GuiDrone:
    """The AR.Drone, 1 m up."""

    drone, rate, hovers = AR_DRONE, 20.0, True

    def __init__(self, gusts: float, seed: int) -> None:
        self._flight = Flight(gusts=gusts, seed=seed)
        self._flight.take_off()
        self._flight.steer(HOVER)
        while self._flight.phase is not Phase.FLYING:
            self._flight.advance(STEP_S)
        self._told_s, self._number = -math.inf, 0
        self._bridge, self._gui = ControllerConnection(), ReceiverConnection()

    def advance(self) -> Motion | None:
        self._flight.advance(STEP_S)
        if self._flight.time - self._told_s < 0.069:  # 14.4 Hz
            return None
        self._told_s = self._flight.time
        self._number += 1
        demo = blocks(self._flight, self._number)[0]
        assert isinstance(demo, Demo)
        return measured_motion(demo)

    def follow(self, shares: Shares | None) -> None:
        controls: Controls = HOVER if shares is None else controls_from_shares(shares)
        self._gui.receive_data(encoded_command(self._bridge.send, controls))
        packet = self._gui.next_event()
        assert isinstance(packet, ControlPacket)
        self._flight.steer(packet.controls)

    def state(self) -> tuple[Vector, Vector, float]:
        return self._flight.position.copy(), self._flight.velocity.copy(), self._flight.yaw


class LandingDrone:
    """The landing challenge's drone."""

    drone, rate, hovers = LANDING_DRONE, 25.0, False

    def __init__(self, gusts: float, seed: int, height: float = 2.0) -> None:
        self._flight = LandingFlight(Setup(seed=seed, gusts=gusts, height=height, images=False))
        self._translation: Any = TABLE.make_translation()
        self._flown = 0
        self._wire = telemetry.DroneConnection()

    def advance(self) -> Motion | None:
        # In whole frames: a command that comes during one is followed from its end on.
        self._flown += 1
        if self._flown % round(PERIOD_S / STEP_S):
            return None
        motion: Motion = self._translation.motion(self._flight.advance())
        return motion

    def follow(self, shares: Shares | None) -> None:
        command = command_from_shares(shares or Shares(), Signs())
        self._wire.receive_data(encoded_command(telemetry.ControllerConnection().send, command))
        read = self._wire.next_event()
        assert isinstance(read, telemetry.DroneCommand)
        self._flight.follow_command(read)

    def state(self) -> tuple[Vector, Vector, float]:
        drone = self._flight.drone
        return drone.position.copy(), drone.velocity.copy(), drone.yaw


class Steered(Protocol):
    """An emulated vehicle whose bridge needs nothing but the velocity."""

    step_s: float

    def advance(self, wanted: Velocity) -> None:
        """Move for a step, as its bridge has it follow a velocity."""

    def state(self) -> tuple[Vector, Vector, float]:
        """Return position, m, velocity, m/s, and heading, rad, in the world."""


class TestbedDrone:
    """The testbed's drone, in the layout with positions."""

    step_s = 1 / 60

    def __init__(self, gusts: float = 0.0, seed: int = 0) -> None:
        airframe, unit = Airframe(), AngleUnit.DEGREES
        fastest = 720.0  # degrees per second
        constants = Constants(
            90.0, 90.0, 1, 1, 0.25, airframe.mass, airframe.gravity, airframe.drag, 25.0, fastest, fastest, fastest
        )
        self._bridge = TestbedFlight(constants, unit, VelocityParameters(), partial(pose, unit=unit))
        world = World((Sphere((0.0, 0.0, 1e6), 1.0),))
        self._flight = TestbedEmulator(world, airframe, self.step_s, gusts, seed)

    def advance(self, wanted: Velocity) -> None:
        state = self._flight.state
        heading, pitch, roll = (float(np.float32(angle)) for angle in state.angles)
        x, y, z = (float(np.float32(value)) for value in state.position)
        frame = SensorFrame(b"", b"", float(np.float32(state.time)), pitch, roll, heading, (x, y, z))
        self._bridge.see(frame)
        answer, _ = self._bridge.answer(VelocityCommand(*wanted))
        motion = MotionParameters(*REPLY.unpack(encoded_command(pack_reply, answer)))
        self._flight.advance(TestbedMotion(motion.pitch_rate, motion.roll_rate, motion.yaw_rate, motion.thrust))

    def state(self) -> tuple[Vector, Vector, float]:
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

    def advance(self, wanted: Velocity) -> None:
        twist = Twist()
        twist.linear.x, twist.angular.z = wanted.forward, wanted.yaw_rate
        speeds, _ = self._skid_steer.speeds(twist)
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

    def advance(self, wanted: Velocity) -> None:
        if self._steps % self._EVERY == 0:
            command = SimulatorVelocity((wanted.forward, wanted.left, wanted.up), (0.0, 0.0, wanted.yaw_rate))
            for request in set_velocity(VEHICLE, command, self._orientation()):
                read = SetEntity.decode(encoded_command(SetEntity.encode, request))
                self._scene.set_attribute(VEHICLE, read.attribute, read.value)
        self._steps += 1
        self._scene.step()

    def state(self) -> tuple[Vector, Vector, float]:
        return self._vector(Attribute.POSITION), self._vector(Attribute.VELOCITY), self._yaw

    @property
    def _yaw(self) -> float:
        return euler_from_quaternion(self._orientation())[2]

    def _vector(self, attribute: Attribute) -> Vector:
        x, y, z = self._scene.attribute(VEHICLE, attribute)  # type: ignore[misc]
        return np.array(axes.world(x, y, z))

    def _orientation(self) -> Quaternion:
        return axes.orientation(self._scene.attribute(VEHICLE, Attribute.ORIENTATION))  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Moment:
    """One step of a flight, seen from outside."""

    time: float  # s
    place: Vector  # m
    velocity: Vector  # m/s
    yaw: float  # rad

    @property
    def forward(self) -> float:
        """The speed forward, m/s."""
        return float(math.cos(self.yaw) * self.velocity[0] + math.sin(self.yaw) * self.velocity[1])


def fly(
    vehicle: Vehicle,
    wanted: Callable[[float], Velocity],
    duration_s: float,
    *,
    delay_s: float = DELAY_S,
    lost_s: float = math.inf,
) -> list[Moment]:
    """Fly velocities as a bridge does. `wanted` gives one by time; from `lost_s` on nothing is measured any more."""
    control, flight = TiltControl(vehicle.drone), []
    measured: deque[tuple[float, Motion]] = deque()
    told: deque[tuple[float, Shares | None]] = deque()
    heard_s, due_s = -math.inf, 0.0
    for number in range(round(duration_s / STEP_S)):
        now_s = number * STEP_S
        while measured and measured[0][0] <= now_s:
            control.measure(measured.popleft()[1])
            heard_s = now_s
        if now_s >= due_s:
            due_s += 1 / vehicle.rate
            is_blind = now_s - heard_s > FRESH_S
            velocity = wanted(now_s)
            shares: Shares | None = control.command(velocity, 1 / vehicle.rate, is_blind=is_blind)
            is_neutral = is_blind and vehicle.hovers and velocity == Velocity()
            told.append((now_s + delay_s, None if is_neutral else shares))
        while told and told[0][0] <= now_s:
            vehicle.follow(told.popleft()[1])
        motion = vehicle.advance()
        if motion and now_s < lost_s:
            measured.append((now_s + STEP_S + delay_s, motion))
        flight.append(Moment(now_s, *vehicle.state()))
    return flight


def drive(vehicle: Steered, wanted: Callable[[float], Velocity], duration_s: float) -> list[Moment]:
    """Follow velocities; a command reaches the vehicle with the next step. Return its state every STEP_S."""
    moments: list[Moment] = []
    time_s = 0.0
    while time_s < duration_s:
        vehicle.advance(wanted(time_s))
        time_s += vehicle.step_s
        while len(moments) * STEP_S < time_s:
            moments.append(Moment(len(moments) * STEP_S, *vehicle.state()))
    return moments


def follow(vehicle: Vehicle | Steered, wanted: Callable[[float], Velocity], duration_s: float) -> list[Moment]:
    """Follow velocities with any of the five."""
    if isinstance(vehicle, (GuiDrone, LandingDrone)):
        return fly(vehicle, wanted, duration_s)
    return drive(vehicle, wanted, duration_s)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Stop:
    """How a vehicle followed a velocity forward from rest, and a zero after it."""

    speed: float  # m/s, the mean forward from 2 s on
    way: float  # m, from the zero on until it stands
    drift: float  # m, at most, in the 10 s from then on


def stop(vehicle: Vehicle | Steered, speed: float) -> Stop:
    """Go forward at a speed, m/s, and stop."""
    end_s = FLYING_S + STOPPING_S + STANDING_S
    flight = follow(vehicle, lambda s: Velocity(speed) if s < FLYING_S else Velocity(), end_s)
    flying, stopping = round(FLYING_S / STEP_S), round((FLYING_S + STOPPING_S) / STEP_S)
    return Stop(
        float(np.mean([moment.forward for moment in flight[round(2.0 / STEP_S) : flying]])),
        farthest(flight[flying:stopping]),
        farthest(flight[stopping:]),
    )


def farthest(flight: list[Moment]) -> float:
    """Return how far a vehicle came from where it began, horizontally, m."""
    return max(float(np.linalg.norm((moment.place - flight[0].place)[:2])) for moment in flight)


#: How each is made, by gusts and a seed; in which gusts, m/s; and at which speeds it goes, m/s.
VEHICLES: dict[str, tuple[Callable[[float, int], Vehicle | Steered], tuple[float, ...], tuple[float, ...]]] = {
    "AR.Drone": (GuiDrone, GUSTS, SPEEDS),
    "landing drone": (LandingDrone, GUSTS, SPEEDS),
    "testbed's drone": (TestbedDrone, GUSTS, SPEEDS),
    "submarine": (lambda gusts, seed: Submarine(), (0.0,), SPEEDS),
    "tracked robot": (lambda gusts, seed: Robot(), (0.0,), (0.5, 1.0)),  # which is as fast as it can
}
