# SPDX-License-Identifier: Apache-2.0
"""Options that the commands of `drone-bridge wire` share."""

import argparse

from drone_bridge.kind import kinds
from drone_bridge.programs.options import port
from drone_bridge.tools.wire.pcap import PcapOptions


def add_pcap_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options for captures on other than the usual ports."""
    group = parser.add_argument_group("captures of tcpdump")
    group.add_argument("--protocol", choices=kinds(), default="", help="the protocol (default: by the port)")
    group.add_argument("--port", type=port, default=0, metavar="N", help="the listening port")
    group.add_argument("--reversed", action="store_true", help="the side that usually connects listens on it")


def pcap_options(options: argparse.Namespace) -> PcapOptions:
    """Return the options for captures."""
    return PcapOptions(options.protocol, options.port, options.reversed)
