# SPDX-License-Identifier: Apache-2.0
"""ArdroneTranslation: navdata of an AR.Drone to topics; the table of topics. `units` has the signs.

What navdata does not report gives no message, or an unknown in it. On topics, velocities are along the body's axes.
"""

from functools import partial

from builtin_interfaces.msg import Time
from geometry_msgs.msg import TwistWithCovarianceStamped
from sensor_msgs.msg import FluidPressure, MagneticField, Range

from drone_bridge.ar_drone.topics import ArDroneMessages
from drone_bridge.ardrone import units
from drone_bridge.ardrone.codec import Navdata
from drone_bridge.motion.dead_reckoning import DeadReckonedPose
from drone_bridge.motion.measurement import Measurement
from drone_bridge.msg import DetectionArray
from drone_bridge.pictures.topics import PICTURE_ROWS
from drone_bridge.ros.topics.frames import DroneFrameNames
from drone_bridge.ros.topics.standard_rows import standard_row
from drone_bridge.ros.topics.table import TopicTable
from drone_bridge.ros.topics.transforms import set_vector


class ArdroneTranslation(ArDroneMessages[Navdata]):
    """Converter of navdata to ROS. A drone has no server."""

    def magnetic_field(self, navdata: Navdata, stamp: Time) -> MagneticField | None:
        magnetometer = navdata.magnetometer
        if magnetometer is None or (field := units.magnetic_field(magnetometer)) is None:
            return None
        message = MagneticField()
        message.header.stamp, message.header.frame_id = stamp, self.names.base_link
        set_vector(message.magnetic_field, field)
        return message

    def fluid_pressure(self, navdata: Navdata, stamp: Time) -> FluidPressure | None:
        if (pressure := navdata.pressure) is None:
            return None
        message = FluidPressure(fluid_pressure=float(pressure.pressure))
        message.header.stamp, message.header.frame_id = stamp, self.names.base_link
        return message

    def range(self, navdata: Navdata, stamp: Time) -> Range | None:
        """Return the height by the ultrasound sensor alone."""
        ultrasound = navdata.ultrasound
        return None if ultrasound is None else self.range_of(ultrasound / 1000, stamp)

    def velocity(self, navdata: Navdata, stamp: Time) -> TwistWithCovarianceStamped | None:
        """Return the velocity in body axes. The vertical one is not measured."""
        measured = self.converted(navdata)
        if (velocity := measured.level_velocity) is None:
            return None
        return self.velocity_of(measured, velocity, stamp)

    def detections(self, navdata: Navdata, stamp: Time) -> DetectionArray | None:
        """Return the current detections, in the front camera's frame."""
        if (detected := navdata.detections) is None:
            return None
        return self.detections_of(detected, stamp)

    def measurement(self, navdata: Navdata) -> Measurement:
        return units.measurement(navdata)


_T = ArdroneTranslation
_row = partial(standard_row, Navdata)
#: All but imu/data are published at most 30 times per second.
_slow_row = partial(_row, is_slow=True)
TOPICS = (
    _row("imu/data", _T.imu, None, "attitude; rates and accelerations with full navdata, else marked as unknown"),
    _slow_row("battery_state", _T.battery_state, None, "charge, the only value on the wire"),
    _slow_row("height", _T.height, None, "height above the ground below, m"),
    _slow_row("altitude", _T.altitude, None, "height as the drone estimates it, by ultrasound and pressure, m"),
    _slow_row("range", _T.range, None, "height by the ultrasound rangefinder alone, m; full navdata only"),
    _slow_row("velocity", _T.velocity, None, "velocity in body axes, m/s; the vertical one is not measured"),
    _slow_row(
        "magnetic_field", _T.magnetic_field, None, "magnetic field in body axes, T; full navdata of an AR.Drone 2 only"
    ),
    _slow_row("fluid_pressure", _T.fluid_pressure, None, "pressure of the air, Pa; full navdata of an AR.Drone 2 only"),
    _slow_row("detections", _T.detections, None, "detections of the drone's vision, as shares of the image"),
    standard_row(
        DeadReckonedPose,
        "odom",
        _T.odometry,
        meaning="pose by integrated velocities, with measured height and attitude",
        if_parameter="publish_odometry",
    ),
    standard_row(DeadReckonedPose, "/tf", _T.transforms, if_parameter="publish_tf"),
)

TABLE = TopicTable(
    (*TOPICS, *PICTURE_ROWS),
    lambda: ArdroneTranslation(DroneFrameNames()),
    {},
)
