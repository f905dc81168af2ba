# SPDX-License-Identifier: Apache-2.0
"""Place on this machine for one run of tests: ROS domains and ports that no other run uses.

A test run reserves one of COUNT places for the lifetime of its process, by an abstract socket, which the kernel always
releases. Child processes find the number in the environment, and use the same place.
"""

import os
import socket

#: From domain 61 on, they are for demonstrations and measurements. In domain 5, DDS sends datagrams to UDP port 8890,
#: on which a Tello's bridge listens.
FIRST_DOMAIN, DOMAINS_EACH = 6, 2
COUNT = 27
VARIABLE = "DRONE_BRIDGE_TEST_PLACE"
# Above the system's ephemeral ports (32768 to 60999) and those of DDS (7400 to 32900).
FIRST_PORT, END_PORT = 61_000, 65_536
PORTS_EACH = (END_PORT - FIRST_PORT) // COUNT

_held: list[socket.socket] = []


def number() -> int:
    """Return the number of this process's place. If none was given, reserve a free one.

    Raises:
        RuntimeError: all places are in use.
    """
    if VARIABLE not in os.environ:
        os.environ[VARIABLE] = str(_take())
    return int(os.environ[VARIABLE])


def domains() -> tuple[int, ...]:
    """Return the ROS domains of the place."""
    first = FIRST_DOMAIN + DOMAINS_EACH * number()
    return tuple(range(first, first + DOMAINS_EACH))


def ports() -> range:
    """Return the ports of the place, for programs with a port option."""
    first = FIRST_PORT + PORTS_EACH * number()
    return range(first, first + PORTS_EACH)


def _take() -> int:
    for place in range(COUNT):
        held = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            held.bind(f"\0drone_bridge test place {place}")
        except OSError:
            held.close()
        else:
            _held.append(held)
            return place
    raise RuntimeError(f"All {COUNT} places for tests are taken on this machine: wait until another run has ended.")
