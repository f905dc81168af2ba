# SPDX-License-Identifier: Apache-2.0
"""The emulator as its users meet it: a process, its output, its exit code and what it does about packets."""

import csv
import json
import socket

import pytest
from processes import Process, when_listening

from drone_bridge.dronegui.codec import ControllerConnection, Controls

MODULE = "drone_bridge.dronegui.emulator"


class Controller:
    """Sends to an emulator."""

    def __init__(self, port):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.connect(("127.0.0.1", port))
        self.protocol = ControllerConnection()

    def send(self, **controls):
        self.socket.send(self.protocol.send(Controls(**controls)))

    def press(self, button):
        self.send(**{button: True})
        self.send()


@pytest.fixture
def emulate(start_child):
    def start(*arguments):
        drone = Process.module(MODULE, "--port", "0", "--navdata-source-port", "0", *arguments)
        drones.append(drone)
        when_listening(drone)
        controllers.append(Controller(drone.port))
        return drone, controllers[-1]

    drones, controllers = [], []
    yield start
    for controller in controllers:
        controller.socket.close()
    for drone in drones:
        drone.end()


def test_a_flight_from_take_off_to_landing(emulate, tmp_path):
    path = tmp_path / "flight.csv"
    drone, controller = emulate("--trajectory", str(path), "--bootstrapped")
    controller.press("take_off")
    drone.wait_for_line(r"^controlled by 127\.0\.0\.1:\d+")
    drone.wait_for_line("^landed -> taking off: ")
    drone.wait_for_line("^taking off -> flying: .*x=0.00 y=0.00 z=1.0")
    controller.send(hover=False, pitch=-1.0)
    drone.wait_for_line(r"^t=\S+ s, flying, x=[1-9].* speed \d\.\d\d m/s, yaw 0 degrees")  # with nothing more sent
    controller.send()
    controller.press("take_off")
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


# Navdata.


class NavdataPort:
    """A port that navdata comes to."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.socket.settimeout(60)
        self.number = self.socket.getsockname()[1]

    def wait(self, wanted):
        """Return the first document that is wanted."""
        while not wanted(document := json.loads(self.socket.recv(65535))):
            pass
        return document

    def demo(self, wanted=lambda demo: True):
        return self.wait(lambda document: document["type"] == "demo" and wanted(document))

    def state(self, state):
        return self.demo(lambda demo: demo["ctrl_state"] >> 16 == state)


@pytest.fixture
def navdata():
    port = NavdataPort()
    yield port
    port.socket.close()


def test_navdata_is_sent_from_its_port_or_from_another_if_that_is_in_use(emulate, navdata):
    taken = NavdataPort()
    options = ("--navdata-source-port", taken.number, "--navdata-port", navdata.number, "--bootstrapped")
    drone, _ = emulate(*options)
    drone.wait_for_line(rf":{taken.number}: Address already in use. Navdata goes out from port \d+ instead")
    navdata.demo()  # although nobody has sent a packet
    taken.socket.close()
    emulate(*options)
    assert any(navdata.socket.recvfrom(65535)[1] == ("127.0.0.1", taken.number) for _ in range(300))
