# SPDX-License-Identifier: Apache-2.0
"""datagram_link: UDP link of a node, whose parameters select which end sends first."""

from collections.abc import Callable

from drone_bridge.net.connector import LinkError
from drone_bridge.net.datagram_link import DatagramCaller, DatagramPort
from drone_bridge.ros.node.protocol_node import ProtocolNode
from drone_bridge.wire.addresses import address_name


def datagram_link(
    node: ProtocolNode, on_failure: Callable[[LinkError, float], None], payload: str
) -> DatagramPort | DatagramCaller:
    """Create the link for the parameters host, port and role.

    `on_failure` gets the error of each failed attempt to resolve the host, and the delay until the next one, s.
    `payload` names the expected data in the log of a listener.
    Raises LinkError if the address is not available, and ValueError if port is 0 for the role connect.
    """
    host, port = node.parameters["host"], node.parameters["port"]
    if node.parameters["role"] == "connect":
        if port == 0:
            raise ValueError("port is 0 but must be from 1 to 65535 when the role is connect.")
        return DatagramCaller(host, port, on_failure, node.wire_log)
    listening = DatagramPort(host, port, node.wire_log)
    node.get_logger().info(f"Waiting for {payload} on {address_name(host, listening.port)}.")
    return listening
