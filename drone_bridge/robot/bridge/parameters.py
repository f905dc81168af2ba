# SPDX-License-Identifier: Apache-2.0
"""Parameters of robot_bridge."""

from drone_bridge.robot import codec
from drone_bridge.robot.session.connected_driver import DriverParameters
from drone_bridge.robot.session.desired import FIRST
from drone_bridge.robot.topics import DISCOVERY_UDP_PORT
from drone_bridge.robot.units import SkidSteer
from drone_bridge.ros.node.common_parameters import common_parameters, frame_parameters
from drone_bridge.ros.node.limit_reports import limit_parameters
from drone_bridge.ros.node.parameters import ParameterDeclaration, declarations
from drone_bridge.ros.topics.covariances import twist_covariance_parameter
from drone_bridge.ros.topics.wheel_odometry import TWIST_VARIANCES

PARAMETERS = (
    *common_parameters(codec.TCP_PORT, "The robot's port.", roles=("connect",), silence_warning_s=1.5),
    ParameterDeclaration(
        "robot_name", "", "Connect to the robot of this name, found by discovery, instead of to host."
    ),
    ParameterDeclaration(
        "driver_name", "", "The driver's name, shown to the robot and its other drivers; empty: the user's name."
    ),
    ParameterDeclaration(
        "skid_steer", [FIRST], "Skid steers to bind: first, all, none, names, or indices in the robot's list."
    ),
    ParameterDeclaration("lights", [FIRST], "Lights to bind: first, all, none, names, or indices in the robot's list."),
    *declarations(SkidSteer),
    *declarations(DriverParameters),
    DISCOVERY_UDP_PORT,
    ParameterDeclaration(
        "discovery_interface",
        "127.0.0.1",
        "Address of the network interface for discovery. 0.0.0.0: chosen by the system.",
    ),
    ParameterDeclaration(
        "publish_odometry",
        True,
        "Publish odom by dead reckoning from the commands. Disable it if another node publishes measured odometry.",
    ),
    *frame_parameters(without=("publish_map_to_odom", "map_frame")),
    *limit_parameters(is_drone=False, can_climb=False),
    # Commanded, not measured: the pose drifts without limit, the velocity is roughly right.
    twist_covariance_parameter(TWIST_VARIANCES),
)
