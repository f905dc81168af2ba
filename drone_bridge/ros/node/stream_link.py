# SPDX-License-Identifier: Apache-2.0
"""stream_link: TCP link of a node with one peer, whose parameters select which end connects."""

from collections.abc import Callable

from drone_bridge.net.connector import LinkError
from drone_bridge.net.tcp_connection import StreamOptions
from drone_bridge.net.tcp_peer import TcpPeer
from drone_bridge.net.tcp_port import TcpPort
from drone_bridge.ros.node.protocol_node import ProtocolNode
from drone_bridge.wire.addresses import address_name


def stream_link(
    node: ProtocolNode, on_failure: Callable[[LinkError, float], None], options: StreamOptions | None = None
) -> TcpPort | TcpPeer:
    """Create the link for the parameters host, port and role.

    `on_failure` gets the error of each failed attempt to connect, and the delay until the next one, s.
    Raises LinkError if the address is not available, and ValueError if port is 0 for the role connect.
    """
    host, port = node.parameters["host"], node.parameters["port"]
    if node.parameters["role"] == "listen":
        listening = TcpPort(host, port, options=options, wire_log=node.wire_log)
        node.get_logger().info(f"Waiting for a peer on {address_name(host, listening.port)}.")
        return listening
    if port == 0:
        raise ValueError("port is 0 but must be from 1 to 65535 when the role is connect.")
    return TcpPeer(host, port, on_failure, options=options, wire_log=node.wire_log)
