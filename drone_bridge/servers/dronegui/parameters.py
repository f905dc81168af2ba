# SPDX-License-Identifier: Apache-2.0
"""The parameters of dronegui_server."""

from typing import Final

from drone_bridge.link_node.common_parameters import SOURCE_TIMEOUT, common_parameters
from drone_bridge.links.allowed_peers import ANY
from drone_bridge.node.parameters import ParameterDeclaration
from drone_bridge.protocols.dronegui import (
    AXES,
    DEFAULT_NAVDATA_PORT,
    DEFAULT_NAVDATA_SOURCE_PORT,
    DEFAULT_PORT,
)

#: What operators press, by the name that bridges give it.
TARGETS: Final = ("takeoff", "land", "reset", "hover")

PARAMETERS: Final = (
    *common_parameters(DEFAULT_PORT, "Where control packets are taken; 0 takes a free port.", roles=("listen",)),
    SOURCE_TIMEOUT,
    ParameterDeclaration(
        "allowed_peers", [ANY], "Whom packets are taken from: any, addresses, or networks such as 192.168.1.0/24."
    ),
    ParameterDeclaration(
        "rate",
        20.0,
        "How often cmd_vel is published at least while the operator is heard, per second; each packet is at once.",
        range=(1.0, 200.0),
        live=True,
    ),
    *(
        ParameterDeclaration(
            f"full_scale.{axis}", 1.0, f"The {field} of cmd_vel that full {axis} means.", range=(1e-3, 1e3), live=True
        )
        for axis, field in zip(AXES, ("linear.y", "linear.x", "angular.z", "linear.z"), strict=True)
    ),
    ParameterDeclaration(
        "buttons_as",
        "services",
        "How take_off and reset reach the drone: calls of std_srvs/Trigger, or std_msgs/Empty on topics.",
        choices=("services", "topics"),
    ),
    *(
        ParameterDeclaration(
            f"target.{name}",
            "",
            f"The service, or topic, for {name}; empty for dronegui_bridge/{name} as a service"
            + (", a std_srvs/SetBool." if name == "hover" else f", {name} as a topic."),
        )
        for name in TARGETS
    ),
    ParameterDeclaration(
        "python_literals", False, "Take True, False and None, which the protocol's document shows and JSON has not."
    ),
    ParameterDeclaration(
        "loose_values",
        True,
        "Take 0 and 1 for buttons, axes beyond 1, and any seq, as the real GUI does; false refuses them.",
    ),
    ParameterDeclaration(
        "bootstrapped",
        True,
        "Send navdata, and know whether the drone flies, from the start. With false only once reset has been pressed, "
        "as the real GUI does: before, take_off never lands the drone.",
    ),
    ParameterDeclaration("navdata_port", DEFAULT_NAVDATA_PORT, "The operators' port for navdata.", range=(1, 65535)),
    ParameterDeclaration(
        "navdata_source_port",
        DEFAULT_NAVDATA_SOURCE_PORT,
        "Our own port that navdata is sent from, if it is free; 0 takes any.",
        range=(0, 65535),
    ),
    ParameterDeclaration(
        "navdata_rate", 15.0, "The most that is sent of the drone's own state, per second.", range=(0.1, 200.0)
    ),
)
