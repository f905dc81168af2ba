# SPDX-License-Identifier: Apache-2.0
"""Velocity flights of drones that are steered by tilt, and their braking, with a fake clock.

The emulated drones are steered by the control laws and translations of their bridges, which see only what the wire
carries, at the rates of the wire, without sockets. Their commands pass the codec, as from a bridge: an unencodable
number ends the program.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Protocol, TypeVar

import numpy as np

from drone_bridge.ar_drone.drone import AR_DRONE
from drone_bridge.ar_drone.flight import ArDroneFlight, FlightPhase
from drone_bridge.dronegui import units
from drone_bridge.dronegui.codec import ControllerConnection, ControlPacket, Controls, Demo, ReceiverConnection
from drone_bridge.dronegui.session.controller import HOVER
from drone_bridge.dronegui.vehicle.emulator.navdata import blocks
from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.motion.matrices import Vector
from drone_bridge.motion.tilted_drone import Motion, Shares, TiltedDrone
from drone_bridge.session.arbiter import Decision, Rank
from drone_bridge.session.tilt_pilot import TiltPilot
from drone_bridge.telemetry import codec as telemetry
from drone_bridge.telemetry.codec import PERIOD_S
from drone_bridge.telemetry.units import LANDING_DRONE, Units
from drone_bridge.telemetry.vehicle.emulator.world import FlightSetup, LandingFlight
from drone_bridge.wire.outgoing import encoded

STEP_S = 0.01
#: Delays from a measurement to the bridge, and from the bridge to the drone.
DELAY_S = 0.01
FLYING_S = 5.0  # before a drone is stopped
STOPPING_S = 3.0
STANDING_S = 10.0

CommandT = TypeVar("CommandT")


def encoded_command(send: Callable[[CommandT], bytes], command: CommandT) -> bytes:
    """Return a command as sent by a bridge. Raises ValueError if neutral is sent instead."""

    def refuse(sentence: str) -> None:
        raise ValueError(sentence)

    data = encoded(send, command, None, refuse)
    assert data is not None
    return data


class Vehicle(Protocol):
    """An emulated drone in the air that is commanded by tilt."""

    drone: TiltedDrone
    rate: float  # of commands, Hz
    hovers: bool  # by itself, without shares

    def advance(self) -> Motion | None:
        """Fly for STEP_S. Return the measurement if one is due."""

    def follow(self, shares: Shares | None) -> None:
        """Apply shares from now on. None: the drone's own neutral."""

    def state(self) -> tuple[Vector, Vector, float]:
        """Return position, m, velocity, m/s, and heading, rad, in the world."""


class GuiDrone:
    """The AR.Drone, 1 m up."""

    drone, rate, hovers = AR_DRONE, 20.0, True

    def __init__(self, gusts: float, seed: int) -> None:
        self._flight = ArDroneFlight(gusts=gusts, seed=seed)
        self._flight.take_off()
        self._flight.steer(HOVER)
        while self._flight.phase is not FlightPhase.FLYING:
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
        return units.measurement(demo).motion

    def follow(self, shares: Shares | None) -> None:
        controls: Controls = HOVER if shares is None else units.controls(shares)
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
        self._flight = LandingFlight(FlightSetup(seed=seed, gusts=gusts, height=height, images=False))
        self._units = Units()
        self._flown = 0
        self._wire = telemetry.DroneConnection()

    def advance(self) -> Motion | None:
        # In whole frames: a command that arrives during one is applied from its end on.
        self._flown += 1
        if self._flown % round(PERIOD_S / STEP_S):
            return None
        return self._units.measurement(self._flight.advance()).motion

    def follow(self, shares: Shares | None) -> None:
        command = self._units.command(shares or Shares())
        self._wire.receive_data(encoded_command(telemetry.ControllerConnection().send, command))
        read = self._wire.next_event()
        assert isinstance(read, telemetry.DroneCommand)
        self._flight.follow_command(read)

    def state(self) -> tuple[Vector, Vector, float]:
        drone = self._flight.drone
        return drone.position.copy(), drone.velocity.copy(), drone.yaw


@dataclass(frozen=True, slots=True)
class Moment:
    """One step of a flight, seen from outside."""

    time: float  # s
    place: Vector  # m
    velocity: Vector  # m/s
    yaw: float  # rad
    doubts: tuple[str, ...] = ()  # about the vehicle's reports

    @property
    def forward(self) -> float:
        """The speed forward, m/s."""
        return float(math.cos(self.yaw) * self.velocity[0] + math.sin(self.yaw) * self.velocity[1])


def fly(
    vehicle: Vehicle,
    wanted: Callable[[float], BodyVelocity],
    duration_s: float,
    *,
    delay_s: float = DELAY_S,
    lost_s: float = math.inf,
    lie: Callable[[Motion, float], Motion] = lambda motion, now_s: motion,
) -> list[Moment]:
    """Fly velocities like a bridge. `wanted` returns one by time. From `lost_s` on, there are no measurements."""
    now_s, flight = 0.0, []
    arbiter: Any = SimpleNamespace(decide=lambda now_s: Decision(Rank.COMMAND, wanted(now_s)), forget=lambda: None)
    pilot = TiltPilot(arbiter, vehicle.drone, hovers=vehicle.hovers)
    pilot.restart(-1 / vehicle.rate)
    measured: deque[tuple[float, Motion]] = deque()
    told: deque[tuple[float, Shares | None]] = deque()
    due_s = 0.0
    for number in range(round(duration_s / STEP_S)):
        now_s = number * STEP_S
        while measured and measured[0][0] <= now_s:
            pilot.measured(measured.popleft()[1], now_s)
        if now_s >= due_s:
            due_s += 1 / vehicle.rate
            told.append((now_s + delay_s, pilot.shares(now_s)))
        while told and told[0][0] <= now_s:
            vehicle.follow(told.popleft()[1])
        motion = vehicle.advance()
        if motion and now_s < lost_s:
            measured.append((now_s + STEP_S + delay_s, lie(motion, now_s)))
        flight.append(Moment(now_s, *vehicle.state(), tuple(pilot.doubts)))
    return flight


@dataclass(frozen=True, slots=True)
class Stop:
    """Response of a vehicle to a forward velocity from rest, followed by zero."""

    speed: float  # m/s, the mean forward from 2 s on
    way: float  # m, from the zero on until it stands
    drift: float  # m, at most, in the 10 s from then on


#: Function from velocities by time and a duration to the vehicle's state every STEP_S.
Fly = Callable[[Any, Callable[[float], BodyVelocity], float], list[Moment]]


def stop(vehicle: Any, speed: float, fly: Fly = fly) -> Stop:
    """Go forward at a speed, m/s, and stop."""
    end_s = FLYING_S + STOPPING_S + STANDING_S
    flight = fly(vehicle, lambda s: BodyVelocity(speed) if s < FLYING_S else BodyVelocity(), end_s)
    flying, stopping = round(FLYING_S / STEP_S), round((FLYING_S + STOPPING_S) / STEP_S)
    return Stop(
        float(np.mean([moment.forward for moment in flight[round(2.0 / STEP_S) : flying]])),
        farthest(flight[flying:stopping]),
        farthest(flight[stopping:]),
    )


def farthest(flight: list[Moment]) -> float:
    """Return the horizontal distance of a vehicle from its start, m."""
    return max(float(np.linalg.norm((moment.place - flight[0].place)[:2])) for moment in flight)
