# SPDX-License-Identifier: Apache-2.0
"""Parameters of simulator_bridge."""

from drone_bridge.ros.node.common_parameters import common_parameters, frame_parameters
from drone_bridge.ros.node.limit_reports import limit_parameters
from drone_bridge.ros.node.parameters import ParameterDeclaration
from drone_bridge.ros.node.simulated_time import time_parameters
from drone_bridge.simulator.codec import DEFAULT_PORT
from drone_bridge.simulator.session.connected_client import AUTO, NONE, POLL, SPY

PARAMETERS = (
    *common_parameters(DEFAULT_PORT, "The simulator's port.", roles=("connect",), silence_warning_s=2.5),
    ParameterDeclaration(
        "request_timeout",
        2.0,
        "Timeout of an answer, s. The call then fails. The connection is kept, since the simulator may be suspended.",
        range=(0.05, 60.0),
    ),
    ParameterDeclaration("vehicle", 0, "ID of the entity that cmd_vel steers.", range=(0, 0x7FFFFFFF)),
    ParameterDeclaration(
        "body_to_model",
        [0.0, 0.0, 0.0, 0.0],
        "Rotation from principal axes to the vehicle's model: w, x, y, z as on the wire. Zeros: learned while paused.",
    ),
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
    ParameterDeclaration(
        "item_events",
        AUTO,
        "How additions and removals are detected: with SPY (spy), by polling (poll), not at all (none), or with SPY "
        "unless the previous connection ended on it, and then by polling (auto). poll saves a CUAUV server the "
        "attempt.",
        choices=(AUTO, SPY, POLL, NONE),
    ),
    ParameterDeclaration("run_on_connect", False, "Unpause the simulation on each connection."),
    ParameterDeclaration(
        "rate", 50.0, "Maximum rate of velocities sent to the vehicle, Hz.", range=(0.1, 1000.0), live=True
    ),
    ParameterDeclaration(
        "release_after",
        5.0,
        "Seconds at rest without commands after which the vehicle is no longer controlled. 0: never.",
        range=(0.0, 3600.0),
        live=True,
    ),
    *time_parameters("the simulation's"),
    *frame_parameters(),
    *limit_parameters(is_drone=False),
)
