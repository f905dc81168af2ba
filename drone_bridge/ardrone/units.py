# SPDX-License-Identifier: Apache-2.0
"""Units: signs, units and axes of an AR.Drone: navdata and commands to SI units in the axes of REP 103, and back. Pure.

The drone's axes are x forward, y right, z down: theta + raises the nose, phi + banks right, psi + turns right.
Velocities are level, mm/s, and the vertical one is always zero. Of a command, roll + goes right, pitch + goes backward,
gaz + climbs, yaw + turns right.
"""

import math

from drone_bridge.ar_drone.flight_state import STEERED
from drone_bridge.ardrone.codec import PROGRESSIVE, Demo, Magnetometer, Navdata, Pcmd, Physical, State
from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.motion.measurement import Measurement
from drone_bridge.motion.tilted_drone import Shares
from drone_bridge.motion.vectors import Triple

STANDARD_GRAVITY = 9.80665  # m/s^2
#: The unit of the magnetometer, T: a thousandth of a gauss.
MAGNETIC_UNIT = 1e-7


def command(shares: Shares | None) -> Pcmd:
    """Convert shares to a command; None is hover."""
    if shares is None:
        return Pcmd()
    # 0.0 - x instead of -x avoids -0.0.
    return Pcmd(PROGRESSIVE, shares.roll, 0.0 - shares.pitch, shares.thrust, 0.0 - shares.yaw)


def measurement(navdata: Navdata) -> Measurement:
    """Convert navdata. What it does not report is None, and so is its vertical speed."""
    demo, physical = navdata.demo, navdata.physical
    rates = acceleration = None
    if physical is not None:
        rates = _flu(physical.rates, math.radians(1.0))
        acceleration = _flu(physical.acceleration, STANDARD_GRAVITY / 1000)
    if demo is None:
        return Measurement(rates=rates, acceleration=acceleration, time_s=navdata.time_s)
    velocity = None
    if demo.vx is not None and demo.vy is not None:
        velocity = BodyVelocity(demo.vx / 1000, 0.0 - demo.vy / 1000)
    return Measurement(
        yaw=_angle(demo.psi, -1),
        velocity=velocity,
        charge=min(max(demo.battery, 0), 100) / 100,
        height=demo.altitude / 1000,
        roll=_angle(demo.phi, 1),
        pitch=_angle(demo.theta, -1),
        rates=rates,
        acceleration=acceleration,
        is_flying=demo.flight_state in STEERED and not navdata.has(State.EMERGENCY),
        time_s=navdata.time_s,
    )


def demo(measured: Measurement, ctrl_state: int) -> Demo:
    """Convert a measurement to the option of all modes, the inverse of `measurement`."""
    velocity, charge, height = measured.velocity, measured.charge, measured.height
    return Demo(
        ctrl_state,
        0 if charge is None else math.floor(100 * charge),
        _thousandths(measured.pitch, -1),
        _thousandths(measured.roll, 1),
        _thousandths(measured.yaw, -1),
        0 if height is None else round(1000 * height),
        None if velocity is None else 1000 * velocity.forward,
        None if velocity is None else 0.0 - 1000 * velocity.left,
        0.0,
    )


def physical(measured: Measurement) -> Physical:
    """Convert rates and acceleration of a measurement."""
    nothing = (None, None, None)
    rates = nothing if measured.rates is None else _frd(measured.rates, math.degrees(1.0))
    acceleration = nothing if measured.acceleration is None else _frd(measured.acceleration, 1000 / STANDARD_GRAVITY)
    return Physical(None, acceleration, rates)


def magnetic_field(measured: Magnetometer) -> Triple | None:
    """Return the magnetic field along the body's axes, T. The sensor's axes are those of REP 103 already.

    Over flat ground in Los Angeles, z of a recorded drone is negative, and there the field points down. So is it for
    axes that are turned by 180 degrees about z, which no source excludes.
    """
    x, y, z = measured.rectified
    return None if x is None or y is None or z is None else (MAGNETIC_UNIT * x, MAGNETIC_UNIT * y, MAGNETIC_UNIT * z)


def magnetometer(field: Triple) -> Triple:
    """Convert a magnetic field, the inverse of `magnetic_field`."""
    x, y, z = field
    return x / MAGNETIC_UNIT, y / MAGNETIC_UNIT, z / MAGNETIC_UNIT


def _flu(values: tuple[float | None, float | None, float | None], unit: float) -> Triple | None:
    x, y, z = values
    return None if x is None or y is None or z is None else (unit * x, 0.0 - unit * y, 0.0 - unit * z)


def _frd(values: Triple, unit: float) -> Triple:
    x, y, z = values
    return unit * x, 0.0 - unit * y, 0.0 - unit * z


def _angle(thousandths: float | None, sign: int) -> float | None:
    return None if thousandths is None else 0.0 + sign * math.radians(thousandths / 1000)


def _thousandths(angle: float | None, sign: int) -> float | None:
    return None if angle is None else 0.0 + sign * 1000 * math.degrees(angle)
