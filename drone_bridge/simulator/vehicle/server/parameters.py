# SPDX-License-Identifier: Apache-2.0
"""Parameters of simulator_server."""

from drone_bridge.ros.node.common_parameters import NEUTRAL_TIME, SOURCE_TIMEOUT, common_parameters
from drone_bridge.ros.node.parameters import ParameterDeclaration, declarations
from drone_bridge.simulator.codec import DEFAULT_PORT
from drone_bridge.simulator.vehicle.session.forwarding import SimulatorParameters

PARAMETERS = (
    *common_parameters(DEFAULT_PORT, "The port to listen on for clients.", ("listen",), 60.0),
    SOURCE_TIMEOUT,
    NEUTRAL_TIME,
    *declarations(SimulatorParameters),
    ParameterDeclaration(
        "render", "vehicle", "Extended attribute render of the vehicle, by which visualizers choose a model."
    ),
    ParameterDeclaration("radius", 0.5, "Radius of the sphere that represents the vehicle, m.", range=(0.001, 1000.0)),
    ParameterDeclaration(
        "entities",
        [""],
        "Additional entities: an ID and a name, as 3:buoy, for entities/buoy/pose and twist; optionally pose=<topic>, "
        "twist=<topic>, odom=<topic>, render=<tag>, radius=<m>.",
    ),
    ParameterDeclaration(
        "bridge",
        "simulator_bridge",
        "Node whose services, if available, answer requests that topics can't. Empty: none.",
    ),
)
