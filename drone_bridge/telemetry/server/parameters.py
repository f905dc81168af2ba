# SPDX-License-Identifier: Apache-2.0
"""The parameters of telemetry_server."""

from typing import Final

from drone_bridge.ros.common_parameters import (
    NEUTRAL_TIME,
    SOURCE_TIMEOUT,
    common_parameters,
    full_scale_parameters,
)
from drone_bridge.ros.parameters import ParameterDeclaration, declarations
from drone_bridge.telemetry.codec import DEFAULT_PORT
from drone_bridge.telemetry.device import IMAGE_EVERY, PERIOD_S
from drone_bridge.telemetry.topics import DEFAULT_FOV, SIGNS, FullScale
from drone_bridge.vision.markers import MarkerParameters

#: Where the pad comes from: the topic, our own search of the images, or the latter where the former is silent.
AUTO: Final = "auto"
LANDING_PAD: Final = "landing_pad"
CAMERA: Final = "camera"
#: Prefix of what is printed on the pad.
PAD: Final = "pad"

PARAMETERS: Final = (
    *common_parameters(DEFAULT_PORT, "With udp, the operator's port for telemetry.", roles=("connect",)),
    SOURCE_TIMEOUT,
    NEUTRAL_TIME,
    ParameterDeclaration(
        "transport",
        "udp",
        "How documents are transported: as UDP datagrams, or as std_msgs/String on /drone/telemetry, /drone/command "
        "and /rover/telemetry.",
        choices=("udp", "topic"),
    ),
    ParameterDeclaration(
        "rate", 1 / PERIOD_S, "The maximum rate of the drone's documents, Hz.", range=(1.0, 500.0), live=True
    ),
    ParameterDeclaration(
        "repeat_rate",
        20.0,
        "The minimum rate of cmd_vel while the operator is heard, Hz; every command is also published at once.",
        range=(1.0, 200.0),
        live=True,
    ),
    *full_scale_parameters(FullScale._fields),
    *SIGNS,
    ParameterDeclaration(
        "is_levelled",
        True,
        "Whether the operator expects velocity in level axes, or in those of the tilted body.",
    ),
    ParameterDeclaration(
        "images_from",
        "compressed",
        "The source of images: camera/image_raw/compressed, whose JPEGs are forwarded unchanged, camera/image_raw, or "
        "none.",
        choices=("compressed", "raw", "none"),
    ),
    ParameterDeclaration(
        "image_every", IMAGE_EVERY, "At most one in so many documents carries an image.", range=(1, 1000)
    ),
    ParameterDeclaration(
        "image_width", 320, "With raw images, the maximum width of those sent, pixels.", range=(16, 4096)
    ),
    ParameterDeclaration("jpeg_quality", 70, "With raw images, the JPEG quality, of 100.", range=(1, 100), live=True),
    DEFAULT_FOV,
    ParameterDeclaration(
        "pad_from",
        AUTO,
        "The source of the pad's position: the topic landing_pad; camera, for the pad's markers in the images; or "
        "auto, for the camera while landing_pad is silent.",
        choices=(AUTO, LANDING_PAD, CAMERA),
    ),
    *declarations(MarkerParameters, PAD),
    ParameterDeclaration(
        "rover_pattern", "unknown", "The name of its pattern in the rover's documents; no topic carries it."
    ),
)
