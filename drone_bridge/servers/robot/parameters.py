# SPDX-License-Identifier: Apache-2.0
"""The parameters of robot_server."""

from collections.abc import Sequence
from dataclasses import replace
from enum import Enum
from typing import Final

from drone_bridge.link_node.common_parameters import common_parameters
from drone_bridge.links.discovery import DISCOVERY_GROUP, DISCOVERY_PORT
from drone_bridge.node.parameters import ParameterDeclaration
from drone_bridge.protocols.robot import TCP_PORT
from drone_bridge.servers.robot.listing import NONE, complaint_about_topics
from drone_bridge.vehicle_side.robot.vehicle import HEADLIGHT, TRACKS


class Dialect(str, Enum):
    """How drivers are spoken to."""

    DOCUMENT = "document"
    ROBOTD_1_2 = "robotd-1.2"  # as that program speaks, without what it does wrong


class Lists(str, Enum):
    """Where the lists of subsystems and sensors come from."""

    PARAMETERS = "parameters"
    TOPICS = "topics"


def _complaint_about_names(names: Sequence[str]) -> str | None:
    if len(set(names)) < len(names) or not all(names):
        return f"is {list(names)}, and has to be different names, or {NONE}."
    return None


#: A driver that sends keep-alives every 0.5 s may be late once.
_COMMON: Final = tuple(
    replace(
        declaration,
        default=1.0,
        meaning="Seconds without a word from a driver after which what it drives is stopped. Keep-alives count.",
    )
    if declaration.name == "command_timeout"
    else declaration
    for declaration in common_parameters(TCP_PORT, "Where drivers are listened for.", ("listen",), 1.5)
)

PARAMETERS: Final = (
    *_COMMON,
    ParameterDeclaration(
        "dialect",
        Dialect.DOCUMENT.value,
        "How drivers are spoken to.",
        choices=tuple(dialect.value for dialect in Dialect),
    ),
    ParameterDeclaration(
        "driver_timeout",
        2.0,
        "Seconds of silence after which a driver is dropped, and what it had is free; 0 for never.",
        range=(0.0, 3600.0),
        live=True,
    ),
    ParameterDeclaration("wheel_separation", 0.5, "Metres between the left and the right side.", range=(0.01, 10.0)),
    ParameterDeclaration("max_wheel_speed", 1.0, "Metres per second of a side at full speed.", range=(0.01, 100.0)),
    ParameterDeclaration(
        "command_rate",
        20.0,
        "Messages on cmd_vel per second while the robot is driven; drivers tell changes only.",
        range=(1.0, 200.0),
    ),
    ParameterDeclaration(
        "lists_from",
        Lists.PARAMETERS.value,
        "Where the lists of subsystems and sensors come from: the parameters below, or the topics subsystems and "
        "sensors, as robot_bridge publishes them.",
        choices=tuple(lists.value for lists in Lists),
    ),
    ParameterDeclaration("skid_steer", TRACKS, f"What drivers call the drive; {NONE} for no drive."),
    ParameterDeclaration(
        "lights",
        [HEADLIGHT],
        f"What drivers call the lights, or {NONE}; the first one is on light, others on light/<name>.",
        check=_complaint_about_names,
    ),
    ParameterDeclaration(
        "sensors",
        ["battery_state"],
        "Topics of sensors, in the order of the list, with what drivers call them after = where it is not the topic's "
        f"last part: battery_state, temperature/left_motor, motor_pwm/m1=Sabertooth M1. {NONE} for no sensors.",
        check=complaint_about_topics,
    ),
    ParameterDeclaration("full_voltage", 12.6, "Volts of a full battery, for drivers.", range=(0.1, 1000.0)),
    ParameterDeclaration(
        "bare_floats", False, "Currents and PWM come as std_msgs/Float32, as robot_bridge can publish them."
    ),
    ParameterDeclaration(
        "source_timeout",
        5.0,
        "Seconds after which the last value of a sensor is not listed as its present one any more.",
        range=(0.05, 3600.0),
        live=True,
    ),
    ParameterDeclaration(
        "sensor_period",
        0.1,
        "Seconds between packets of readings at least. Each holds the values that are new.",
        range=(0.0, 60.0),
        live=True,
    ),
    ParameterDeclaration(
        "log_nodes",
        [NONE],
        f"Nodes whose lines on /rosout drivers get as the robot's log, for instance /robot/robot_bridge, or {NONE}.",
    ),
    ParameterDeclaration(
        "robot_name", "", "What drivers that look for robots are told; empty for the name of this machine."
    ),
    ParameterDeclaration("discovery", True, "Answer drivers that look for robots."),
    ParameterDeclaration(
        "discovery_address", DISCOVERY_GROUP, "The multicast group in which robots are looked for, or this machine."
    ),
    ParameterDeclaration(
        "discovery_port", DISCOVERY_PORT, "The UDP port where robots are looked for.", range=(1, 65535)
    ),
    ParameterDeclaration(
        "discovery_interface", "127.0.0.1", "The address of the network interface to answer on; 0.0.0.0 for all."
    ),
)
