# SPDX-License-Identifier: Apache-2.0
"""Units: signs, units and axes of a telemetry peer: documents to SI units in the axes of REP 103, and back. Pure.

The wire has SI units, and degrees for the field of view. The document defines one sign: thrust + is up. At rest the
accelerometer reads +9.81 on z, so z is up. By default the others are those of REP 103, x forward and y left: roll +
lowers the right side, pitch + lowers the nose, yaw + turns left; a roll command + goes right, a pitch command + goes
forward. Velocity and landing pad are measured in level axes unless `is_levelled` is false.
"""

from collections.abc import Collection

from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.motion.measurement import Measurement
from drone_bridge.motion.quaternions import Quaternion, quaternion_from_euler, rotated, rotated_back
from drone_bridge.motion.tilted_drone import Shares, TiltedDrone
from drone_bridge.motion.vectors import Triple
from drone_bridge.telemetry.codec import (
    MAX_THRUST,
    MAX_TILT,
    Altimeter,
    Camera,
    DroneCommand,
    DroneTelemetry,
    Imu,
    LandingPad,
    Orientation,
    Vector,
)

#: Scale of the document's tilt and turn rate shares, and the emulated drone's thrust against its drag.
LANDING_DRONE = TiltedDrone(max_tilt=MAX_TILT, max_climb=2.5, max_yaw_rate=MAX_TILT, climb_lag=0.5)
#: Quantities that may have the opposite sign.
SIGNED = (
    *("command.pitch", "command.roll", "command.yaw"),
    *("telemetry.roll", "telemetry.pitch", "telemetry.yaw", "telemetry.relative_x", "telemetry.relative_y"),
)


class Units:
    """Conversions for one peer. A conversion of angles or positions is its own inverse."""

    def __init__(self, opposite: Collection[str] = (), *, is_levelled: bool = True) -> None:
        """Define the peer.

        Args:
            opposite: names of the quantities in SIGNED with the opposite sign.
            is_levelled: whether velocity and pad are measured in level axes, instead of those of the tilted body.
        """
        self.is_levelled = is_levelled
        self._of = {name: -1 if name in opposite else 1 for name in SIGNED}

    def angles(self, roll: float, pitch: float, yaw: float) -> Triple:
        """Convert angles, or the rates about x, y and z."""
        of = self._of
        return of["telemetry.roll"] * roll, of["telemetry.pitch"] * pitch, of["telemetry.yaw"] * yaw

    def position(self, x: float, y: float) -> tuple[float, float]:
        """Convert a pad's position, forward and to the left."""
        return self._of["telemetry.relative_x"] * x, self._of["telemetry.relative_y"] * y

    def tilt(self, orientation: Orientation) -> Quaternion:
        """Return the orientation of the body in level axes with its heading."""
        roll, pitch, _ = self.angles(*orientation)
        return quaternion_from_euler(roll, pitch, 0.0)

    def measurement(self, telemetry: DroneTelemetry) -> Measurement:
        """Convert a drone's document, without its pad and camera."""
        imu, altimeter, velocity = telemetry.imu, telemetry.altimeter, telemetry.velocity
        roll, pitch, yaw = self.angles(*imu.orientation)
        rates, tilt = self.angles(*imu.angular_velocity), quaternion_from_euler(roll, pitch, 0.0)
        level = velocity if self.is_levelled else rotated(tilt, *velocity)
        return Measurement(
            yaw=yaw,
            velocity=BodyVelocity(*level, *rotated(tilt, *rates)),
            height=altimeter.altitude,
            roll=roll,
            pitch=pitch,
            rates=rates,
            acceleration=imu.linear_acceleration,
            climb=altimeter.vertical_velocity,
            is_flying=None if telemetry.landed is None else not telemetry.landed,
            time_s=telemetry.timestamp,
        )

    def telemetry(self, measured: Measurement, camera: Camera, pad: LandingPad | None) -> DroneTelemetry:
        """Convert a measurement to a document; camera and pad are those of the wire.

        Raises ValueError for a measurement without attitude, rates, velocity or height.
        """
        roll, pitch, yaw, height = measured.roll, measured.pitch, measured.yaw, measured.height
        rates, velocity, acceleration = measured.rates, measured.velocity, measured.acceleration
        if roll is None or pitch is None or yaw is None or height is None or rates is None or velocity is None:
            raise ValueError("A document has attitude, rates, velocity and height.")
        imu = Imu(
            Orientation(*self.angles(roll, pitch, yaw)),
            Vector(*self.angles(*rates)),
            None if acceleration is None else Vector(*acceleration),
        )
        linear = velocity.linear
        return DroneTelemetry(
            imu=imu,
            altimeter=Altimeter(height, velocity.up if measured.climb is None else measured.climb),
            velocity=Vector(*(linear if self.is_levelled else rotated_back(self.tilt(imu.orientation), *linear))),
            landing_pad=pad,
            camera=camera,
            landed=None if measured.is_flying is None else not measured.is_flying,
            timestamp=measured.time_s,
        )

    def command(self, shares: Shares) -> DroneCommand:
        """Convert shares to a command: + pitch tilts forward, + roll to the right, + yaw turns left."""
        of = self._of
        # 0.0 + x turns -0.0, the product of -1 and zero, into 0.0.
        return DroneCommand(
            MAX_THRUST * shares.thrust,
            0.0 + of["command.pitch"] * MAX_TILT * shares.pitch,
            0.0 + of["command.roll"] * MAX_TILT * shares.roll,
            0.0 + of["command.yaw"] * MAX_TILT * shares.yaw,
        )

    def shares(self, command: DroneCommand) -> Shares:
        """Convert a command to shares, the inverse of `command`."""
        of = self._of
        return Shares(
            command.thrust / MAX_THRUST,
            0.0 + of["command.pitch"] * command.pitch / MAX_TILT,
            0.0 + of["command.roll"] * command.roll / MAX_TILT,
            0.0 + of["command.yaw"] * command.yaw / MAX_TILT,
        )
