# SPDX-License-Identifier: Apache-2.0
"""The parameters of telemetry_bridge."""

from typing import Final

from drone_bridge.link_node.common_parameters import common_parameters, covariance_parameters, frame_parameters
from drone_bridge.link_node.simulated_time import time_parameters
from drone_bridge.links.allowed_peers import ANY
from drone_bridge.node.parameters import ParameterDeclaration
from drone_bridge.protocols.telemetry import DEFAULT_PORT, MAX_FOV, MIN_FOV, Limits
from drone_bridge.translate.covariances import EXACT_VARIANCE, UNKNOWN_VARIANCE
from drone_bridge.translate.frames import TelemetryCommandSigns, TelemetrySigns
from drone_bridge.translate.telemetry import FullScale

MEBIBYTE: Final = 1024 * 1024
_LIMITS: Final = Limits()
_FIELDS: Final = {"thrust": "linear.z", "pitch": "linear.x", "roll": "linear.y", "yaw": "angular.z"}

PARAMETERS: Final = (
    *common_parameters(DEFAULT_PORT, "Where telemetry is listened for; 0 takes a free port.", roles=("listen",)),
    ParameterDeclaration(
        "transport",
        "topic",
        "How documents travel: as std_msgs/String on /drone/telemetry, /drone/command and /rover/telemetry, or as "
        "datagrams.",
        choices=("topic", "udp"),
    ),
    ParameterDeclaration("rate", 25.0, "Commands per second, with or without a new one.", (1.0, 500.0), live=True),
    *(
        ParameterDeclaration(
            f"full_scale.{axis}",
            1.0,
            f"The {_FIELDS[axis]} of cmd_vel that means full {axis}.",
            range=(1e-3, 1e3),
            live=True,
        )
        for axis in FullScale._fields
    ),
    *(
        ParameterDeclaration(
            f"command_sign.{axis}", 1, f"-1 for a drone that follows {axis} the other way round.", choices=(1, -1)
        )
        for axis in TelemetryCommandSigns._fields
    ),
    *(
        ParameterDeclaration(
            f"telemetry_sign.{field}", 1, f"-1 for telemetry that counts {field} the other way round.", choices=(1, -1)
        )
        for field in TelemetrySigns._fields
    ),
    ParameterDeclaration(
        "is_levelled",
        True,
        "Whether velocity and landing_pad are measured along level axes (base_stabilized), or along those of the "
        "tilted body (base_link).",
    ),
    ParameterDeclaration(
        "altitude_as_range",
        True,
        "Publish the height above ground on altitude as well, as a Range without limits. Deprecated: height tells it.",
    ),
    *time_parameters("the drone's"),
    *frame_parameters("publish_map_to_odom", "odom_frame"),
    *covariance_parameters(
        # Which way the rover points, and how it turns, is not on the wire.
        [EXACT_VARIANCE] * 3 + [UNKNOWN_VARIANCE] * 3,
        [EXACT_VARIANCE] * 3 + [UNKNOWN_VARIANCE] * 3,
        "rover/odom",
    ),
    ParameterDeclaration(
        "telemetry_timeout",
        1.0,
        "Seconds without telemetry after which the drone counts as silent; over UDP it is told to hover then, and "
        "nothing more until it is heard again.",
        range=(0.05, 3600.0),
        live=True,
    ),
    ParameterDeclaration(
        "takeover_timeout",
        5.0,
        "With udp, seconds of silence after which another sender may take the drone's place.",
        range=(0.05, 3600.0),
        live=True,
    ),
    ParameterDeclaration(
        "allowed_peers",
        [ANY],
        "With udp, whom documents are taken from: any, addresses, or networks such as 192.168.1.0/24.",
    ),
    ParameterDeclaration(
        "relay_rover",
        True,
        "With udp, send what comes on /rover/telemetry to the drone as well, whose simulation may follow it.",
    ),
    ParameterDeclaration(
        "default_fov",
        60.0,
        "Degrees of the camera's horizontal field of view, where telemetry does not tell it.",
        range=(MIN_FOV, MAX_FOV),
    ),
    ParameterDeclaration("max_width", _LIMITS.image_width, "Widest image accepted, pixels.", range=(1, 65535)),
    ParameterDeclaration("max_height", _LIMITS.image_height, "Highest image accepted, pixels.", range=(1, 65535)),
    ParameterDeclaration(
        "max_image_mebibytes", _LIMITS.image_bytes // MEBIBYTE, "Largest JPEG accepted, MiB.", range=(1, 256)
    ),
)
