# SPDX-License-Identifier: Apache-2.0
"""The simulated drone of an emulated testbed: a flight through a world, seen by two cameras."""

from __future__ import annotations

from dataclasses import dataclass

from drone_bridge.programs.program import TrajectoryFile, say
from drone_bridge.testbed.codec import AngleUnit, Constants, MotionParameters, SensorFrame
from drone_bridge.testbed.device.motion import Airframe, Motion, degrees_per_unit
from drone_bridge.testbed.emulator.flight import Flight
from drone_bridge.testbed.emulator.stereo_camera import StereoCamera
from drone_bridge.testbed.emulator.world import World


@dataclass(frozen=True, slots=True)
class Scenario:
    """The initial conditions of every flight."""

    world: World
    airframe: Airframe
    camera: StereoCamera
    constants: Constants
    angle_unit: AngleUnit
    step: float  # s
    gusts: float  # m/s
    seed: int
    restart_every: int | None = None  # steps after which a new simulation starts on the same connection

    def flight(self) -> Flight:
        return Flight(self.world, self.airframe, self.step, self.gusts, self.seed)


class SimulatedDrone:
    """A drone that advances one step of simulated time per answer."""

    def __init__(self, scenario: Scenario, trajectory: TrajectoryFile | None) -> None:
        self.steps = 0  # of all flights
        self.flight = scenario.flight()
        self._scenario = scenario
        self._degrees_per_unit = degrees_per_unit(scenario.angle_unit)
        self._trajectory = trajectory
        self._record(Motion())

    @property
    def constants(self) -> Constants:
        return self._scenario.constants

    def sense(self) -> SensorFrame:
        """Return the current frame, with the values of all layouts."""
        state = self.flight.state
        left, right = self._scenario.camera.render(state, self._scenario.world.spheres)
        heading, pitch, roll = (angle / self._degrees_per_unit for angle in state.angles)
        x, y, z = state.position.tolist()
        return SensorFrame(left.data, right.data, state.time, pitch, roll, yaw=heading, position=(x, y, z))

    def fly(self, motion: MotionParameters) -> None:
        """Fly one step, and start over when the scenario requires it."""
        flown = Motion.from_answer(motion, self._scenario.angle_unit)
        was_reached = self.flight.reached_at is not None
        self.flight.advance(flown)
        self.steps += 1
        self._record(flown)
        if self.flight.reached_at is not None and not was_reached:
            say(f"target reached at t={self.flight.reached_at:.2f} s, distance {self.flight.distance:.2f} m")
        restart_every = self._scenario.restart_every
        if restart_every and self.flight.steps >= restart_every and not self.flight.has_left_the_world:
            self.flight = self._scenario.flight()
            self._record(Motion())
            say("a new simulation has started")

    def _record(self, motion: Motion) -> None:
        if self._trajectory:
            if self.flight.steps == 0:
                self._trajectory.restart()
            self._trajectory.write(self.flight.row(motion))
