# SPDX-License-Identifier: Apache-2.0
"""The parameters of simulator_server."""

from typing import Final

from drone_bridge.link_node.common_parameters import SOURCE_TIMEOUT, common_parameters
from drone_bridge.node.parameters import ParameterDeclaration
from drone_bridge.protocols.simulator import TCP_PORT
from drone_bridge.vehicle_side.simulator.quirks import Quirks

PARAMETERS: Final = (
    *common_parameters(TCP_PORT, "Where clients are listened for.", ("listen",), 60.0),
    SOURCE_TIMEOUT,
    ParameterDeclaration("vehicle", 0, "The ID of the entity that odom tells of.", range=(0, 0x7FFFFFFF)),
    ParameterDeclaration(
        "render", "vehicle", "The vehicle's extended attribute render, by which visualizers choose what to draw."
    ),
    ParameterDeclaration("radius", 0.5, "Metres, of the sphere that the vehicle is taken for.", range=(0.001, 1000.0)),
    ParameterDeclaration(
        "entities",
        [""],
        "Further entities: an ID and a name, as 3:buoy, of topics entities/buoy/pose and twist; or also pose=<topic>, "
        "twist=<topic>, odom=<topic>, tf=<frame>, render=<tag>, radius=<m>.",
    ),
    ParameterDeclaration("odom_frame", "odom", "The frame of tf, after the prefix, that entities of tf are seen from."),
    ParameterDeclaration(
        "bridge",
        "simulator_bridge",
        "The node whose services, where they are there, do what topics can't; empty for none.",
    ),
    ParameterDeclaration(
        "request_timeout", 2.0, "Seconds that a service may take before a client gets an error.", range=(0.05, 60.0)
    ),
    ParameterDeclaration(
        "quirks",
        Quirks.NONE.value,
        "none: answers as documented; real: closes connections as the CUAUV server does, and sends as it does.",
        choices=tuple(quirks.value for quirks in Quirks),
    ),
    ParameterDeclaration(
        "frequency", 100.0, "Steps per second that CONFIG tells of, where no service does.", range=(0.001, 100000.0)
    ),
    ParameterDeclaration("max_clients", 32, "Clients at once; more are refused.", range=(1, 1000)),
    ParameterDeclaration(
        "max_linear_speed", 10.0, "Metres per second; faster commands are clamped.", range=(0.0, 1000.0), live=True
    ),
    ParameterDeclaration(
        "max_angular_speed", 10.0, "Radians per second; faster commands are clamped.", range=(0.0, 1000.0), live=True
    ),
    ParameterDeclaration(
        "convert_frames", True, "Turn ROS's axes into north-east-down and forward-right-down; false leaves them."
    ),
    ParameterDeclaration("gravity", 9.81, "Metres per second squared, in what imu/data reads.", range=(0.0, 100.0)),
)
