# SPDX-License-Identifier: Apache-2.0
"""Access: rules for viewers by address, origin and secret, and for viewers that may change something."""

import hmac
import ipaddress
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlsplit

#: Origins of the applications that use Foxglove's protocol: hosted, and desktop.
FOXGLOVE_ORIGINS = ("https://app.foxglove.dev", "file://")
SECRET_BYTES = 16
MAX_VIEWERS = 24
"""Maximum number of viewers that receive topics: of those that may steer, and as many of those that may only watch."""
VIEW_ONLY = "This link is view-only on other machines. Start with steer:=true to allow steering."


def is_any(host: str) -> bool:
    """Return whether an address stands for all addresses of this machine."""
    try:
        return not host or ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address of this name."""
    if host == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
        # IPv4 address on a dual-stack socket; Python does not recognize it before 3.13.
        return (getattr(address, "ipv4_mapped", None) or address).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class Access:
    """Rules of one server."""

    host: str
    """Address that it is bound to."""
    steer: bool
    """Whether viewers on other machines may also change something."""
    origins: frozenset[str] = frozenset(FOXGLOVE_ORIGINS)
    """Origins of other pages that may connect."""
    secret: str = field(default="", repr=False)
    """Secret that the link must contain; empty if only this machine can connect."""

    @classmethod
    def of(cls, host: str, *, steer: bool, secret: str = "", origins: Iterable[str] = FOXGLOVE_ORIGINS) -> "Access":
        """Return the rules for an address: this machine may do everything; other machines need a secret to view."""
        if not is_loopback(host) and not secret:
            secret = secrets.token_urlsafe(SECRET_BYTES)
        return cls(host, steer=steer, origins=frozenset(origins), secret=secret)

    def refusal(self, path: str, host: str, origin: str | None) -> str | None:
        """Return why a request is refused, or None.

        Args:
            path: requested path with its query.
            host: Host header. A foreign name that resolves to this machine (DNS rebinding) is refused.
            origin: Origin header, which browsers send, unlike some programs.
        """
        if not self.secret and not is_loopback(_name_of(host)):
            return (
                f"The address names the host {host!r:.80}, but this server accepts only connections from this machine."
            )
        if origin is not None and origin not in self.origins and origin not in (f"http://{host}", f"https://{host}"):
            return f"Pages of {origin!r:.80} may not connect. Add them to the parameter origins."
        if self.secret and not hmac.compare_digest(_secret_in(path).encode(), self.secret.encode()):
            return "The secret in the address is missing or outdated. Use the link that was printed at startup."
        return None

    def may_change(self, here: str, viewer: str, forwarded_for: str | None) -> bool:
        """Return whether a viewer may steer, call services and set parameters. Viewers on this machine always may.

        Args:
            here: our address of the connection.
            viewer: the viewer's address, which equals ours for most viewers on this machine.
            forwarded_for: X-Forwarded-For header, in which a proxy names its client.
        """
        return self.steer or (forwarded_for is None and (viewer == here or is_loopback(viewer)))


def _name_of(host: str) -> str:
    """Return the name or address in a Host header, without the port."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _secret_in(path: str) -> str:
    try:
        return parse_qs(urlsplit(path).query, max_num_fields=8).get("secret", [""])[0]
    except ValueError:  # an invalid address, or a query with too many fields
        return ""
