# SPDX-License-Identifier: Apache-2.0
"""The parameters of dronegui_bridge."""

from typing import Final

from drone_bridge.dronegui.codec import AXES, DEFAULT_NAVDATA_PORT, DEFAULT_PORT
from drone_bridge.dronegui.topics.navdata import POSE_VARIANCES, TWIST_VARIANCES
from drone_bridge.ros.common_parameters import (
    common_parameters,
    covariance_parameters,
    frame_parameters,
    full_scale_parameters,
)
from drone_bridge.ros.parameters import ParameterDeclaration

PARAMETERS: Final = (
    *common_parameters(DEFAULT_PORT, "The GUI's port.", roles=("connect",)),
    ParameterDeclaration("rate", 20.0, "Control packets per second.", (2.0, 200.0), live=True),
    ParameterDeclaration(
        "press_time", 0.5, "Seconds for which a service holds its button down.", range=(0.05, 5.0), live=True
    ),
    *full_scale_parameters(AXES),
    ParameterDeclaration(
        "hover_on_zero", False, "Press hover on a cmd_vel of zero, instead of holding the drone level.", live=True
    ),
    ParameterDeclaration(
        "first_packet_copies",
        1,
        "How many times packet 1 is sent. If it is lost, a receiver that has seen higher numbers ignores what follows.",
        range=(1, 10),
    ),
    ParameterDeclaration(
        "receive_navdata",
        True,
        "Listen for navdata. Disable for a GUI that sends none; assume_flying then sets whether the drone flies.",
    ),
    ParameterDeclaration(
        "navdata_port", DEFAULT_NAVDATA_PORT, "The local port to which the GUI sends navdata.", range=(1, 65535)
    ),
    ParameterDeclaration(
        "navdata_timeout",
        1.0,
        "Seconds without navdata after which the last one is considered outdated.",
        range=(0.2, 60.0),
        live=True,
    ),
    ParameterDeclaration(
        "initially",
        "unknown",
        "Where the drone is when the process starts: landed, if a person vouches for it at each start, so not where "
        "something starts the process again: its takeoff may press reset, which stops the motors of a flying drone.",
        choices=("unknown", "landed"),
    ),
    ParameterDeclaration(
        "bootstrap",
        True,
        "Press reset before the first take-off if no navdata arrives and a person has said that the drone is on the "
        "ground: a GUI requests navdata from its drone only then, and never lands the drone without it.",
        live=True,
    ),
    ParameterDeclaration(
        "bootstrap_timeout", 3.0, "Seconds to wait for navdata after that press.", range=(0.1, 60.0), live=True
    ),
    ParameterDeclaration(
        "confirm_timeout",
        5.0,
        "Seconds within which navdata must confirm a take-off or landing after its button was pressed.",
        range=(0.1, 60.0),
        live=True,
    ),
    ParameterDeclaration(
        "publish_odometry", True, "Publish odom: integrated velocities, with the measured height and attitude."
    ),
    *frame_parameters("publish_map_to_odom", "map_frame"),
    *covariance_parameters(POSE_VARIANCES, TWIST_VARIANCES, "odom"),
)
