# SPDX-License-Identifier: Apache-2.0
"""The parameters of telemetry_server."""

from typing import Final

from drone_bridge.link_node.common_parameters import SOURCE_TIMEOUT, common_parameters
from drone_bridge.node.parameters import ParameterDeclaration
from drone_bridge.protocols.telemetry import DEFAULT_PORT, MAX_FOV, MIN_FOV
from drone_bridge.translate.frames import TelemetryCommandSigns, TelemetrySigns
from drone_bridge.translate.telemetry import FullScale
from drone_bridge.vehicle_side.telemetry import IMAGE_EVERY, PERIOD_S

_FIELDS: Final = {"thrust": "linear.z", "pitch": "linear.x", "roll": "linear.y", "yaw": "angular.z"}

PARAMETERS: Final = (
    *common_parameters(DEFAULT_PORT, "With udp, where the operator listens for telemetry.", roles=("connect",)),
    SOURCE_TIMEOUT,
    ParameterDeclaration(
        "transport",
        "udp",
        "How documents travel: as datagrams, or as std_msgs/String on /drone/telemetry, /drone/command and "
        "/rover/telemetry.",
        choices=("udp", "topic"),
    ),
    ParameterDeclaration(
        "rate", 1 / PERIOD_S, "The most documents of the drone per second.", range=(1.0, 500.0), live=True
    ),
    ParameterDeclaration(
        "repeat_rate",
        20.0,
        "How often cmd_vel is published at least while the operator is heard, per second; each command is at once.",
        range=(1.0, 200.0),
        live=True,
    ),
    *(
        ParameterDeclaration(
            f"full_scale.{axis}", 1.0, f"The {_FIELDS[axis]} of cmd_vel that full {axis} means.", (1e-3, 1e3), live=True
        )
        for axis in FullScale._fields
    ),
    *(
        ParameterDeclaration(
            f"command_sign.{axis}", 1, f"-1 for an operator that commands {axis} the other way round.", choices=(1, -1)
        )
        for axis in TelemetryCommandSigns._fields
    ),
    *(
        ParameterDeclaration(
            f"telemetry_sign.{field}",
            1,
            f"-1 for an operator that counts {field} the other way round.",
            choices=(1, -1),
        )
        for field in TelemetrySigns._fields
    ),
    ParameterDeclaration(
        "is_levelled",
        True,
        "Whether the operator expects velocity along level axes, or along those of the tilted body.",
    ),
    ParameterDeclaration(
        "images_from",
        "compressed",
        "Where images come from: camera/image_raw/compressed, whose JPEGs are sent as they are, camera/image_raw, or "
        "none.",
        choices=("compressed", "raw", "none"),
    ),
    ParameterDeclaration(
        "image_every", IMAGE_EVERY, "Documents from one with an image to the next one, at least.", range=(1, 1000)
    ),
    ParameterDeclaration("image_width", 320, "With raw images, pixels across, at most.", range=(16, 4096)),
    ParameterDeclaration("jpeg_quality", 70, "With raw images, of 100.", range=(1, 100), live=True),
    ParameterDeclaration(
        "default_fov",
        60.0,
        "Degrees of the camera's horizontal field of view, where no camera_info tells it.",
        range=(MIN_FOV, MAX_FOV),
    ),
    ParameterDeclaration("rover_pattern", "unknown", "What the rover's documents call its pattern: no topic tells it."),
)
