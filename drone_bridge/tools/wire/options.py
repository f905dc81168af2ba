# SPDX-License-Identifier: Apache-2.0
"""Options that the commands of `drone-bridge wire` share."""

import argparse

from drone_bridge.tools.wire.conversation import ROLES
from drone_bridge.tools.wire.sources import PcapOptions


def add_pcap_options(parser: argparse.ArgumentParser) -> None:
    """Declare what has to be said of a capture where its ports don't tell."""
    group = parser.add_argument_group("captures of tcpdump")
    group.add_argument("--protocol", choices=ROLES, default="", help="what is spoken (default: as the port has it)")
    group.add_argument("--port", type=int, default=0, metavar="N", help="the port that is listened on")
    group.add_argument("--reversed", action="store_true", help="the other side than usual listens on it")


def pcap_options(options: argparse.Namespace) -> PcapOptions:
    """Return what the user has said."""
    return PcapOptions(options.protocol, options.port, options.reversed)
