# SPDX-License-Identifier: Apache-2.0
"""The topics and parameters that telemetry_bridge and telemetry_server share."""

from typing import Final

from drone_bridge.node.parameters import ParameterDeclaration
from drone_bridge.telemetry.codec import MAX_FOV, MIN_FOV
from drone_bridge.translate.frames import TelemetryCommandSigns, TelemetrySigns

# Of documents as text.
DRONE_TOPIC: Final = "/drone/telemetry"
ROVER_TOPIC: Final = "/rover/telemetry"
COMMAND_TOPIC: Final = "/drone/command"

#: Of commands and of telemetry, for peers whose axes differ from those assumed in translate/frames.py.
SIGNS: Final = tuple(
    ParameterDeclaration(
        f"{group}_sign.{name}", 1, f"-1 if the peer uses the opposite sign for {name} in {where}.", choices=(1, -1)
    )
    for group, where, kind in (
        ("command", "commands", TelemetryCommandSigns),
        ("telemetry", "telemetry", TelemetrySigns),
    )
    for name in kind._fields
)

DEFAULT_FOV: Final = ParameterDeclaration(
    "default_fov",
    60.0,
    "The camera's horizontal field of view in degrees, used when no message gives one.",
    range=(MIN_FOV, MAX_FOV),
)
