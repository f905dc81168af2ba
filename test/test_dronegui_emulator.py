# SPDX-License-Identifier: Apache-2.0
"""The emulator as its users meet it: a process, its output, its exit code and what it does about packets."""

import csv
import socket

import pytest
from dronegui_operator import DroneGuiOperator
from processes import Process, when_listening

MODULE = "drone_bridge.dronegui.emulator"


@pytest.fixture
def operator(closing):
    return closing(DroneGuiOperator())


@pytest.fixture
def emulate(start_child, operator):
    """Start an emulator that the operator calls, and return it."""

    def start(*arguments):
        navdata = ("--navdata-source-port", "0", "--navdata-port", operator.navdata_port)
        drone = Process.module(MODULE, "--port", "0", *navdata, *arguments)
        drones.append(drone)
        when_listening(drone)
        operator.call(drone.port)
        return drone

    drones = []
    yield start
    for drone in drones:
        drone.end()


def test_a_flight_from_take_off_to_landing(emulate, operator, tmp_path):
    path = tmp_path / "flight.csv"
    drone = emulate("--trajectory", str(path), "--bootstrapped")
    operator.press("take_off")
    drone.wait_for_line(r"^controlled by 127\.0\.0\.1:\d+")
    drone.wait_for_line("^landed -> taking off: ")
    drone.wait_for_line("^taking off -> flying: .*x=0.00 y=0.00 z=1.0")
    operator.send(hover=False, pitch=-1.0)
    drone.wait_for_line(r"^t=\S+ s, flying, x=[1-9].* speed \d\.\d\d m/s, yaw 0 degrees")  # with nothing more sent
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


def test_navdata_is_sent_from_its_port_or_from_another_if_that_is_in_use(emulate, operator):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        options = ("--navdata-source-port", port, "--bootstrapped")
        drone = emulate(*options)
        drone.wait_for_line(rf":{port}: Address already in use. Navdata goes out from port \d+ instead")
        operator.demo()  # although nobody has sent a packet
    emulate(*options)
    assert any(operator.receive_from() == ("127.0.0.1", port) for _ in range(300))
