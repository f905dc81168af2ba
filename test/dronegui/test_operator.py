# SPDX-License-Identifier: Apache-2.0
"""The scripted operator with the emulated GUI."""

import contextlib
import socket

import pytest
from ports import free_ports
from processes import Process


@pytest.fixture
def ports():
    return free_ports(2)


@pytest.mark.parametrize("is_known", [False, True])
def test_it_presses_nothing_that_could_bring_a_flying_drone_down(ports, is_known):
    port, navdata_port = ports
    navdata = ("--navdata-source-port", "0", "--navdata-port", navdata_port, "--no-video")
    with (
        Process.module(
            "drone_bridge.dronegui.vehicle.emulator",
            *navdata,
            "--port",
            port,
            *(["--bootstrapped"] if is_known else []),
        ) as drone,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as another,
    ):
        drone.wait_for_line("listening on")
        another.sendto(b'{"seq": 1, "state": {"take_off": true}}', ("127.0.0.1", port))
        another.sendto(b'{"seq": 2, "state": {"take_off": false}}', ("127.0.0.1", port))
        drone.wait_for_line("^taking off -> flying")
        options = ("--port", port, "--navdata-port", navdata_port)
        with Process.module("drone_bridge.dronegui.vehicle.operator", *options, "--plan", "1s forward 2") as operator:
            assert operator.wait() == 2
            operator.wait_for_line("takeoff: .*" + ("flying" if is_known else "unknown"))
            assert operator.count_lines("^presses") == 0


def test_a_signal_leaves_the_drone_hovering(ports):
    port, navdata_port = ports
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as gui:
        gui.bind(("127.0.0.1", port))
        gui.settimeout(60)
        options = (*("--port", port, "--navdata-port", navdata_port), *("--in-the-air", "--plan", "60s forward 1"))
        with Process.module("drone_bridge.dronegui.vehicle.operator", *options) as operator:
            while b'"hover":false' not in gui.recv(65535):
                pass
            assert operator.stop() == 0
            operator.wait_for_line("^ended")
        gui.setblocking(False)
        packets = []
        with contextlib.suppress(BlockingIOError):
            while True:
                packets.append(gui.recv(65535))
        assert b'"hover":true' in packets[-1]
