# SPDX-License-Identifier: Apache-2.0
"""Parameters that every node declares, as far as sessions read them: see ros/node/common_parameters.py."""

from dataclasses import dataclass


@dataclass(slots=True)
class NodeParameters:
    """Parameters of bridges and servers, s, with their usual defaults."""

    command_timeout: float = 0.5
    silence_warning: float = 5.0


@dataclass(slots=True)
class ServerParameters(NodeParameters):
    """Parameters of servers, s."""

    source_timeout: float = 1.0
