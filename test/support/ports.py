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


def free_ports(count):
    """Return ports in a row that neither TCP nor UDP uses."""
    share = len(RANGE) // WORKERS
    own = RANGE[WORKER * share : (WORKER + 1) * share]
    for _ in range(1000):
        first = random.SystemRandom().choice(own[: share - count])
        ports = list(range(first, first + count))
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            for port in ports:
                for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
                    stack.enter_context(socket.socket(socket.AF_INET, kind)).bind(("127.0.0.1", port))
            return ports
    raise AssertionError(f"no {count} ports in a row are free in {own}")


def free_port():
    return free_ports(1)[0]
