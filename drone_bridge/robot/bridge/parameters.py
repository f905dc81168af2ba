# SPDX-License-Identifier: Apache-2.0
"""The parameters of robot_bridge."""

from typing import Final

from drone_bridge.net.discovery import DISCOVERY_GROUP
from drone_bridge.robot.bridge.desired import FIRST
from drone_bridge.robot.codec import TCP_PORT
from drone_bridge.robot.topics.parameters import DISCOVERY_UDP_PORT, SKID_STEER
from drone_bridge.ros.common_parameters import common_parameters, covariance_parameters, frame_parameters
from drone_bridge.ros.frames import POSE_VARIANCES, TWIST_VARIANCES
from drone_bridge.ros.parameters import ParameterDeclaration

PARAMETERS: Final = (
    *common_parameters(TCP_PORT, "The robot's port.", roles=("connect",), silence_warning_s=1.5),
    ParameterDeclaration(
        "robot_name", "", "Connect to the robot of this name, at the address that discovery finds, instead of to host."
    ),
    ParameterDeclaration(
        "driver_name", "", "The driver's name, shown to the robot and its other drivers; empty for the user's name."
    ),
    ParameterDeclaration(
        "skid_steer", [FIRST], "The skid steers to bind: first, all, none, names, or numbers in the robot's list."
    ),
    ParameterDeclaration(
        "lights", [FIRST], "The lights to bind: first, all, none, names, or numbers in the robot's list."
    ),
    *SKID_STEER,
    ParameterDeclaration(
        "max_update_rate",
        50.0,
        "Maximum speed updates per second; stopping is never delayed.",
        range=(1.0, 1000.0),
        live=True,
    ),
    ParameterDeclaration(
        "link_timeout",
        2.0,
        "Seconds of silence after which the connection counts as lost and is reopened.",
        (0.6, 60.0),
    ),
    ParameterDeclaration(
        "discovery_address",
        DISCOVERY_GROUP,
        "Where discovery requests are sent: a multicast group, or the address of one robot.",
    ),
    DISCOVERY_UDP_PORT,
    ParameterDeclaration(
        "discovery_interface",
        "127.0.0.1",
        "The address of the network interface for discovery; 0.0.0.0 leaves the choice to the system.",
    ),
    ParameterDeclaration(
        "discovery_timeout", 1.0, "Seconds to collect discovery replies.", range=(0.05, 60.0), live=True
    ),
    ParameterDeclaration(
        "bare_floats",
        False,
        "Publish currents and PWM as std_msgs/Float32, without header, name and unit.",
    ),
    ParameterDeclaration(
        "publish_odometry",
        True,
        "Publish odom by dead reckoning from the commands. Disable it where something measures odometry.",
    ),
    *frame_parameters("publish_map_to_odom", "map_frame"),
    # Commanded, not measured: the pose drifts without limit, the velocity is known roughly.
    *covariance_parameters(POSE_VARIANCES, TWIST_VARIANCES, "odom"),
    ParameterDeclaration("odometry_rate", 20.0, "Messages on odom per second.", range=(1.0, 200.0)),
)
