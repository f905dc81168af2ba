# SPDX-License-Identifier: Apache-2.0
"""The parameters of telemetry_bridge."""

from typing import Final

from drone_bridge.link_node.common_parameters import (
    ALLOWED_PEERS,
    common_parameters,
    covariance_parameters,
    frame_parameters,
    full_scale_parameters,
)
from drone_bridge.link_node.simulated_time import time_parameters
from drone_bridge.node.parameters import ParameterDeclaration
from drone_bridge.telemetry.codec import DEFAULT_PORT, Limits
from drone_bridge.telemetry.topics.parameters import DEFAULT_FOV, SIGNS
from drone_bridge.telemetry.topics.to_ros import FullScale
from drone_bridge.translate.covariances import EXACT_VARIANCE, UNKNOWN_VARIANCE

MEBIBYTE: Final = 1024 * 1024
_LIMITS: Final = Limits()

PARAMETERS: Final = (
    *common_parameters(DEFAULT_PORT, "The port to listen on for telemetry; 0 picks a free one.", roles=("listen",)),
    ParameterDeclaration(
        "transport",
        "topic",
        "How documents are transported: as std_msgs/String on /drone/telemetry, /drone/command and /rover/telemetry, "
        "or as UDP datagrams.",
        choices=("topic", "udp"),
    ),
    ParameterDeclaration("rate", 25.0, "Commands per second.", (1.0, 500.0), live=True),
    *full_scale_parameters(FullScale._fields),
    *SIGNS,
    ParameterDeclaration(
        "is_levelled",
        True,
        "Whether velocity and landing_pad are measured in level axes (base_stabilized), or in those of the tilted "
        "body (base_link).",
    ),
    ParameterDeclaration(
        "altitude_as_range",
        True,
        "Also publish the height above ground on altitude, as a Range without limits. Deprecated: use height.",
    ),
    *time_parameters("the drone's"),
    *frame_parameters("publish_map_to_odom", "odom_frame"),
    *covariance_parameters(
        # The rover's heading and turn rate are not on the wire.
        [EXACT_VARIANCE] * 3 + [UNKNOWN_VARIANCE] * 3,
        [EXACT_VARIANCE] * 3 + [UNKNOWN_VARIANCE] * 3,
        "rover/odom",
    ),
    ParameterDeclaration(
        "telemetry_timeout",
        1.0,
        "Seconds without telemetry after which the drone counts as silent; over UDP it is then commanded to hover, "
        "and sent nothing more until it is heard again.",
        range=(0.05, 3600.0),
        live=True,
    ),
    ParameterDeclaration(
        "takeover_timeout",
        5.0,
        "With udp, seconds of silence after which another sender may replace the drone.",
        range=(0.05, 3600.0),
        live=True,
    ),
    ALLOWED_PEERS,
    ParameterDeclaration(
        "relay_rover",
        True,
        "With udp, forward /rover/telemetry to the drone, whose simulation may follow the rover.",
    ),
    DEFAULT_FOV,
    ParameterDeclaration("max_width", _LIMITS.image_width, "Widest image accepted, pixels.", range=(1, 65535)),
    ParameterDeclaration("max_height", _LIMITS.image_height, "Highest image accepted, pixels.", range=(1, 65535)),
    ParameterDeclaration(
        "max_image_mebibytes", _LIMITS.image_bytes // MEBIBYTE, "Largest JPEG accepted, MiB.", range=(1, 256)
    ),
)
