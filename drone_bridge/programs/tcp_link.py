# SPDX-License-Identifier: Apache-2.0
"""The TCP link of a plain program that listens or connects, as its options say."""

from __future__ import annotations

import argparse

from drone_bridge.net.connector import Cancellation
from drone_bridge.net.tcp import TcpConnector
from drone_bridge.net.tcp_listener import TcpListener
from drone_bridge.programs.program import print_event, print_retry
from drone_bridge.wire.addresses import address_name


def make_link(options: argparse.Namespace, cancellation: Cancellation) -> TcpListener | TcpConnector:
    """Return a connector or listener for --role, --host and --port, which prints its address and errors.

    Raises LinkError when the address can't be listened on.
    """
    if options.role == "listen":
        link = TcpListener(
            options.host, options.port, cancellation, lambda peer: print_event(f"refused {peer}: one at a time")
        )
        print_event(f"listening on {address_name(options.host, link.port)}")
        return link
    return TcpConnector(options.host, options.port, cancellation, print_retry)
