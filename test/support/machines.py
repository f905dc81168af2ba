# SPDX-License-Identifier: Apache-2.0
"""Several machines on one: network namespaces with a cable."""

import contextlib
import shutil
import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

DEVICE = "cable"  # in each namespace
_CARRIER_TIMEOUT_S = 30.0
_CARRIER_PERIOD_S = 0.02
_IP_TIMEOUT_S = 30.0


class MachinesError(Exception):
    """Network namespaces are not supported on this machine. The text names the missing requirement."""


class Machine:
    """One namespace, with its own shared memory, like a separate machine."""

    def __init__(self, name: str, address: str) -> None:
        self.name = name
        self.addresses = [address]
        self.shared_memory = Path("/dev/shm", name)

    @property
    def address(self) -> str:
        """The first of its addresses."""
        return self.addresses[0]

    def add_address(self, address: str) -> None:
        """Add an address, as on a machine with several networks."""
        self.addresses.append(address)
        ip("-n", self.name, "address", "add", f"{address}/24", "dev", DEVICE)

    def cable(self, state: str) -> None:
        """Unplug the cable (down) or plug it in (up). Both ends are notified."""
        ip("-n", self.name, "link", "set", DEVICE, state)

    def forget(self, other: "Machine") -> None:
        """Remove the other's hardware address from the ARP cache."""
        for address in other.addresses:
            ip("-n", self.name, "neighbour", "delete", address, "dev", DEVICE, check=False)  # if it is there

    def has_carrier(self) -> bool:
        """Return whether the cable is plugged in. A TUN device that is up has the state UNKNOWN."""
        shown = ip("-n", self.name, "link", "show", DEVICE).stdout
        return "state UP" in shown or "state UNKNOWN" in shown

    def command(self, *command: object, **environment: str) -> list[str]:
        """Return the command line that runs a command on this machine."""
        shell = f'mount --bind {self.shared_memory} /dev/shm && exec "$@"'
        variables = [f"{name}={value}" for name, value in environment.items()]
        words = [*(["env", *variables] if variables else []), *map(str, command)]
        return ["ip", "netns", "exec", self.name, "sh", "-c", shell, "sh", *words]


@contextlib.contextmanager
def two_machines() -> Iterator[tuple[Machine, Machine]]:
    """Create two machines with a cable between them. Raises MachinesError if not permitted."""
    with namespaces(2) as (one, other):
        ip("-n", one.name, "link", "add", DEVICE, "type", "veth", "peer", "name", DEVICE, "netns", other.name)
        configure(one, other)
        yield one, other


@contextlib.contextmanager
def namespaces(count: int, switches: int = 0) -> Iterator[list[Machine]]:
    """Create the namespaces of switches, then those of machines."""
    if shutil.which("ip") is None:
        raise MachinesError("Network namespaces need ip(8), which is not installed: apt install iproute2.")
    token = uuid.uuid4().hex[:6]
    machines = [Machine(f"drone{number}_{token}", f"10.213.7.{number}") for number in range(1 - switches, count + 1)]
    try:
        for machine in machines:
            machine.shared_memory.mkdir()
            made = ip("netns", "add", machine.name, check=False)
            if made.returncode:
                raise MachinesError(f"Network namespaces can't be made here (as root they can): {made.stderr.strip()}")
        yield machines
    finally:
        for machine in machines:
            ip("netns", "delete", machine.name, check=False)
            shutil.rmtree(machine.shared_memory, ignore_errors=True)


def configure(*machines: Machine) -> None:
    """Bring up the devices of machines, with their addresses."""
    for machine in machines:
        ip("-n", machine.name, "address", "add", f"{machine.address}/24", "dev", DEVICE)
        for device in ("lo", DEVICE):
            ip("-n", machine.name, "link", "set", device, "up")
    # The kernel may take a second to report the carrier, and DDS never rechecks an interface that had none.
    deadline_s = time.monotonic() + _CARRIER_TIMEOUT_S
    while not all(machine.has_carrier() for machine in machines):
        if time.monotonic() > deadline_s:
            raise MachinesError("The devices between the namespaces do not come up.")
        time.sleep(_CARRIER_PERIOD_S)


def ip(*words: str, check: bool = True) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(["ip", *words], check=check, capture_output=True, text=True, timeout=_IP_TIMEOUT_S)
