# SPDX-License-Identifier: Apache-2.0
"""The parameters of testbed_server. See docs/testbed.md."""

import math
from typing import Final

from nav_msgs.msg import Odometry
from sensor_msgs.msg import Imu

from drone_bridge.link_node.common_parameters import SOURCE_TIMEOUT, common_parameters
from drone_bridge.node.parameters import DeclaredParameters, ParameterDeclaration
from drone_bridge.protocols.testbed import AngleUnit, AttitudeLayout

LOCKSTEP: Final = "lockstep"
#: Pairs of images that are kept: for an attitude that follows them, and in lockstep until it is their turn.
DEPTHS: Final = {"latest": 4, LOCKSTEP: 16}
ATTITUDE_TOPICS: Final = {"imu/data": Imu, "odom": Odometry}
#: Before the names of what a drone is taken to be, which are those of DroneProperties.
DRONE: Final = "drone"
_ASSUMED: Final = {
    "mass": (1.0, "kg", 1e-3, 1e4),
    "gravity": (9.81, "m/s^2", 0.01, 100.0),
    "drag": (0.2, "kg/s, force per unit of air speed", 0.0, 1e4),
    "max_thrust": (25.0, "N", 1e-3, 1e6),
    "max_roll_rate": (4 * math.pi, "rad/s", 0.0, 100.0),
    "max_pitch_rate": (4 * math.pi, "rad/s", 0.0, 100.0),
    "max_yaw_rate": (4 * math.pi, "rad/s", 0.0, 100.0),
}

PARAMETERS: Final = (
    *common_parameters(8000, "The port to listen on, 0 takes a free one; or the autopilot's.", ("listen", "connect")),
    SOURCE_TIMEOUT,
    ParameterDeclaration(
        "attitude_layout",
        AttitudeLayout.PITCH_YAW.value,
        "The floats after the images: as documented, with roll instead of yaw, or a full pose.",
        choices=tuple(layout.value for layout in AttitudeLayout),
    ),
    ParameterDeclaration(
        "angle_unit",
        AngleUnit.DEGREES.value,
        "The unit of angles and angular rates on the wire.",
        choices=tuple(unit.value for unit in AngleUnit),
    ),
    ParameterDeclaration(
        "sync",
        "latest",
        "latest sends the newest frame when one has been answered, and drops those between; lockstep sends them all "
        "in order, for a drone that waits for the command to each.",
        choices=tuple(DEPTHS),
    ),
    ParameterDeclaration(
        "stamp_source",
        "ros",
        "What stamps of images are: ROS time, and the wire's time counts from the first frame; or the wire's.",
        choices=("ros", "wire"),
    ),
    ParameterDeclaration(
        "cameras",
        "stereo",
        "stereo sends images of both sides with the same stamp; mono sends left/image_raw as both, without separation.",
        choices=("stereo", "mono"),
    ),
    ParameterDeclaration(
        "attitude_from",
        "imu/data",
        "Where the attitude is read; a pose comes from odom in any case.",
        choices=tuple(ATTITUDE_TOPICS),
    ),
    ParameterDeclaration("negative_gravity", False, "Announce gravity as some testbeds do, counted upwards."),
    *(
        ParameterDeclaration(
            f"{DRONE}.{name}", default, f"{unit}, where nobody publishes drone_properties.", range=(least, most)
        )
        for name, (default, unit, least, most) in _ASSUMED.items()
    ),
)


def assumed_drone(parameters: DeclaredParameters) -> dict[str, float]:
    """Return what the drone is taken to be, by the names of DroneProperties."""
    return {name: parameters[f"{DRONE}.{name}"] for name in _ASSUMED}
