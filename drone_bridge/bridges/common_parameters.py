# SPDX-License-Identifier: Apache-2.0
"""The parameters that bridges share, each declared here and nowhere else. See docs/bridges.md."""

from drone_bridge.parameters import ParameterDeclaration


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
        ParameterDeclaration("frame_prefix", "", "Put before the name of every tf frame, for instance drone1/."),
        ParameterDeclaration("autostart", True, "Configure and activate without being asked to."),
    )
