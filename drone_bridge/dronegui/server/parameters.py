# SPDX-License-Identifier: Apache-2.0
"""The parameters of dronegui_server."""

from typing import Final

from drone_bridge.dronegui.codec import (
    AXES,
    DEFAULT_NAVDATA_PORT,
    DEFAULT_NAVDATA_SOURCE_PORT,
    DEFAULT_PORT,
)
from drone_bridge.ros.common_parameters import (
    ALLOWED_PEERS,
    NEUTRAL_TIME,
    SOURCE_TIMEOUT,
    common_parameters,
    full_scale_parameters,
)
from drone_bridge.ros.parameters import ParameterDeclaration

#: The buttons that operators press, by the names of the bridge's services.
TARGETS: Final = ("takeoff", "land", "reset", "hover")

PARAMETERS: Final = (
    *common_parameters(DEFAULT_PORT, "The port for control packets; 0 picks a free one.", roles=("listen",)),
    SOURCE_TIMEOUT,
    NEUTRAL_TIME,
    ALLOWED_PEERS,
    ParameterDeclaration(
        "rate",
        20.0,
        "The minimum rate of cmd_vel while an operator is heard, Hz; every packet is also published at once.",
        range=(1.0, 200.0),
        live=True,
    ),
    *full_scale_parameters(AXES),
    ParameterDeclaration(
        "buttons_as",
        "services",
        "How take_off and reset reach the drone: as std_srvs/Trigger calls, or as std_msgs/Empty on topics.",
        choices=("services", "topics"),
    ),
    *(
        ParameterDeclaration(
            f"target.{name}",
            "",
            f"The service or topic for {name}. If empty, the service dronegui_bridge/{name}"
            + (", a std_srvs/SetBool." if name == "hover" else f" or the topic {name}."),
        )
        for name in TARGETS
    ),
    ParameterDeclaration(
        "python_literals",
        False,
        "Accept True, False and None, which appear in the protocol's document but are not JSON.",
    ),
    ParameterDeclaration(
        "loose_values",
        True,
        "Accept 0 and 1 for buttons, axes beyond 1, and any seq, as the real GUI does.",
    ),
    ParameterDeclaration(
        "bootstrapped",
        True,
        "Send navdata, and track whether the drone is flying, from the start. If false, only after the first reset, "
        "as the real GUI does; until then take_off cannot land the drone.",
    ),
    ParameterDeclaration("navdata_port", DEFAULT_NAVDATA_PORT, "The operators' port for navdata.", range=(1, 65535)),
    ParameterDeclaration(
        "navdata_source_port",
        DEFAULT_NAVDATA_SOURCE_PORT,
        "The local port from which navdata is sent, if it is free; 0 picks any.",
        range=(0, 65535),
    ),
    ParameterDeclaration(
        "navdata_rate", 15.0, "The maximum rate of the drone's state in navdata, Hz.", range=(0.1, 200.0)
    ),
)
