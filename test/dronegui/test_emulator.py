# SPDX-License-Identifier: Apache-2.0
"""The emulator as a process: its output, its exit code and its reaction to packets."""

import csv
import signal

import pytest
from dronegui_operator import DroneGuiOperator
from processes import Process, when_listening

from drone_bridge.ar_drone.cameras import DOWN, FRONT
from drone_bridge.ar_drone.uvlc import decode


def test_a_flight_from_take_off_to_landing(start_child, closing, tmp_path):
    path, operator = tmp_path / "flight.csv", closing(DroneGuiOperator())
    navdata = ("--navdata-source-port", "0", "--navdata-port", operator.navdata_port, "--bootstrapped")
    with Process.module(
        "drone_bridge.dronegui.vehicle.emulator", "--port", "0", *navdata, "--trajectory", path
    ) as drone:
        when_listening(drone)
        operator.call(drone.port)
        operator.demo()  # without any packet
        operator.press("take_off")
        drone.wait_for_line(r"^controlled by 127\.0\.0\.1:\d+")
        drone.wait_for_line("^landed -> taking off: ")
        drone.wait_for_line("^taking off -> flying: .*x=0.00 y=0.00 z=1.0")
        operator.send(hover=False, pitch=-1.0)
        drone.wait_for_line(r"^t=\S+ s, flying, x=[1-9].* speed \d\.\d\d m/s, yaw 0 degrees")  # without further packets
        operator.send()
        operator.press("take_off")
        drone.wait_for_line("^flying -> landing: ")
        drone.wait_for_line("^landing -> landed: .*z=0.00")
        assert drone.stop() == 0
        drone.wait_for_line("^ended: .* 6 packets, 0 late, 0 refused")
    with path.open() as file:
        rows = list(csv.DictReader(file))
    assert {row["phase"] for row in rows} == {"landed", "taking off", "flying", "landing"}
    assert float(rows[1]["time"]) - float(rows[0]["time"]) == pytest.approx(0.01)
    forward = [row for row in rows if row["control_pitch"] == "-1"]
    assert {row["control_hover"] for row in forward} == {"0"}
    assert float(forward[-1]["pitch"]) == pytest.approx(12, abs=0.1)
    assert float(forward[-1]["vx"]) > 1
    assert float(rows[-1]["x"]) > 1


@pytest.fixture
def screen(udp_socket):
    """Socket on the port for video."""
    return udp_socket()


def test_a_signal_switches_the_cameras(start_child, screen):
    ports = ("--port", "0", "--video-source-port", "0", "--video-port", screen.getsockname()[1])
    with Process.module("drone_bridge.dronegui.vehicle.emulator", *ports) as drone:
        when_listening(drone)
        for camera in (FRONT, DOWN, FRONT):
            while decode(screen.recv(1 << 16)).width != camera.width:
                pass
            drone.send(signal.SIGIO)
        drone.wait_for_line("video of the down camera")
        assert drone.stop() == 0
