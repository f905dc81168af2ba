# SPDX-License-Identifier: Apache-2.0
"""Common parameters of bridges and servers. See docs/bridges.md."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeVar

from drone_bridge.net.disk_space import DEFAULT_MB
from drone_bridge.ros.node.parameters import DeclaredParameters, ParameterDeclaration, declarations
from drone_bridge.ros.topics.frames import FrameNames, check_prefix
from drone_bridge.session.node_parameters import ServerParameters
from drone_bridge.wire.addresses import ANY, AllowedPeers

GroupT = TypeVar("GroupT", bound=NamedTuple)

_DEFAULT = ServerParameters()


#: No host: a link, host:port, and an address without all its numbers, which `socket` completes to that of another one.
_NO_HOST = re.compile(r"[\s/\[\]]|^[^:]*:[^:]*$|^\d+(\.\d+){0,2}$")


def _check_host(host: str) -> str | None:
    return f"is {host!r}, but must be a name or a whole address, without a port." if _NO_HOST.search(host) else None


_TRANSFORMS = (
    ParameterDeclaration(
        "publish_tf", True, "Publish moving transforms on /tf. Static ones, those of sensors, are always published."
    ),
    ParameterDeclaration(
        "publish_map_to_odom", True, "Publish a static transform from map to odom. Disable it if another node does."
    ),
)


def frame_parameters(*, without: Sequence[str] = ()) -> tuple[ParameterDeclaration, ...]:
    """Return the parameters of the tf frames, except the named ones."""
    return tuple(each for each in (*_TRANSFORMS, *declarations(FrameNames)) if each.name not in without)


#: Parameter of servers whose operators command shares of tilt.
CMD_VEL = "cmd_vel"
COMMAND_OUTPUT = ParameterDeclaration(
    "command_output",
    "auto",
    "Topic of commands: auto publishes shares of tilt unchanged (cmd_axes) if it has subscribers, as in a relay, else "
    "the corresponding velocities (cmd_vel). cmd_vel always publishes velocities.",
    choices=("auto", CMD_VEL),
)

#: Parameter of drones without a position of their own.
DRONE_ODOMETRY = ParameterDeclaration(
    "publish_odometry", True, "Publish odom: integrated velocities with measured height and attitude."
)

#: Parameter of servers: how long data from ROS stay fresh.
SOURCE_TIMEOUT = ParameterDeclaration(
    "source_timeout",
    _DEFAULT.source_timeout,
    "Seconds without a message on a topic after which its last value is no longer sent to the operator.",
    range=(0.05, 3600.0),
    live=True,
)

#: Parameter of servers: see ros/servers/neutral_repeater.py.
NEUTRAL_TIME = ParameterDeclaration(
    "neutral_time",
    60.0,
    "Time for which the neutral command is repeated, once per second, without another commander, s.",
    range=(0.0, 86400.0),
    live=True,
)

ALLOWED_PEERS = ParameterDeclaration(
    "allowed_peers",
    [ANY],
    "Addresses from which datagrams are accepted: any, addresses, or networks such as 192.168.1.0/24.",
)

MIN_FREE_SPACE = ParameterDeclaration(
    "min_free_space",
    DEFAULT_MB,
    "Least free space on the disk, MB, below which a recording or wire log ends or does not start; -1: the smaller of "
    "1 GB and 5 % of the disk; 0.0: unlimited.",
    range=(DEFAULT_MB, 1e9),
)

#: Field of cmd_vel that corresponds to an axis on the wire.
_TWIST_FIELDS = {
    "roll": "linear.y",
    "pitch": "linear.x",
    "yaw": "angular.z",
    "gas": "linear.z",
    "thrust": "linear.z",
}


def read_allowed_peers(parameters: DeclaredParameters) -> AllowedPeers:
    """Parse the parameter `allowed_peers`. Raises ValueError."""
    try:
        return AllowedPeers(parameters["allowed_peers"])
    except ValueError as error:
        raise ValueError(f"allowed_peers: {error}") from None


def full_scale_parameters(axes: Sequence[str]) -> tuple[ParameterDeclaration, ...]:
    """Return the parameters for the cmd_vel, m/s or rad/s, at full deflection of each axis."""
    return tuple(
        ParameterDeclaration(
            f"full_scale.{axis}",
            1.0,
            f"The {_TWIST_FIELDS[axis]} of cmd_vel at full {axis}.",
            range=(1e-3, 1e3),
            live=True,
        )
        for axis in axes
    )


def size_parameters(sizes: Mapping[str, float], limits: tuple[float, float]) -> tuple[ParameterDeclaration, ...]:
    """Return the parameters for sizes of a robot by their names, with their defaults."""
    meaning = "Size of the robot as built, in m if it is a length."
    return tuple(ParameterDeclaration(name, float(size), meaning, range=limits) for name, size in sizes.items())


def read_group(parameters: DeclaredParameters, prefix: str, kind: type[GroupT]) -> GroupT:
    """Return a named tuple, each field with the value of the parameter `prefix`.field."""
    return kind._make(parameters[f"{prefix}.{field}"] for field in kind._fields)


def common_parameters(
    port: int,
    port_meaning: str,
    roles: tuple[str, ...] = ("connect", "listen"),
    silence_warning_s: float = _DEFAULT.silence_warning,
    command_timeout_s: float = _DEFAULT.command_timeout,
) -> tuple[ParameterDeclaration, ...]:
    """Return the parameters of every bridge and server. The first role is the default.

    `silence_warning_s` is how long a healthy peer of this protocol may be silent. `command_timeout_s` is how long a
    command of this protocol is in force.
    """
    return (
        ParameterDeclaration(
            "role",
            roles[0],
            "Which end opens the connection, or over UDP sends first: connect, this node; listen, its peer.",
            choices=roles,
        ),
        ParameterDeclaration(
            "host",
            "127.0.0.1",
            "The peer's address, or when listening, the local address to listen on.",
            check=_check_host,
        ),
        ParameterDeclaration("port", port, port_meaning, range=(0 if "listen" in roles else 1, 65535)),
        ParameterDeclaration(
            "actual_port", 0, "Port in use, which the system has chosen if port is 0.", read_only=True
        ),
        ParameterDeclaration(
            "command_timeout",
            command_timeout_s,
            "Seconds without a command after which the vehicle is sent the neutral command.",
            range=(0.01, 60.0),
            live=True,
        ),
        ParameterDeclaration(
            "silence_warning",
            silence_warning_s,
            "Seconds of silence from a connected peer after which diagnostics warn, and after which a listening node "
            "drops it in favour of the next one that connects.",
            range=(0.05, 3600.0),
            live=True,
        ),
        ParameterDeclaration(
            "wire_log", "", "Folder for a log of the bytes of every connection, see docs/bags.md; empty: no log."
        ),
        MIN_FREE_SPACE,
        ParameterDeclaration("frame_prefix", "", "Prefix of every tf frame, for instance drone1/.", check=check_prefix),
        ParameterDeclaration("autostart", True, "Configure and activate at start."),
    )
