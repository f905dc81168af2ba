# SPDX-License-Identifier: Apache-2.0
"""The ardrone emulator as a process, with a client on plain sockets."""

import contextlib
import ftplib
import socket

import pytest
from patience import TIMEOUT_S
from ports import free_port
from processes import Process

from drone_bridge.ardrone.codec import PROGRESSIVE, WAKE_UP, ClientConnection, Pcmd, Ref
from drone_bridge.ardrone.vehicle.emulator.ftp import VersionServer


class PlainClient:
    def __init__(self, *options):
        self.ports = [free_port() for _ in range(4)]
        names = ("--port", "--navdata-port", "--control-port", "--video-port")
        pairs = [word for pair in zip(names, map(str, self.ports), strict=True) for word in pair]
        self.process = Process.module("drone_bridge.ardrone.vehicle.emulator", *pairs, *options)
        self.connection = ClientConnection()

    def __enter__(self):
        self.process.__enter__()
        self.process.wait_for_line("listening")
        self.commands, self.navdata = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
        self.navdata.settimeout(0.05)
        return self

    def __exit__(self, *args):
        self.commands.close()
        self.navdata.close()
        return self.process.__exit__(*args)

    def send(self, *commands):
        self.commands.sendto(self.connection.send(*commands), ("127.0.0.1", self.ports[0]))

    def until(self, is_reached, *commands):
        """Repeat commands until navdata shows something."""
        while True:
            self.send(*commands)
            self.navdata.sendto(WAKE_UP, ("127.0.0.1", self.ports[1]))
            try:
                self.connection.receive_data(self.navdata.recv(8192))
            except TimeoutError:
                continue
            navdata = self.connection.next_event()
            if is_reached(navdata):
                return navdata


@pytest.mark.parametrize("user", ["anonymous", "root"])
def test_version_txt_is_read_by_ftp(user):
    server = VersionServer("127.0.0.1", port := free_port(), "2.4.8")
    with contextlib.closing(server):
        for command in ("RETR version.txt", "RETR /version.txt"):
            found = []
            with ftplib.FTP(timeout=TIMEOUT_S) as client:
                client.connect("127.0.0.1", port)
                client.login(user)
                assert client.size("version.txt") == 6
                client.retrlines(command, found.append)
                with pytest.raises(ftplib.error_perm):
                    client.retrlines("RETR /etc/passwd")
            assert found == ["2.4.8"]


def test_an_emulated_drone_in_the_air_needs_no_bootstrap():
    with PlainClient("--in-the-air", "--bootstrapped") as client:
        assert client.until(lambda navdata: navdata.demo is not None, Pcmd(), Ref(True)).is_airborne


def test_a_drone_stops_by_its_watchdog_and_prints_it():
    with PlainClient("--in-the-air", "--bootstrapped") as client:
        ahead = Pcmd(PROGRESSIVE, pitch=-0.2)
        client.until(lambda navdata: navdata.demo is not None and navdata.demo.vx > 100, ahead, Ref(True))
        client.process.wait_for_line("^moves at")
        client.process.wait_for_line("^stands at")
