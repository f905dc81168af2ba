# SPDX-License-Identifier: Apache-2.0
"""Parameters of simulator_bridge."""

from drone_bridge.ros.node.common_parameters import common_parameters, frame_parameters
from drone_bridge.ros.node.limit_reports import limit_parameters
from drone_bridge.ros.node.parameters import ParameterDeclaration, declarations
from drone_bridge.ros.node.simulated_time import time_parameters
from drone_bridge.simulator.codec import DEFAULT_PORT
from drone_bridge.simulator.session.client_parameters import SimulatorClientParameters

PARAMETERS = (
    *common_parameters(DEFAULT_PORT, "The simulator's port.", roles=("connect",), silence_warning_s=2.5),
    *declarations(SimulatorClientParameters),
    ParameterDeclaration("entities", [""], "Additional entities to publish, by ID and name, such as 3:buoy."),
    ParameterDeclaration(
        "cameras", [""], "Cameras to add, such as: front entity=0 xyz=0.3,0,0 rpy=0,0,0 f=1 targets=3 period=1."
    ),
    ParameterDeclaration(
        "triggers",
        [""],
        "Triggers to add, such as: near collision a=0 b=3 distance=0.5; touch sweep a=0 b=3; "
        "gate path entity=0 start=0,0,-1 end=5,0,-1 distance=0.5.",
    ),
    ParameterDeclaration("stream_period", 1, "Simulation steps between states of an entity.", range=(1, 1_000_000)),
    *time_parameters("the simulation's"),
    *frame_parameters(),
    *limit_parameters(is_drone=False),
)
