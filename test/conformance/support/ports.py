# SPDX-License-Identifier: Apache-2.0
"""Free ports of 127.0.0.1 in this run's place, for programs with a port option."""

import contextlib
import random
import socket

import place


class Turns:
    """Ports of a place, returned in rotation, so that no port is reused while a program is about to open it."""

    def __init__(self):
        self._ports = place.ports()
        self._next = random.SystemRandom().randrange(len(self._ports))  # an index

    def take(self, count):
        if self._next + count > len(self._ports):
            self._next = 0
        first, self._next = self._next, self._next + count
        return list(self._ports[first : first + count])


TURNS = Turns()


def free_ports(count):
    """Return consecutive ports that neither TCP nor UDP uses."""
    for _ in range(1000):
        ports = TURNS.take(count)
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            for port in ports:
                for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
                    stack.enter_context(socket.socket(socket.AF_INET, kind)).bind(("127.0.0.1", port))
            return ports
    raise AssertionError(f"no {count} ports in a row are free in {place.ports()}")


def free_port():
    return free_ports(1)[0]
