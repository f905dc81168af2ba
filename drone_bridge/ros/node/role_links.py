# SPDX-License-Identifier: Apache-2.0
"""Links of a node with one peer, TCP and UDP, whose parameters select which end connects, or sends first."""

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from drone_bridge.net.datagram_link import DatagramCaller, DatagramPort
from drone_bridge.net.tcp_connection import StreamOptions
from drone_bridge.net.tcp_peer import TcpPeer
from drone_bridge.net.tcp_port import TcpPort
from drone_bridge.ros.node.protocol_node import ProtocolNode
from drone_bridge.wire.addresses import address_name

ListeningT = TypeVar("ListeningT", TcpPort, DatagramPort)
ConnectingT = TypeVar("ConnectingT", TcpPeer, DatagramCaller)


def stream_link(node: ProtocolNode, options: StreamOptions | None = None) -> TcpPort | TcpPeer:
    """Create the TCP link for the parameters host, port and role.

    Raises LinkError if the address is not available, and ValueError if port is 0 for the role connect.
    """
    return _link(node, partial(TcpPort, options=options), partial(TcpPeer, options=options), "a peer")


def datagram_link(node: ProtocolNode, payload: str) -> DatagramPort | DatagramCaller:
    """Create the UDP link. `payload` names the expected data in the log of a listener. See `stream_link`."""
    return _link(node, DatagramPort, DatagramCaller, payload)


def _link(
    node: ProtocolNode, listen: Callable[..., ListeningT], connect: Callable[..., ConnectingT], awaited: str
) -> ListeningT | ConnectingT:
    host, port = node.parameters["host"], node.parameters["port"]
    if node.parameters["role"] == "connect":
        if port == 0:
            raise ValueError("port is 0 but must be from 1 to 65535 when the role is connect.")
        return connect(host, port, node.connecting_failed, wire_log=node.wire_log)
    listening = listen(host, port, wire_log=node.wire_log)
    node.get_logger().info(f"Waiting for {awaited} on {address_name(host, listening.port)}.")
    return listening
