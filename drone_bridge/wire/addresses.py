# SPDX-License-Identifier: Apache-2.0
"""AllowedPeers, the addresses that a listener accepts, and how addresses are written. No I/O."""

import ipaddress
from collections.abc import Iterable
from typing import Any

ANY = "any"


class AllowedPeers:
    """Addresses and networks, such as 10.0.7.1, 192.168.1.0/24 or fd00::/8; ANY allows all."""

    def __init__(self, names: Iterable[str]) -> None:
        """Raise ValueError with a sentence for no names, and for what is neither an address nor a network."""
        self._networks: list[ipaddress.IPv4Network | ipaddress.IPv6Network] = []
        self._allows_all = False
        for name in names:
            if name == ANY:
                self._allows_all = True
                continue
            try:
                self._networks.append(ipaddress.ip_network(name))
            except ValueError as error:
                raise ValueError(f"{name!r} is not {ANY!r}, an address, or a network: {error}.") from None
        if not self._networks and not self._allows_all:
            raise ValueError(f"it names nobody, and nothing would be received: write {ANY!r}, addresses or networks.")

    def allows(self, host: str) -> bool:
        """Return whether a host is allowed, by its numeric address."""
        if self._allows_all:
            return True
        address = ipaddress.ip_address(host.partition("%")[0])  # a link-local one has its interface behind it
        if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
            address = address.ipv4_mapped
        return any(address in network for network in self._networks)


def same_host(one: Any, other: Any) -> bool:
    """Return whether two addresses as sockets have them, tuples that begin with the host, are of one host."""
    hosts = {address[0].partition("%")[0] for address in (one, other)}
    return len(hosts) == 1 or all(host.startswith("127.") for host in hosts)  # this machine, by whatever name


def address_name(host: str, port: int) -> str:
    """Return a human-readable address; an IPv4 one without the prefix that a socket for both versions gives it."""
    if "." in host:
        host = host.removeprefix("::ffff:")
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def peer_name(address: Any) -> str:
    """Return a human-readable address of one that sockets have, a tuple that begins with host and port."""
    return address_name(*address[:2])
