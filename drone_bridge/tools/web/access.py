# SPDX-License-Identifier: Apache-2.0
"""Who may connect, from where, from which pages and with which secret, and who may do more than look."""

import hmac
import ipaddress
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlsplit

#: The applications that speak Foxglove's protocol: hosted and as a program of its own.
FOXGLOVE_ORIGINS = ("https://app.foxglove.dev", "file://")
SECRET_BYTES = 16
VIEW_ONLY = "On another machine this link is view-only. Steering can be allowed at start with steer:=true."


def is_any(host: str) -> bool:
    """Return whether an address stands for all of this machine's."""
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
        # As a socket for both versions shows an IPv4 address; Python does not look into it before 3.13.
        return (getattr(address, "ipv4_mapped", None) or address).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class Access:
    """The rules of one server."""

    host: str
    """The address that it is bound to."""
    steer: bool
    """Whether viewers on other machines may change something, too."""
    origins: frozenset[str] = frozenset(FOXGLOVE_ORIGINS)
    """Of foreign pages that may connect."""
    secret: str = field(default="", repr=False)
    """What the link has to contain; empty where only this machine can connect."""

    @classmethod
    def of(cls, host: str, *, steer: bool, secret: str = "", origins: Iterable[str] = FOXGLOVE_ORIGINS) -> "Access":
        """Return the rules for an address: all is allowed on this machine; beyond it, a secret is needed to look."""
        local = is_loopback(host)
        if not local and not secret:
            secret = secrets.token_urlsafe(SECRET_BYTES)
        return cls(host, steer=local or steer, origins=frozenset(origins), secret=secret)

    def refusal(self, path: str, host: str, origin: str | None) -> str | None:
        """Return why a request is refused, or None.

        Args:
            path: what is requested, with its query.
            host: the header Host. A foreign name that resolves to this machine (DNS rebinding) is refused.
            origin: the header Origin, which browsers send and programs need not.
        """
        if not self.secret and not is_loopback(_name_of(host)):
            return f"The address names the host {host!r:.80}, and this server answers on this machine only."
        if origin is not None and origin not in self.origins and origin != f"http://{host}":
            return f"Pages of {origin!r:.80} may not connect. The parameter origins lists those that may."
        if self.secret and not hmac.compare_digest(_secret_in(path).encode(), self.secret.encode()):
            return (
                "The secret in the address is missing or from an earlier start. The full link was printed at startup."
            )
        return None

    def may_change(self, here: str, viewer: str, forwarded_for: str | None) -> bool:
        """Return whether a viewer may steer, call services and set parameters, as all may on this machine.

        Args:
            here: this end's address of the connection.
            viewer: the other end's address, which is the same one for most viewers on this machine.
            forwarded_for: the header X-Forwarded-For, in which a proxy says whose connection it is.
        """
        return self.steer or (forwarded_for is None and (viewer == here or is_loopback(viewer)))


def _name_of(host: str) -> str:
    """Return the name or address in a header Host, without the port."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _secret_in(path: str) -> str:
    try:
        return parse_qs(urlsplit(path).query, max_num_fields=8).get("secret", [""])[0]
    except ValueError:  # no address, or a query of more fields
        return ""
