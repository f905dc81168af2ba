# SPDX-License-Identifier: Apache-2.0
"""AR_DRONE: the maxima of an AR.Drone, and the meaning and quality of the values in its navdata."""

import math

from drone_bridge.motion.tilted_drone import TiltedDrone

#: The defaults of an AR.Drone: 12 degrees, 0.7 m/s, and 100 degrees per second.
AR_DRONE = TiltedDrone(max_tilt=0.2094, max_climb=0.7, max_yaw_rate=1.745)

#: Width and height of an image in the units of detections, for any size in pixels.
PICTURE_UNITS = 1000
#: Range of the ultrasound rangefinder, by its data sheet, m.
NEAREST_RANGE_M = 0.2
FARTHEST_RANGE_M = 6.0

# Standard deviations of measurements, which are not on the wire.

TILT_DEVIATION = math.radians(1.0)
YAW_DEVIATION = math.radians(10.0)  # of a drifting gyroscope
#: Variance of a vertical speed on the wire, (m/s)^2: an AR.Drone reports zero while it climbs at up to 1 m/s.
CLIMB_VARIANCE = 1.0
