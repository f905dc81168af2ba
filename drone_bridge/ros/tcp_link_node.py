# SPDX-License-Identifier: Apache-2.0
"""The base of bridges and servers that have one TCP connection: they open it, or listen for it, as `role` says."""

from drone_bridge.net.connector import Cancellation
from drone_bridge.net.tcp import TcpConnector
from drone_bridge.net.tcp_listener import TcpListener
from drone_bridge.ros.link_node import Endpoint, LinkNode
from drone_bridge.wire.addresses import address_name


class TcpLinkNode(LinkNode):
    """A LinkNode whose `converse` gets a TcpStream."""

    def make_endpoint(self, cancellation: Cancellation) -> Endpoint:
        host, port = self.parameters["host"], self.parameters["port"]
        if self.parameters["role"] == "listen":
            listener = TcpListener(
                host,
                port,
                cancellation,
                self._peer_refused,
                allowed_silence_s=lambda: float(self.parameters[self.silence_parameter]),
                wire_log=self.wire_log,
            )
            self.get_logger().info(f"Waiting for a peer on {address_name(host, listener.port)}.")
            return listener
        if port == 0:
            raise ValueError("port is 0, and has to be from 1 to 65535 when the role is connect.")
        return TcpConnector(host, port, cancellation, self._connecting_failed, wire_log=self.wire_log)
