# SPDX-License-Identifier: Apache-2.0
"""The parameters that testbed_bridge and testbed_server share."""

from typing import Final

from drone_bridge.ros.parameters import ParameterDeclaration
from drone_bridge.testbed.codec import AngleUnit, AttitudeLayout

#: What attitude_layout can be besides the name of a layout: detect it from the first frame.
AUTO: Final = "auto"

ANGLE_UNIT: Final = ParameterDeclaration(
    "angle_unit",
    AngleUnit.DEGREES.value,
    "The unit of angles and angular rates on the wire.",
    choices=tuple(unit.value for unit in AngleUnit),
)

WIRE_LOG_IMAGES: Final = ParameterDeclaration(
    "wire_log_images",
    True,
    "Whether the log in wire_log has the pixels of the images; if not, it is small, and has everything else.",
)


def attitude_layout(*, is_detectable: bool) -> ParameterDeclaration:
    """Return the declaration of attitude_layout; AUTO is the default where the layout can be detected."""
    layouts = tuple(layout.value for layout in AttitudeLayout)
    meaning = "The floats after the images: as documented, with roll in place of yaw, or a full pose."
    if is_detectable:
        meaning += " auto detects a pose from the first frame, and otherwise assumes the documented layout."
        return ParameterDeclaration("attitude_layout", AUTO, meaning, choices=(AUTO, *layouts))
    return ParameterDeclaration("attitude_layout", AttitudeLayout.PITCH_YAW.value, meaning, choices=layouts)
