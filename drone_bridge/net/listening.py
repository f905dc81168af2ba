# SPDX-License-Identifier: Apache-2.0
"""listening_error: why a port can't be listened on, with the programs that use it; is_own_address."""

import errno
import socket
from functools import partial

from drone_bridge.net.connector import LinkError, LinkInUseError, reason
from drone_bridge.net.file_users import users_of_port
from drone_bridge.wire.addresses import address_name


def is_own_address(host: str) -> bool:
    """Return whether sockets can be bound to a numeric address, or True for a name."""
    try:
        family, *_, address = socket.getaddrinfo(host, 0, flags=socket.AI_NUMERICHOST)[0]
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind(address)
    except OSError as error:
        return error.errno != errno.EADDRNOTAVAIL
    return True


def listening_error(protocol: str, host: str, port: int, error: Exception) -> LinkError:
    """Return the error of a port, of the protocol tcp or udp, that can't be listened on."""
    address = address_name(host, port)
    if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
        return LinkInUseError(address, port, partial(users_of_port, protocol, port), f"-i{protocol}:{port}")
    is_of_another = isinstance(error, socket.gaierror) or getattr(error, "errno", 0) == errno.EADDRNOTAVAIL
    advice = f" {host} is no address of this machine; 0.0.0.0 is all of them." if is_of_another else ""
    return LinkError(f"Can't listen on {address}: {reason(error)}.{advice}")
