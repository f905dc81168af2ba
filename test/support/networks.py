# SPDX-License-Identifier: Apache-2.0
"""Machines in a network, and the addresses of a program's sockets."""

import contextlib
import ipaddress
import os
import re
from pathlib import Path

import machines
import pytest


def addresses_of(pid):
    """Return the addresses of a process's receiving IPv4 and IPv6 sockets, TCP and UDP."""
    descriptors = Path(f"/proc/{pid}/fd")
    links = (os.readlink(descriptor) for descriptor in descriptors.iterdir() if descriptor.is_symlink())
    inodes = {match[1] for link in links if (match := re.fullmatch(r"socket:\[(\d+)\]", link))}
    found = set()
    for table in ("udp", "udp6", "tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[9] in inodes:
                raw = bytes.fromhex(fields[1].partition(":")[0])
                words = [raw[at : at + 4][::-1] for at in range(0, len(raw), 4)]
                found.add(ipaddress.ip_address(b"".join(words)))
    return found


@contextlib.contextmanager
def made(make_machines):
    """Enter a context that creates machines. Skips the test, with the reason, if not permitted."""
    with contextlib.ExitStack() as stack:
        try:
            several = stack.enter_context(make_machines())
        except machines.MachinesError as error:
            pytest.skip(str(error))
        yield several


def two_machines():
    """Create two machines with a cable between them."""
    return made(machines.two_machines)
