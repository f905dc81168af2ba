# SPDX-License-Identifier: Apache-2.0
"""What doctor reports about an AR.Drone, by /proc of faked machines."""

import socket

import pytest

from drone_bridge.ardrone.vehicle.findings import findings
from drone_bridge.kind import kinds
from drone_bridge.tools.doctor import command as doctor

ETHERNET, WIFI, ALSO_WIFI = "10.0.0.7", "192.168.1.2", "192.168.1.3"
DRONE = "192.168.1.1"
ANY = ("0.0.0.0", 0)


def word(address, port):
    """An endpoint as in /proc/net/udp."""
    return f"{socket.inet_aton(address)[::-1].hex().upper()}:{port:04X}"


@pytest.fixture
def machine(tmp_path):
    """Function that fakes /proc: addresses, and sockets as command line (None: hidden), own endpoint, peer."""

    def make(addresses, *sockets):
        folder = tmp_path / "net"
        folder.mkdir(exist_ok=True)
        leaves = [f"           |-- {each}\n              /32 host LOCAL\n" for each in ("127.0.0.1", *addresses)]
        other = f"           |-- {DRONE}\n              /32 link UNICAST\n"
        table = f"Main:\n  +-- 0.0.0.0/0 3 0 5\n{''.join(leaves)}{other}"
        (folder / "fib_trie").write_text(f"{table}Local:\n{table.partition(chr(10))[2]}")
        lines = ["   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode"]
        for inode, (command, own, peer) in enumerate(sockets, 700):
            lines.append(
                f"  {inode}: {word(*own)} {word(*peer)} 07 00000000:00000000 00:00000000 00000000  0        0 {inode} 2"
            )
            if command:
                process = tmp_path / str(inode)
                (process / "fd").mkdir(parents=True)
                (process / "fd" / "5").symlink_to(f"socket:[{inode}]")
                (process / "cmdline").write_bytes("\0".join(command).encode() + b"\0")
        (folder / "udp").write_text("\n".join(lines) + "\n")
        return list(findings(tmp_path))

    return make


def to_drone(command, port):
    return (command, (WIFI, 40000), (DRONE, port))


BRIDGE = ("python3", "lib/drone_bridge/ardrone_bridge")


def test_a_machine_without_a_drone_has_no_problem(machine):
    ((found, remedy),) = machine([ETHERNET])
    assert "192.168.1.0/24" in found
    assert not remedy


def test_a_machine_beside_a_drone_has_no_problem(machine):
    found = machine([ETHERNET, WIFI], to_drone(BRIDGE, 5556), (("ntpd",), ("0.0.0.0", 123), ANY))
    ((network, remedy),) = found
    assert network.startswith("192.168.1.2 in 192.168.1.0/24")
    assert not remedy


def test_a_bridge_outside_the_network_of_a_drone_is_a_problem(machine):
    [(found, remedy)] = machine([ETHERNET], (BRIDGE, (ETHERNET, 40000), (DRONE, 5554)))
    assert found.startswith("no address")
    assert "join the drone's Wi-Fi" in remedy


def test_two_networks_with_the_addresses_of_a_drone_are_a_problem(machine):
    [(found, remedy)] = machine([WIFI, ALSO_WIFI])
    assert found.startswith("192.168.1.2 and 192.168.1.3")
    assert "leave the other network" in remedy


@pytest.mark.parametrize("port", [5554, 5555, 5556])
@pytest.mark.parametrize("is_sender", [False, True])
def test_another_client_is_named(machine, port, is_sender):
    command = ("node", "fly.js")
    client = to_drone(command, port) if is_sender else (command, ("0.0.0.0", port), ANY)
    _, (found, remedy) = machine([WIFI], to_drone(BRIDGE, 5556), client)
    assert found.startswith("UDP 5554 to 5556 ")
    assert "node fly.js (process 701)" in found
    assert "the last program that has asked" in remedy


def test_a_client_of_another_user_is_reported(machine):
    _, (found, _) = machine([WIFI], (None, ("0.0.0.0", 5554), ANY))
    assert "a program of another user" in found


def test_a_second_bridge_is_reported(machine):
    _, (found, remedy) = machine([WIFI], to_drone(BRIDGE, 5556), to_drone(BRIDGE, 5556))
    assert found == "2 of ardrone_bridge run"
    assert remedy


def test_an_emulated_drone_and_its_clients_are_no_problem(machine):
    emulator = (("ardrone_emulator",), ("127.0.0.1", 5556), ANY)
    client = (("fly.py",), ("127.0.0.1", 40000), ("127.0.0.1", 5556))
    assert machine([WIFI], emulator, client) == machine([WIFI])


def test_a_system_without_proc_reports_nothing(tmp_path):
    assert list(findings(tmp_path)) == []


def test_doctor_reports_it_with_a_mark(machine, monkeypatch):
    reported = machine([WIFI], (None, ("0.0.0.0", 5554), ANY))
    monkeypatch.setattr("drone_bridge.ardrone.vehicle.findings.findings", lambda: iter(reported))
    first, second = doctor.vehicles()
    assert str(first).startswith(f"ok {kinds()['ardrone'].title} ")
    assert str(second).startswith("!  AR.Drone ")
    assert not second.is_fatal
