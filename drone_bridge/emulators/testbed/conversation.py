# SPDX-License-Identifier: Apache-2.0
"""One conversation of the testbed with an autopilot: frames out, motion in, a flight through a world in between."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

from drone_bridge.emulators.faults import Fault
from drone_bridge.emulators.testbed.flight import Flight
from drone_bridge.emulators.testbed.stereo_camera import StereoCamera
from drone_bridge.emulators.testbed.world import Airframe, Motion, World
from drone_bridge.links.cancellation import Cancellation
from drone_bridge.links.errors import LinkError
from drone_bridge.links.pace import Pace
from drone_bridge.links.tcp import TcpStream
from drone_bridge.programs.program import TrajectoryFile, say
from drone_bridge.protocols.testbed import (
    NEED_DATA,
    AngleUnit,
    AttitudeLayout,
    ConnectionClosed,
    Constants,
    SensorFrame,
    TestbedConnection,
)

_NAN_FLOAT32 = b"\x7f\xc0\x00\x00"
_RECEIVE_BYTES = 256


class FaultKind(str, Enum):
    """What can be made to go wrong in one frame of the first conversation."""

    TRUNCATE = "truncate"  # half of the frame, then the connection is closed
    STALL = "stall"  # half of the frame, then nothing more
    GARBAGE = "garbage"  # not a number where the frame's floats belong


@dataclass(frozen=True, slots=True)
class Setup:
    """What stays the same from conversation to conversation."""

    world: World
    airframe: Airframe
    camera: StereoCamera
    constants: Constants
    layout: AttitudeLayout
    angle_unit: AngleUnit
    step: float  # s
    steps: float  # after which the flight is over, may be infinite
    gusts: float  # m/s
    seed: int
    realtime: bool
    until_reached: bool
    fault: Fault[FaultKind] | None
    restart_every: int | None = None  # steps after which a new simulation starts on the same connection
    default_sockets: bool = False  # as programs do that leave Nagle's algorithm on and send a frame in pieces

    @property
    def degrees_per_unit(self) -> float:
        """How many degrees the wire's unit of angle has."""
        return 1.0 if self.angle_unit is AngleUnit.DEGREES else math.degrees(1)


class Conversation:
    """One flight with one autopilot."""

    def __init__(
        self, setup: Setup, stream: TcpStream, cancellation: Cancellation, trajectory: TrajectoryFile | None
    ) -> None:
        self.steps = 0  # of all flights
        self._setup = setup
        self.flight = self._new_flight()
        self._stream = stream
        self._cancellation = cancellation
        self._trajectory = trajectory
        self._protocol = TestbedConnection(setup.layout, setup.angle_unit)

    def run(self, fault: Fault[FaultKind] | None) -> bool:
        """Fly until the flight is over (True), or the autopilot or the drone has left (False).

        Raises ProtocolError and LinkError, LinkCancelledError among them.
        """
        if self._setup.default_sockets:
            self._stream.wait_for_acknowledgements()
        self._record(Motion())
        self._stream.send_all(self._protocol.send(self._setup.constants))
        pace = Pace(self._cancellation)
        while not self._is_over():
            self._send_frame(fault)
            motion = self._receive_motion()
            if motion is None:
                say("the autopilot has left")
                return False
            was_reached = self.flight.reached_at is not None
            self.flight.advance(motion)
            self.steps += 1
            self._record(motion)
            if self.flight.has_left_the_world:
                say("the drone has left the world")
                return False
            if self.flight.reached_at is not None and not was_reached:
                say(f"target reached at t={self.flight.reached_at:.2f} s, distance {self.flight.distance:.2f} m")
            if self._setup.restart_every and self.flight.steps >= self._setup.restart_every:
                self.flight = self._new_flight()
                self._record(Motion())
                say("a new simulation has started")
            if self._setup.realtime:
                pace.wait(self._setup.step)
        return True

    def _is_over(self) -> bool:
        reached = self._setup.until_reached and self.flight.reached_at is not None
        return reached or self.steps >= self._setup.steps

    def _new_flight(self) -> Flight:
        setup = self._setup
        return Flight(setup.world, setup.airframe, setup.step, setup.gusts, setup.seed)

    def _record(self, motion: Motion) -> None:
        if self._trajectory:
            if self.flight.steps == 0:
                self._trajectory.restart()
            self._trajectory.write(self.flight.row(motion))

    def _send_frame(self, fault: Fault[FaultKind] | None) -> None:
        state = self.flight.state
        left, right = self._setup.camera.render(state, self._setup.world.spheres)
        heading, pitch, roll = (angle / self._setup.degrees_per_unit for angle in state.angles)
        x, y, z = state.position.tolist()
        frame = SensorFrame(left.data, right.data, state.time, pitch, roll, yaw=heading, position=(x, y, z))
        data = self._protocol.send(frame)
        if fault and fault.at == self.steps:
            self._send_faulty(fault.kind, data)
        elif self._setup.default_sockets:
            size, image = len(data), self._setup.constants.image_bytes
            for start, end in ((0, image), (image, 2 * image), (2 * image, size)):
                self._stream.send_all(data[start:end])
        else:
            self._stream.send_all(data)

    def _send_faulty(self, kind: FaultKind, data: bytes) -> None:
        if kind is FaultKind.GARBAGE:
            floats = len(self._setup.layout.floats)
            self._stream.send_all(data[: -len(_NAN_FLOAT32) * floats] + floats * _NAN_FLOAT32)
            return
        self._stream.send_all(data[: len(data) // 2])
        if kind is FaultKind.TRUNCATE:
            raise LinkError(f"Closing inside frame {self.steps}, as was asked for.")
        say(f"stalling inside frame {self.steps}, as was asked for")

    def _receive_motion(self) -> Motion | None:
        """Wait for the autopilot's answer; None when it has left instead."""
        buffer = bytearray(_RECEIVE_BYTES)
        while (event := self._protocol.next_event()) is NEED_DATA:
            count = self._stream.receive_into(memoryview(buffer))
            if count:
                self._protocol.receive_data(memoryview(buffer)[:count])
            else:
                self._protocol.receive_eof()
        if isinstance(event, ConnectionClosed):
            return None
        unit = self._setup.degrees_per_unit
        return Motion(event.pitch_rate * unit, event.roll_rate * unit, event.yaw_rate * unit, event.thrust)
