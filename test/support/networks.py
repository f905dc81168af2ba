# SPDX-License-Identifier: Apache-2.0
"""Machines that share a network: network namespaces joined by a cable, and which addresses a program has sockets on."""

import contextlib
import ipaddress
import os
import re
import shutil
import subprocess
import uuid
from pathlib import Path

import pytest
from ros_session import wait_until


def addresses_of(pid):
    """Return the addresses of the IPv4 and IPv6 sockets, TCP and UDP, that a process has and may be sent to."""
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


#: What a wireless link in a hall may be like, each way.
LOSSY = ("netem", "loss", "2%", "delay", "20ms", "rate", "20mbit")


class Machine:
    """One namespace, with shared memory of its own as another machine has."""

    def __init__(self, name, address):
        self.name, self.address = name, address
        self.shared_memory = Path("/dev/shm", name)

    def cable(self, state):
        """Pull the cable out (down) or put it in (up)."""
        _ip("-n", self.name, "link", "set", "cable", state)

    def is_connected(self):
        """Return whether the cable is in, and runs."""
        return "state UP" in _ip("-n", self.name, "link", "show", "cable").stdout

    def lose(self):
        """Delay, limit and lose what is sent through the cable. Skips the test where the kernel can't."""
        words = ("netns", "exec", self.name, "tc", "qdisc", "add", "dev", "cable", "root", *LOSSY)
        made = _ip(*words, check=False)
        if made.returncode:
            pytest.skip(f"this kernel has no netem, which loses and delays packets: {made.stderr.strip()}")

    def command(self, *command):
        """Return the command that runs this one there."""
        shell = f'mount --bind {self.shared_memory} /dev/shm && exec "$@"'
        return ["ip", "netns", "exec", self.name, "sh", "-c", shell, "sh", *map(str, command)]


@contextlib.contextmanager
def two_machines():
    """Make two of them with a cable between. Skips the test, with the reason, where that is not allowed."""
    if shutil.which("ip") is None:
        pytest.skip("network namespaces are made by ip(8), which is not here: apt install iproute2")
    token = uuid.uuid4().hex[:6]
    machines = [Machine(f"drone{end}_{token}", f"10.213.7.{end}") for end in (1, 2)]
    try:
        for machine in machines:
            machine.shared_memory.mkdir()
            made = _ip("netns", "add", machine.name, check=False)
            if made.returncode:
                pytest.skip(f"network namespaces can't be made here (as root they can): {made.stderr.strip()}")
        one, other = machines
        _ip("-n", one.name, "link", "add", "cable", "type", "veth", "peer", "name", "cable", "netns", other.name)
        for machine in machines:
            _ip("-n", machine.name, "address", "add", f"{machine.address}/24", "dev", "cable")
            for device in ("lo", "cable"):
                _ip("-n", machine.name, "link", "set", device, "up")
        for machine in machines:
            # The kernel may take a second to call it running, and DDS never looks again at one that was not.
            wait_until(machine.is_connected, "the cable to carry")
        yield machines
    finally:
        for machine in machines:
            _ip("netns", "delete", machine.name, check=False)
            shutil.rmtree(machine.shared_memory, ignore_errors=True)


def _ip(*words, check=True):
    return subprocess.run(["ip", *words], check=check, capture_output=True, text=True, timeout=30)
