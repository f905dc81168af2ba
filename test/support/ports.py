# SPDX-License-Identifier: Apache-2.0
"""Ports of 127.0.0.1 that nobody uses, for programs that are told theirs.

They are drawn from above those that the system hands out (32768 to 60999) and those of DDS (7400 to 32900), and each
worker (pytest-xdist) has a share of its own: whoever starts meanwhile does not take them.
"""

import contextlib
import os
import random
import socket

RANGE = range(61_000, 65_536)
WORKERS = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))


class Share:
    """The ports of a worker. They are given out in turns, so that nobody gets one that another is about to open."""

    def __init__(self):
        size = len(RANGE) // WORKERS
        self._ports = RANGE[WORKER * size : (WORKER + 1) * size]
        self._next = random.SystemRandom().randrange(size)  # an index

    def take(self, count):
        if self._next + count > len(self._ports):
            self._next = 0
        first, self._next = self._next, self._next + count
        return list(self._ports[first : first + count])


SHARE = Share()


def free_ports(count):
    """Return ports in a row that neither TCP nor UDP uses."""
    for _ in range(1000):
        ports = SHARE.take(count)
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            for port in ports:
                for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
                    stack.enter_context(socket.socket(socket.AF_INET, kind)).bind(("127.0.0.1", port))
            return ports
    raise AssertionError(f"no {count} ports in a row are free in {RANGE}")


def free_port():
    return free_ports(1)[0]
