# SPDX-License-Identifier: Apache-2.0
"""The parameters of simulator_bridge."""

from typing import Final

from drone_bridge.link_node.common_parameters import (
    common_parameters,
    covariance_parameters,
    frame_parameters,
)
from drone_bridge.link_node.simulated_time import time_parameters
from drone_bridge.node.parameters import ParameterDeclaration
from drone_bridge.protocols.simulator import TCP_PORT
from drone_bridge.translate.covariances import AXES, EXACT_VARIANCE

# How additions and removals are noticed, by the parameter item_events.
AUTO, SPY, POLL, NONE = "auto", "spy", "poll", "none"

PARAMETERS: Final = (
    *common_parameters(TCP_PORT, "The simulator's port.", roles=("connect",), silence_warning_s=2.5),
    ParameterDeclaration(
        "single_connection", False, "Use one connection for requests and streams, which real servers may mix up."
    ),
    ParameterDeclaration(
        "request_timeout",
        2.0,
        "Seconds that an answer may take; then its caller is told so, and the simulator connected to again.",
        range=(0.05, 60.0),
    ),
    ParameterDeclaration("vehicle", 0, "The ID of the entity that is steered.", range=(0, 0x7FFFFFFF)),
    ParameterDeclaration(
        "body_to_model",
        [0.0, 0.0, 0.0, 0.0],
        "How the vehicle's principal axes lie to its model: w, x, y, z as on the wire; zeros: learned while paused.",
    ),
    ParameterDeclaration("entities", [""], "Further entities to publish, by ID and name, such as 3:buoy."),
    ParameterDeclaration(
        "cameras", [""], "Cameras to add, such as: front entity=0 xyz=0.3,0,0 rpy=0,0,0 f=1 targets=3 period=1."
    ),
    ParameterDeclaration(
        "triggers",
        [""],
        "Triggers to add, such as: near collision a=0 b=3 distance=0.5; touch sweep a=0 b=3; "
        "gate path entity=0 start=0,0,-1 end=5,0,-1 distance=0.5.",
    ),
    ParameterDeclaration("stream_period", 1, "Steps between two states of an entity.", range=(1, 1_000_000)),
    ParameterDeclaration(
        "item_events",
        AUTO,
        "How additions and removals are noticed: SPY; asking again and again; not at all; or SPY if a connection "
        "that is there just to try it survives, and asking otherwise.",
        choices=(AUTO, SPY, POLL, NONE),
    ),
    ParameterDeclaration("poll_period", 1.0, "Seconds between two lists of entities.", range=(0.05, 3600.0)),
    ParameterDeclaration("run_on_connect", False, "Unpause the simulation whenever connected."),
    ParameterDeclaration(
        "rate", 20.0, "Most velocities sent to the vehicle per second.", range=(0.1, 1000.0), live=True
    ),
    ParameterDeclaration(
        "release_after",
        5.0,
        "Seconds of standing still without commands after which the vehicle is left to itself; 0: never.",
        range=(0.0, 3600.0),
        live=True,
    ),
    ParameterDeclaration(
        "max_linear_speed", 10.0, "Metres per second; faster commands are clamped.", range=(0.0, 1000.0), live=True
    ),
    ParameterDeclaration(
        "max_angular_speed", 10.0, "Radians per second; faster commands are clamped.", range=(0.0, 1000.0), live=True
    ),
    ParameterDeclaration(
        "convert_frames", True, "Turn north-east-down and forward-right-down into ROS's axes; false leaves them."
    ),
    ParameterDeclaration("gravity", 9.81, "Metres per second squared, for what an IMU would read.", range=(0.0, 100.0)),
    *time_parameters("the simulation's"),
    ParameterDeclaration("clock_rate", 100.0, "Most messages on /clock per second.", range=(1.0, 10000.0)),
    *frame_parameters(),
    *covariance_parameters([EXACT_VARIANCE] * AXES, [EXACT_VARIANCE] * AXES, "odom"),
    ParameterDeclaration(
        "unimplemented_requests",
        "refuse",
        "Services for requests that the CUAUV server does not implement, and closes the connection on.",
        choices=("refuse", "send"),
        live=True,
    ),
)
