# SPDX-License-Identifier: Apache-2.0
"""Closed loop of land_on_pad with a fake clock: emulated vehicle, bridge, and behaviour."""

from collections import deque
from types import SimpleNamespace

import numpy as np

from drone_bridge.controllers.land_on_pad.pilot import LandOnPad, LandState, PadSighting, StampedMeasurements
from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.motion.matrices import rotation_from_angles
from drone_bridge.session.arbiter import Decision, Rank
from drone_bridge.session.tilt_pilot import TiltPilot
from drone_bridge.telemetry.codec import PERIOD_S
from drone_bridge.telemetry.units import LANDING_DRONE, Units
from drone_bridge.telemetry.vehicle.emulator.rover import RoverPattern
from drone_bridge.telemetry.vehicle.emulator.world import FlightSetup, LandingFlight

PATTERNS = ("stationary", "linear", "circular", "square", "random")


class BridgePilot:
    """Velocity control of telemetry_bridge: a command for each of the drone's documents."""

    def __init__(self):
        self._velocity = BodyVelocity()
        arbiter = SimpleNamespace(decide=lambda _: Decision(Rank.COMMAND, self._velocity))
        self._pilot = TiltPilot(arbiter, LANDING_DRONE, hovers=False)
        self._units = Units()

    def command(self, telemetry, velocity):
        """Return the command for a velocity, given the drone's measurements."""
        if telemetry.landed:
            self._pilot.grounded(telemetry.timestamp)
        else:
            self._pilot.measured(self._units.measurement(telemetry).motion, telemetry.timestamp)
        self._velocity = velocity
        return self._units.command(self._pilot.shares(telemetry.timestamp))


class PadFlight:
    """Landing from its start, in simulated time.

    `setup` are fields of the emulator's FlightSetup. `sees(flight)` returns whether a sighting is delivered. `delay` is
    the delay of a command, steps. One of `sight_every` sightings is used, with a delay of `sight_delay` steps.
    """

    def __init__(
        self,
        pattern="stationary",
        seed=0,
        *,
        away=None,
        delay=1,
        sight_every=1,
        sight_delay=0,
        sees=lambda flight: True,
        tells_landed=True,
        **setup,
    ):
        self.vehicle = LandingFlight(FlightSetup(seed, RoverPattern(pattern), images=False, **setup))
        if away is not None:
            self.drone.position[:2] = away
        self.behaviour = LandOnPad()
        self._pilot = BridgePilot()
        self.decisions = []
        self.sees, self._tells_landed = sees, tells_landed
        self._sight_every, self._sight_delay, self._delay = sight_every, sight_delay, delay
        self._waiting, self._sightings = deque(), deque()
        self.step = 0

    @property
    def world(self):
        return self.vehicle.world

    @property
    def drone(self):
        return self.vehicle.drone

    def measure(self):
        """Advance by one frame, and return the measurements."""
        told = self._told = self.vehicle.advance()
        roll, pitch, yaw = told.imu.orientation
        rotation, turn = rotation_from_angles(roll, pitch, yaw), rotation_from_angles(0.0, 0.0, yaw)
        if self.step % self._sight_every == 0 and (sighting := self._sighting(told, turn)):
            self._sightings.append((self.step + self._sight_delay, sighting))
        sighting = None
        while self._sightings and self._sightings[0][0] <= self.step:
            sighting = self._sightings.popleft()[1]
        self.step += 1
        return StampedMeasurements(
            stamp=told.timestamp,
            rotation=rotation,
            velocity=turn @ np.array(told.velocity),
            altitude=told.altimeter.altitude,
            sighting=sighting,
            landed=told.landed and self._tells_landed,
        )

    def _sighting(self, told, turn):
        pad = told.landing_pad
        if pad is None or not self.sees(self):
            return None
        offset = turn @ np.array([pad.relative_x, pad.relative_y, -pad.distance])
        deviation = 0.01 + 0.015 * pad.distance
        return PadSighting(told.timestamp, offset, deviation, deviation)

    def advance(self):
        """Fly until the next measurement, and decide."""
        decision = self.behaviour.update(self.measure())
        self.decisions.append(decision)
        self._waiting.append(self._pilot.command(self._told, decision.command))
        if len(self._waiting) > self._delay:
            self.vehicle.follow_command(self._waiting.popleft())
        return decision

    def until(self, condition, longest_s=60.0):
        """Fly until a decision meets the condition."""
        for _ in range(round(longest_s / PERIOD_S)):
            if condition(self.advance()):
                return self
        raise AssertionError(f"not within {longest_s} s; last: {self.decisions[-1]}")

    def land(self, longest_s=60.0):
        """Fly until the behaviour reports the landing. Return the touchdown."""
        self.until(lambda decision: decision.state is LandState.LANDED, longest_s)
        assert self.vehicle.touchdown, "it says that it has landed, and flies"
        return self.vehicle.touchdown

    @property
    def states(self):
        """States in order, with repeats."""
        states = [decision.state for decision in self.decisions]
        return [state for index, state in enumerate(states) if index == 0 or states[index - 1] is not state]
