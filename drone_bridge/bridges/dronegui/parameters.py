# SPDX-License-Identifier: Apache-2.0
"""The parameters of dronegui_bridge."""

from typing import Final

from drone_bridge.link_node.common_parameters import common_parameters, covariance_parameters, frame_parameters
from drone_bridge.node.parameters import ParameterDeclaration
from drone_bridge.protocols.dronegui import AXES, DEFAULT_NAVDATA_PORT, DEFAULT_PORT
from drone_bridge.translate.dronegui_navdata import POSE_VARIANCES, TWIST_VARIANCES

PARAMETERS: Final = (
    *common_parameters(DEFAULT_PORT, "The GUI's port.", roles=("connect",)),
    ParameterDeclaration("rate", 20.0, "Packets per second, with or without a new command.", (2.0, 200.0), live=True),
    ParameterDeclaration(
        "press_time", 0.5, "Seconds for which a service holds its button down.", range=(0.05, 5.0), live=True
    ),
    *(
        ParameterDeclaration(
            f"full_scale.{axis}", 1.0, f"The {field} of cmd_vel that means full {axis}.", range=(1e-3, 1e3), live=True
        )
        for axis, field in zip(AXES, ("linear.y", "linear.x", "angular.z", "linear.z"), strict=True)
    ),
    ParameterDeclaration(
        "hover_on_zero", False, "Press hover for a cmd_vel of zero, instead of holding the drone level.", live=True
    ),
    ParameterDeclaration(
        "first_packet_copies",
        1,
        "How often packet 1 is sent: lost, it leaves a receiver that has seen higher numbers deaf to the next ones.",
        range=(1, 10),
    ),
    ParameterDeclaration(
        "receive_navdata",
        True,
        "Listen for navdata. Set it to false for a GUI that sends none: then assume_flying is all.",
    ),
    ParameterDeclaration(
        "navdata_port", DEFAULT_NAVDATA_PORT, "Our own port, which the GUI sends navdata to.", range=(1, 65535)
    ),
    ParameterDeclaration(
        "navdata_timeout",
        1.0,
        "Seconds without navdata after which what it said is no longer taken for the present.",
        range=(0.2, 60.0),
        live=True,
    ),
    ParameterDeclaration(
        "bootstrap",
        True,
        "Press reset before the first take-off when no navdata comes: a GUI asks its drone for navdata only then, and "
        "without it never lands the drone. Never pressed while the drone is taken to fly.",
        live=True,
    ),
    ParameterDeclaration(
        "bootstrap_timeout", 3.0, "Seconds to wait for navdata after that press.", range=(0.1, 60.0), live=True
    ),
    ParameterDeclaration(
        "confirm_timeout",
        5.0,
        "Seconds within which navdata has to show that the drone takes off, or lands, after the button was pressed.",
        range=(0.1, 60.0),
        live=True,
    ),
    ParameterDeclaration("publish_odometry", True, "Publish odom: velocities added up, with the height and attitude."),
    *frame_parameters("publish_map_to_odom", "map_frame"),
    *covariance_parameters(POSE_VARIANCES, TWIST_VARIANCES, "odom"),
)
