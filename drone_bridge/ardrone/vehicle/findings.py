# SPDX-License-Identifier: Apache-2.0
"""What `drone-bridge doctor` reports about an AR.Drone: this machine's address, and other clients of the drone here.

It reads /proc, and sends nothing: a drone sends navdata to the last program that has asked, so a request would take it
away from the bridge. It finds nothing where there is no /proc.
"""

import re
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import NamedTuple

from drone_bridge.ardrone.codec import DEFAULT_PORT, NAVDATA_PORT, VIDEO_PORT
from drone_bridge.net.file_users import users_of_socket

#: Network of a drone, in which it gives addresses to its clients.
NETWORK = IPv4Network("192.168.1.0/24")
PORTS = (NAVDATA_PORT, VIDEO_PORT, DEFAULT_PORT)
#: Name in the command line of our bridge.
BRIDGE = "ardrone_bridge"
_LOCAL_ADDRESS = re.compile(r"\|-- ([\d.]+)\n\s+/32 host LOCAL")


class Socket(NamedTuple):
    """UDP socket of this machine. `peer` is unspecified unless it is connected."""

    own: tuple[IPv4Address, int]
    peer: tuple[IPv4Address, int]
    inode: int


def findings(proc: Path = Path("/proc")) -> Iterator[tuple[str, str]]:
    """Report each finding with its remedy, which is empty if there is no problem."""
    try:
        routes, sockets = (proc / "net" / "fib_trie").read_text(), (proc / "net" / "udp").read_text()
    except OSError:
        return
    users = sorted({user for each in _sockets(sockets) if _is_client(each) for user in _users(each, proc)})
    addresses = sorted(each for each in map(IPv4Address, set(_LOCAL_ADDRESS.findall(routes))) if each in NETWORK)
    yield _address(addresses, is_used=bool(users))
    others = [user for user in users if BRIDGE not in user]
    if others:
        remedy = "end it, or let it use other ports: a drone sends navdata to the last program that has asked"
        yield f"UDP {PORTS[0]} to {PORTS[-1]} used by {', '.join(others)}", remedy
    if len(users) - len(others) > 1:
        yield f"{len(users) - len(others)} of {BRIDGE} run", "end all but one: both command the drone"


def _address(addresses: list[IPv4Address], *, is_used: bool) -> tuple[str, str]:
    """Report this machine's addresses in a drone's network. Without a program for a drone, none are needed."""
    if not addresses:
        remedy = "join the drone's Wi-Fi (ardrone_... or ardrone2_...)" if is_used else ""
        return f"no address in {NETWORK}, the network of a drone", remedy
    found = f"{' and '.join(map(str, addresses))} in {NETWORK}, the network of a drone"
    remedy = "leave the other network: datagrams to 192.168.1.1 may go there instead of to the drone"
    return found, remedy if len(addresses) > 1 else ""


def _sockets(table: str) -> Iterator[Socket]:
    """Read /proc/net/udp."""
    for line in table.splitlines()[1:]:
        words = line.split()
        yield Socket(_endpoint(words[1]), _endpoint(words[2]), int(words[9]))


def _endpoint(word: str) -> tuple[IPv4Address, int]:
    """Read an address, whose hexadecimal bytes are those of a little-endian number, and a port."""
    address, _, port = word.partition(":")
    return IPv4Address(bytes.fromhex(address)[::-1]), int(port, 16)


def _is_client(each: Socket) -> bool:
    """Return whether a socket takes a drone's ports, or sends to them. One on the loopback talks to an emulator."""
    return not each.own[0].is_loopback and (each.own[1] in PORTS or each.peer[1] in PORTS)


def _users(each: Socket, proc: Path) -> list[str]:
    return users_of_socket(each.inode, proc) or ["a program of another user"]
