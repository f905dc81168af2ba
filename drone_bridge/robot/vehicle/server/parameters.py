# SPDX-License-Identifier: Apache-2.0
"""Parameters of robot_server."""

from collections.abc import Sequence
from enum import Enum

from drone_bridge.robot import codec
from drone_bridge.robot.discovery import MAX_NAME_BYTES
from drone_bridge.robot.topics import DISCOVERY_UDP_PORT
from drone_bridge.robot.units import SkidSteer
from drone_bridge.robot.vehicle.device.dialects import SERVED, RobotDialect
from drone_bridge.robot.vehicle.device.vehicle import TRACKS
from drone_bridge.robot.vehicle.server.listing import NONE, check_topics
from drone_bridge.robot.vehicle.session.robot import RobotParameters
from drone_bridge.ros.node.common_parameters import NEUTRAL_TIME, common_parameters
from drone_bridge.ros.node.parameters import ParameterDeclaration, declarations


class ListSource(str, Enum):
    """Source of the lists of subsystems and sensors."""

    PARAMETERS = "parameters"
    TOPICS = "topics"


def _check_names(names: Sequence[str]) -> str | None:
    if len(set(names)) < len(names) or not all(names):
        return f"is {list(names)}, but must be distinct names, or {NONE}."
    return None


def _check_robot_name(name: str) -> str | None:
    size = len(name.encode())
    return f"has {size} bytes, but must have at most {MAX_NAME_BYTES}." if size > MAX_NAME_BYTES else None


#: Of a driver. It allows one that sends keep-alives every 0.5 s to miss one.
COMMAND_TIMEOUT_S = 1.0

PARAMETERS = (
    *common_parameters(codec.TCP_PORT, "The port to listen on for drivers.", ("listen",), 1.5, COMMAND_TIMEOUT_S),
    ParameterDeclaration(
        "dialect",
        RobotDialect.DOCUMENT.value,
        "Variant of the protocol towards drivers.",
        choices=tuple(dialect.value for dialect in SERVED),
    ),
    *declarations(RobotParameters),
    *declarations(SkidSteer),
    ParameterDeclaration(
        "lists_from",
        ListSource.PARAMETERS.value,
        "Source of the lists of subsystems and sensors: the parameters below, or the topics subsystems and sensors "
        "of robot_bridge.",
        choices=tuple(lists.value for lists in ListSource),
    ),
    ParameterDeclaration("skid_steer", TRACKS, f"Name of the skid steer as shown to drivers. {NONE}: no skid steer."),
    ParameterDeclaration(
        "lights",
        [NONE],
        f"Names of lights as shown to drivers, such as headlight, or {NONE}: robotd's Java driver NetRobot fails on "
        "lights. The first one has the topic light, others light/<name>.",
        check=_check_names,
    ),
    ParameterDeclaration(
        "sensors",
        ["battery_state"],
        "Topics of sensors in list order, with = and the name shown to drivers unless that is the topic's "
        f"last part: battery_state, temperature/left_motor, motor_pwm/m1=Sabertooth M1. {NONE}: no sensors.",
        check=check_topics,
    ),
    ParameterDeclaration(
        "full_voltage", 12.6, "Voltage of a full battery as reported to drivers, V.", range=(0.1, 1000.0)
    ),
    NEUTRAL_TIME,
    ParameterDeclaration(
        "robot_name",
        "",
        f"Name in discovery replies, up to {MAX_NAME_BYTES} bytes. Empty: the host name.",
        check=_check_robot_name,
    ),
    ParameterDeclaration("discovery", True, "Answer discovery requests."),
    DISCOVERY_UDP_PORT,
    ParameterDeclaration(
        "discovery_interface",
        "127.0.0.1",
        "Address of the network interface for discovery. 127.0.0.1: drivers on this machine, by any route. "
        "0.0.0.0: all drivers.",
    ),
)
