# SPDX-License-Identifier: Apache-2.0
"""Where to look: the links of a server, and the first of them as a picture for a phone's camera."""

import io
import socket

from drone_bridge.tools.web.access import Access

ANY = ("", "0.0.0.0", "::")


def links(access: Access, port: int) -> list[str]:
    """Return the links under which the page is to be had, the most useful one first."""
    hosts = [_outward_address(), socket.gethostname()] if access.host in ANY else [access.host]
    query = f"/?secret={access.secret}" if access.secret else "/"
    return [f"http://{f'[{host}]' if ':' in host else host}:{port}{query}" for host in dict.fromkeys(hosts)]


def qr_code(link: str) -> str:
    """Return a link as a picture of characters; a hint where the library for that is missing."""
    try:
        import segno
    except ModuleNotFoundError:
        return "(pip install segno, and the link is shown as a QR code here.)"
    picture = io.StringIO()
    segno.make(link, micro=False).terminal(out=picture, compact=True, border=2)
    return picture.getvalue()


def _outward_address() -> str:
    """Return this machine's address in the network, by its routing table; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # of the block for documentation, RFC 5737
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"
