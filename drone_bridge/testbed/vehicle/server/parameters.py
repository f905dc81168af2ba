# SPDX-License-Identifier: Apache-2.0
"""Parameters of testbed_server, with the assumed drone and its limits."""

import math

from nav_msgs.msg import Odometry
from sensor_msgs.msg import Imu

from drone_bridge.ros.node.common_parameters import NEUTRAL_TIME, SOURCE_TIMEOUT, common_parameters
from drone_bridge.ros.node.parameters import DeclaredParameters, ParameterDeclaration
from drone_bridge.testbed.topics import ANGLE_UNIT, AUTO, SIDES, attitude_layout
from drone_bridge.testbed.vehicle.session.output_choice import RATES, VELOCITY

CHOICES = (AUTO, RATES, VELOCITY)
LOCKSTEP = "lockstep"
#: Queued image pairs: until their attitude arrives, and in lockstep until they are sent.
DEPTHS = {"latest": 4, LOCKSTEP: 16}
#: Sides to subscribe to, by the parameter cameras.
SIDES_OF = {"stereo": SIDES, "mono": SIDES[:1], "none": ()}
ATTITUDE_TOPICS = {"imu/data": Imu, "odom": Odometry}
#: Prefix of the assumed properties, which have the names of DroneProperties.
DRONE = "drone"
GRAVITY = 9.81  # m/s^2
#: Parameter of the speed while velocities are published.
MAX_SPEED = "velocity.max_speed"
_ASSUMED = {
    "image_width": (200, "pixels", 1, 4096),
    "image_height": (200, "pixels", 1, 4096),
    "horizontal_angle_of_view": (math.radians(120.0), "rad, edge to edge", 0.01, 3.1),
    "vertical_angle_of_view": (math.radians(120.0), "rad, edge to edge", 0.01, 3.1),
    "mass": (1.0, "kg", 1e-3, 1e4),
    "drag": (0.2, "kg/s, force per air speed", 0.0, 1e4),
    "max_thrust": (25.0, "N", 1e-3, 1e6),
    "max_rate": (4 * math.pi, "rad/s, of roll, pitch and yaw", 0.0, 100.0),
}

PARAMETERS = (
    *common_parameters(8000, "The port to listen on, 0 picks a free one; or the autopilot's.", ("listen", "connect")),
    SOURCE_TIMEOUT,
    NEUTRAL_TIME,
    attitude_layout(is_detectable=False),
    ANGLE_UNIT,
    ParameterDeclaration(
        "sync",
        "latest",
        "latest sends the newest frame after each reply, and drops frames in between. lockstep sends all frames in "
        "order, for a drone that waits for the command to each.",
        choices=tuple(DEPTHS),
    ),
    ParameterDeclaration(
        "stamp_source",
        "ros",
        "Time on the wire: ros counts from the stamp of the first frame, wire sends the stamps unchanged.",
        choices=("ros", "wire"),
    ),
    ParameterDeclaration(
        "cameras",
        "stereo",
        "stereo pairs left and right images by stamp. mono sends left/image_raw twice, with zero separation. none "
        "sends black images with each attitude.",
        choices=tuple(SIDES_OF),
    ),
    ParameterDeclaration(
        "image_tolerance",
        0.0,
        "Maximum difference between the stamps of a left and a right image, s, for cameras that are not synchronized. "
        "Choose less than half their period.",
        range=(0.0, 1.0),
    ),
    ParameterDeclaration(
        "attitude_from",
        "imu/data",
        "Topic of the attitude. A pose always comes from odom.",
        choices=tuple(ATTITUDE_TOPICS),
    ),
    ParameterDeclaration(
        "command_output",
        AUTO,
        "Publish rates and thrust (cmd_rates), or the resulting velocities (cmd_vel). auto uses cmd_vel if it has "
        "subscribers and cmd_rates has none. With cmd_vel the autopilot receives the tilt of a modelled drone, while "
        "the images show the vehicle's tilt: an autopilot that steers by images needs cmd_rates.",
        choices=CHOICES,
    ),
    ParameterDeclaration(MAX_SPEED, 5.0, "Maximum horizontal speed on cmd_vel, m/s.", range=(0.01, 50.0)),
    ParameterDeclaration("negative_gravity", False, "Announce gravity as an upward acceleration, as some testbeds do."),
    *(
        ParameterDeclaration(
            f"{DRONE}.{name}", default, f"Used if drone_properties is not published; {unit}.", range=(least, most)
        )
        for name, (default, unit, least, most) in _ASSUMED.items()
    ),
)


def assumed_drone(parameters: DeclaredParameters) -> dict[str, float]:
    """Return the assumed properties of the drone, by their names in DroneProperties."""
    drone = {name: parameters[f"{DRONE}.{name}"] for name in _ASSUMED}
    rate = drone.pop("max_rate")
    return {**drone, "gravity": GRAVITY, "max_roll_rate": rate, "max_pitch_rate": rate, "max_yaw_rate": rate}
