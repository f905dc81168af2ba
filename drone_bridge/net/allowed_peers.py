# SPDX-License-Identifier: Apache-2.0
"""Which addresses a listener accepts."""

import ipaddress
from collections.abc import Iterable
from typing import Final

ANY: Final = "any"


class AllowedPeers:
    """Addresses and networks, such as 10.0.7.1, 192.168.1.0/24 or fd00::/8; ANY allows all."""

    def __init__(self, names: Iterable[str]) -> None:
        """Raise ValueError with a sentence for anything that is neither an address nor a network."""
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

    def allows(self, host: str) -> bool:
        """Return whether a host is allowed, by its numeric address."""
        if self._allows_all:
            return True
        address = ipaddress.ip_address(host.partition("%")[0])  # a link-local one has its interface behind it
        if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
            address = address.ipv4_mapped
        return any(address in network for network in self._networks)
