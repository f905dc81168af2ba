# SPDX-License-Identifier: Apache-2.0
"""Links of a server, and a QR code of the first one."""

import fcntl
import io
import ipaddress
import os
import random
import socket
import struct
import webbrowser
from collections.abc import Iterator

from drone_bridge.tools.web.access import Access, is_any

# From <linux/sockios.h>, and the offset of the address in an ifreq.
_SIOCGIFADDR = 0x8915
_ADDRESS = slice(20, 24)


def links(access: Access, port: int) -> list[str]:
    """Return the links to the page, the most useful one first."""
    hosts = [_outward_address(), socket.gethostname()] if is_any(access.host) else [access.host]
    query = f"/?secret={access.secret}" if access.secret else "/"
    return [f"http://{f'[{host}]' if ':' in host else host}:{port}{query}" for host in dict.fromkeys(hosts)]


class NewLinks:
    """Links to the page that have not been shown. A network may appear later, such as Wi-Fi at boot."""

    def __init__(self, access: Access, port: int) -> None:
        self._access, self._port, self._shown = access, port, set[str]()

    def take(self) -> list[str]:
        """Return the links as `links` does, or none if the most useful one was returned before."""
        found = links(self._access, self._port)
        is_new = found[0] not in self._shown
        self._shown.update(found)
        return found if is_new else []


def hidden_host() -> str:
    """Return a loopback address that browsers can't guess, one of 16 million."""
    return "127." + ".".join(str(random.SystemRandom().randrange(1, 255)) for _ in range(3))


def qr_code(link: str) -> str:
    """Return a link as a QR code in characters, or a hint if the library is missing."""
    try:
        import segno
    except ModuleNotFoundError:
        return "(To show the link as a QR code here: pip install segno)"
    picture = io.StringIO()
    segno.make(link, micro=False).terminal(out=picture, compact=True, border=2)
    return picture.getvalue()


def open_in_browser(link: str) -> None:
    """Open a link if a browser would open a window for it, instead of using the terminal."""
    if os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        webbrowser.open(link)


def _outward_address() -> str:
    """Return this machine's IPv4 address in the network, by its routing table, without sending anything."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # address block for documentation, RFC 5737
            return str(probe.getsockname()[0])
        except OSError:  # no default route, as in a vehicle's own network
            return next(_interface_addresses(probe), "127.0.0.1")


def _interface_addresses(probe: socket.socket) -> Iterator[str]:
    """Yield the IPv4 addresses of the network interfaces except loopback, in interface order. Linux only."""
    for _, name in socket.if_nameindex():
        request = struct.pack("256s", name.encode())
        try:
            answer = fcntl.ioctl(probe, _SIOCGIFADDR, request)
        except OSError:  # no IPv4 address
            continue
        address = ipaddress.IPv4Address(answer[_ADDRESS])
        if not address.is_loopback:
            yield str(address)
