# SPDX-License-Identifier: Apache-2.0
"""The parameters that bridges share, each declared here and nowhere else. See docs/bridges.md."""

import math
from collections.abc import Sequence
from typing import Final, TypeVar

from drone_bridge.node.parameters import DeclaredParameters, ParameterDeclaration
from drone_bridge.translate.covariances import AXES, OdometryCovariances
from drone_bridge.translate.frame_names import FrameNames

FrameNamesT = TypeVar("FrameNamesT", bound=FrameNames)


def _complaint_about_prefix(prefix: str) -> str | None:
    return f"is {prefix!r}, and must not begin with /: tf2 has no such frames." if prefix.startswith("/") else None


def _complaint_about_frame(name: str) -> str | None:
    if not name:
        return "is empty, and has to name a frame."
    return _complaint_about_prefix(name)


def _complaint_about_variances(values: Sequence[float]) -> str | None:
    if len(values) != AXES or not all(math.isfinite(value) and value >= 0.0 for value in values):
        return f"is {list(values)}, and has to be {AXES} finite numbers from 0 on."
    return None


#: The parameters that say how tf is published, by name; which of them a bridge has depends on its frames.
_FRAME_PARAMETERS: Final = {
    declaration.name: declaration
    for declaration in (
        ParameterDeclaration(
            "publish_tf",
            True,
            "Publish the transforms that change on /tf; those of sensors are static, and always there.",
        ),
        ParameterDeclaration(
            "publish_map_to_odom", True, "Publish map to odom as a static transform; false where something else does."
        ),
        ParameterDeclaration("map_frame", "map", "The world's frame, after the prefix.", check=_complaint_about_frame),
        ParameterDeclaration(
            "odom_frame", "odom", "The frame that odometry counts from, after the prefix.", check=_complaint_about_frame
        ),
        ParameterDeclaration(
            "base_frame", "base_link", "The body's frame, after the prefix.", check=_complaint_about_frame
        ),
    )
}


def frame_parameters(*left_out: str) -> tuple[ParameterDeclaration, ...]:
    """Return the parameters of the tf frames, without those that make no sense for a bridge."""
    return tuple(declaration for name, declaration in _FRAME_PARAMETERS.items() if name not in left_out)


def frame_names(parameters: DeclaredParameters, kind: type[FrameNamesT]) -> FrameNamesT:
    """Return the frames as the parameters name them."""

    def name(parameter: str) -> str:
        default: str = _FRAME_PARAMETERS[parameter].default
        return parameters[parameter] if parameter in parameters else default  # noqa: SIM401

    return kind(parameters["frame_prefix"], name("map_frame"), name("odom_frame"), name("base_frame"))


def covariance_parameters(
    pose: Sequence[float], twist: Sequence[float], whose: str
) -> tuple[ParameterDeclaration, ...]:
    """Return the parameters that say how certain odometry is; it is not on any of the wires.

    Args:
        pose: the variances of x, y, z (m^2) and of the rotations about them (rad^2).
        twist: those of the velocities along and about the axes, (m/s)^2 and (rad/s)^2.
        whose: the topic.
    """
    return tuple(
        ParameterDeclaration(
            f"{what}_covariance_diagonal",
            list(variances),
            f"Variances of the {what} on {whose}: x, y, z, and about x, y, z. Large where nothing is known.",
            check=_complaint_about_variances,
        )
        for what, variances in (("pose", pose), ("twist", twist))
    )


def odometry_covariances(parameters: DeclaredParameters) -> OdometryCovariances:
    """Return the covariances that the parameters give."""
    return OdometryCovariances(*(parameters[f"{what}_covariance_diagonal"] for what in ("pose", "twist")))


#: Of servers: how long what ROS has told stays true.
SOURCE_TIMEOUT: Final = ParameterDeclaration(
    "source_timeout",
    1.0,
    "Seconds without a message on a topic after which what it told last is not sent to the operator any more.",
    range=(0.05, 3600.0),
    live=True,
)


def common_parameters(
    port: int,
    port_meaning: str,
    roles: tuple[str, ...] = ("connect", "listen"),
    silence_warning_s: float = 5.0,
) -> tuple[ParameterDeclaration, ...]:
    """Return the parameters that every bridge has, the first of the roles being the default.

    `silence_warning_s` is how long a healthy peer of this protocol may be silent.
    """
    return (
        ParameterDeclaration("role", roles[0], "Who opens the connection.", choices=roles),
        ParameterDeclaration("host", "127.0.0.1", "The peer's address, or when listening the address of our own side."),
        ParameterDeclaration("port", port, port_meaning, range=(0 if "listen" in roles else 1, 65535)),
        ParameterDeclaration(
            "actual_port", 0, "The port in use: tells which one a port of 0 has become.", read_only=True
        ),
        ParameterDeclaration(
            "command_timeout",
            0.5,
            "Seconds without a command after which the vehicle gets the neutral one.",
            range=(0.01, 60.0),
            live=True,
        ),
        ParameterDeclaration(
            "clock_difference",
            "learn",
            "Of commands stamped by the clock of another machine: learn it from 3 s of commands that come steadily, or "
            "refuse what is too old by this machine's clock.",
            choices=("learn", "refuse"),
        ),
        ParameterDeclaration(
            "silence_warning",
            silence_warning_s,
            "Seconds without a word from a connected peer after which diagnostics warn, and after which a listening "
            "bridge gives its place to the next one that asks for it.",
            range=(0.05, 3600.0),
            live=True,
        ),
        ParameterDeclaration(
            "hardware_id", "", "Names the vehicle in diagnostics; empty for the protocol and the configured address."
        ),
        ParameterDeclaration(
            "wire_log",
            "",
            "A folder for the bytes of every connection in both directions, see docs/wire_log.md; empty for none.",
        ),
        ParameterDeclaration(
            "wire_log_mebibytes",
            1024,
            "How much the files in wire_log may occupy, MiB; the oldest are removed.",
            range=(16, 1_048_576),
        ),
        ParameterDeclaration(
            "frame_prefix",
            "",
            "Put before the name of every tf frame, for instance drone1/.",
            check=_complaint_about_prefix,
        ),
        ParameterDeclaration(
            "old_service_names",
            True,
            "Serve services under the names of before 0.2, without the node's name, as well.",
            at_start=True,
        ),
        ParameterDeclaration("autostart", True, "Configure and activate without being asked to."),
    )
