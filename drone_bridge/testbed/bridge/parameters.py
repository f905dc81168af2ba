# SPDX-License-Identifier: Apache-2.0
"""The parameters of testbed_bridge."""

from typing import Final

from drone_bridge.motion.velocity_control import VelocityParameters
from drone_bridge.ros.common_parameters import common_parameters, covariance_parameters, frame_parameters
from drone_bridge.ros.frames import AXES, EXACT_VARIANCE, UNKNOWN_VARIANCE
from drone_bridge.ros.parameters import ParameterDeclaration, declarations
from drone_bridge.ros.simulated_time import time_parameters
from drone_bridge.testbed.codec import Limits
from drone_bridge.testbed.topics.parameters import ANGLE_UNIT, WIRE_LOG_IMAGES, attitude_layout

#: The values of cmd_vel_mode.
VELOCITY: Final = "velocity"
RATES_AND_THRUST: Final = "rates_and_thrust"
MEBIBYTE: Final = 1024 * 1024
_LIMITS: Final = Limits()

PARAMETERS: Final = (
    *common_parameters(8000, "The testbed's port; when listening, 0 picks a free one."),
    attitude_layout(is_detectable=True),
    ANGLE_UNIT,
    WIRE_LOG_IMAGES,
    ParameterDeclaration(
        "sync",
        "latest",
        "latest answers a frame at once with the newest command; lockstep waits for the command with its stamp.",
        choices=("latest", "lockstep"),
    ),
    *time_parameters("the testbed's simulated"),
    *frame_parameters(),
    *covariance_parameters([EXACT_VARIANCE] * AXES, [UNKNOWN_VARIANCE] * AXES, "odom"),
    ParameterDeclaration(
        "attitude_standard_deviation",
        0.001,
        "Standard deviation of the attitude, rad, for the covariance on imu/data.",
        range=(0.0, 3.2),
    ),
    ParameterDeclaration(
        "silence_timeout",
        5.0,
        "Seconds within which a testbed must send its constants, or all of a frame; it may pause between frames.",
        range=(0.1, 3600.0),
    ),
    ParameterDeclaration(
        "cmd_vel_mode",
        VELOCITY,
        "How a Twist on cmd_vel is interpreted: velocity, where zero hovers; or rates_and_thrust, with body rates in "
        "angular and thrust in linear.z, where zero makes the drone fall.",
        choices=(VELOCITY, RATES_AND_THRUST),
    ),
    *declarations(VelocityParameters, VELOCITY),
    ParameterDeclaration(
        "jpeg_quality",
        80,
        "JPEG quality of image_raw/compressed, which is encoded only while it has subscribers.",
        range=(1, 100),
    ),
    ParameterDeclaration("max_width", _LIMITS.width, "Maximum width of an accepted image, pixels.", range=(1, 65536)),
    ParameterDeclaration(
        "max_height", _LIMITS.height, "Maximum height of an accepted image, pixels.", range=(1, 65536)
    ),
    ParameterDeclaration(
        "max_frame_mebibytes",
        _LIMITS.frame_bytes // MEBIBYTE,
        "Maximum size of an accepted frame (two images and their floats), MiB.",
        range=(1, 4096),
    ),
)
