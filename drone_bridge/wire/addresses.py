# SPDX-License-Identifier: Apache-2.0
"""AllowedPeers: access list of a listener, and the formatting of addresses. No I/O."""

import ipaddress
from collections.abc import Iterable
from typing import Any

ANY = "any"


class AllowedPeers:
    """Access list of addresses and networks, such as 10.0.7.1, 192.168.1.0/24 or fd00::/8. ANY allows all."""

    def __init__(self, names: Iterable[str]) -> None:
        """Parse addresses and networks. Raises ValueError, with a sentence, for an invalid one or an empty list."""
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
            raise ValueError(f"the list is empty, so nothing would be received: name {ANY!r}, addresses or networks.")

    def allows(self, host: str) -> bool:
        """Return whether the numeric address of a host is allowed."""
        if self._allows_all:
            return True
        address = ipaddress.ip_address(host.partition("%")[0])  # without the zone of a link-local address
        if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
            address = address.ipv4_mapped
        return any(address in network for network in self._networks)


def same_host(one: Any, other: Any) -> bool:
    """Return whether two socket addresses, tuples that begin with the host, belong to the same host."""
    hosts = {address[0].partition("%")[0] for address in (one, other)}
    return len(hosts) == 1 or all(host.startswith("127.") for host in hosts)  # all of them loopback


def address_name(host: str, port: int) -> str:
    """Return a human-readable address. An IPv4-mapped IPv6 address is written as IPv4."""
    if "." in host:
        host = host.removeprefix("::ffff:")
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def peer_name(address: Any) -> str:
    """Return a human-readable form of a socket address, a tuple that begins with host and port."""
    return address_name(*address[:2])
