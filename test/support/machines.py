# SPDX-License-Identifier: Apache-2.0
"""Several machines on one: network namespaces with a cable, a switch, or an impaired link."""

import contextlib
import shutil
import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

from impaired_link import ImpairedLink, Impairment, LinkUnavailableError

_DEVICE = "cable"  # in each namespace
_SWITCH = "switch"  # in that of the switch
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
        _ip("-n", self.name, "address", "add", f"{address}/24", "dev", _DEVICE)

    def cable(self, state: str) -> None:
        """Unplug the cable (down) or plug it in (up). Both ends are notified."""
        _ip("-n", self.name, "link", "set", _DEVICE, state)

    def forget(self, other: "Machine") -> None:
        """Remove the other's hardware address from the ARP cache."""
        for address in other.addresses:
            _ip("-n", self.name, "neighbour", "delete", address, "dev", _DEVICE, check=False)  # if it is there

    def has_carrier(self) -> bool:
        """Return whether the cable is plugged in. A TUN device that is up has the state UNKNOWN."""
        shown = _ip("-n", self.name, "link", "show", _DEVICE).stdout
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
    with _namespaces(2) as (one, other):
        _ip("-n", one.name, "link", "add", _DEVICE, "type", "veth", "peer", "name", _DEVICE, "netns", other.name)
        _configure(one, other)
        yield one, other


@contextlib.contextmanager
def three_machines() -> Iterator[tuple[Machine, Machine, Machine]]:
    """Create three machines at one switch. Raises MachinesError if not permitted.

    The other machines are not notified when a cable is unplugged.
    """
    with _namespaces(3, switches=1) as (switch, *machines):
        made = _ip("-n", switch.name, "link", "add", _SWITCH, "type", "bridge", check=False)
        if made.returncode:
            raise MachinesError(f"A switch can't be made here: {made.stderr.strip()}")
        _ip("-n", switch.name, "link", "set", _SWITCH, "up")
        for number, machine in enumerate(machines):
            port = f"port{number}"
            cable = ("-n", machine.name, "link", "add", _DEVICE, "type", "veth")
            _ip(*cable, "peer", "name", port, "netns", switch.name)
            _ip("-n", switch.name, "link", "set", port, "master", _SWITCH, "up")
        _configure(*machines)
        one, other, third = machines
        yield one, other, third


@contextlib.contextmanager
def two_machines_far_apart(impairment: Impairment) -> Iterator[tuple[Machine, Machine, ImpairedLink]]:
    """Create two machines with an impaired link between them. Raises MachinesError if not permitted."""
    with _namespaces(2) as (one, other):
        try:
            link = ImpairedLink((one.name, other.name), _DEVICE, impairment)
        except LinkUnavailableError as error:
            raise MachinesError(str(error)) from error
        with contextlib.closing(link):
            _configure(one, other)
            yield one, other, link


@contextlib.contextmanager
def _namespaces(count: int, switches: int = 0) -> Iterator[list[Machine]]:
    """Create the namespaces of switches, then those of machines."""
    if shutil.which("ip") is None:
        raise MachinesError("Network namespaces need ip(8), which is not installed: apt install iproute2.")
    token = uuid.uuid4().hex[:6]
    machines = [Machine(f"drone{number}_{token}", f"10.213.7.{number}") for number in range(1 - switches, count + 1)]
    try:
        for machine in machines:
            machine.shared_memory.mkdir()
            made = _ip("netns", "add", machine.name, check=False)
            if made.returncode:
                raise MachinesError(f"Network namespaces can't be made here (as root they can): {made.stderr.strip()}")
        yield machines
    finally:
        for machine in machines:
            _ip("netns", "delete", machine.name, check=False)
            shutil.rmtree(machine.shared_memory, ignore_errors=True)


def _configure(*machines: Machine) -> None:
    for machine in machines:
        _ip("-n", machine.name, "address", "add", f"{machine.address}/24", "dev", _DEVICE)
        for device in ("lo", _DEVICE):
            _ip("-n", machine.name, "link", "set", device, "up")
    # The kernel may take a second to report the carrier, and DDS never rechecks an interface that had none.
    deadline_s = time.monotonic() + _CARRIER_TIMEOUT_S
    while not all(machine.has_carrier() for machine in machines):
        if time.monotonic() > deadline_s:
            raise MachinesError("The devices between the namespaces do not come up.")
        time.sleep(_CARRIER_PERIOD_S)


def _ip(*words: str, check: bool = True) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(["ip", *words], check=check, capture_output=True, text=True, timeout=_IP_TIMEOUT_S)
