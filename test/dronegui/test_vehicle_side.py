# SPDX-License-Identifier: Apache-2.0
"""The GUI between its controllers and a drone: edges of buttons, known state, and receivers of navdata."""

import json

import pytest

from drone_bridge.dronegui.vehicle.device import BOOTSTRAP_S, CONTROLLER_TIMEOUT_S, MAX_CONTROLLERS, Gui, GuiDialect
from drone_bridge.wire.events import RemoteProtocolError

ONE = ("192.0.2.1", 40000)
OWN = "127.0.0.1"


class Drone:
    """Records commands, and flies immediately."""

    def __init__(self):
        self.told = []
        self.is_flying = False
        self.controls = None

    def take_off(self):
        self.told.append("take off")
        self.is_flying = True

    def land(self):
        self.told.append("land")
        self.is_flying = False

    def reset(self):
        self.told.append("reset")
        self.is_flying = False

    def steer(self, controls):
        self.controls = controls


class Controller:
    """Sends states to a GUI, complete or in part, numbered from 1."""

    def __init__(self, drone=None, **dialect):
        self.drone = drone or Drone()
        self.gui = Gui(self.drone, GuiDialect(**dialect))
        self.seq = 0
        self.now_s = 100.0

    def say(self, source=ONE, **state):
        self.seq += 1
        return self.gui.receive(json.dumps({"seq": self.seq, "state": state}).encode(), source, self.now_s)

    def press(self, button):
        self.say(**{button: True})
        self.say(**{button: False})

    def wait(self, seconds):
        self.now_s += seconds

    def receivers(self):
        """Hosts that receive the next datagram of navdata."""
        return [host for host, *_ in self.gui.receivers(self.now_s)]


def test_navdata_starts_some_time_after_the_bootstrap():
    controller = Controller()
    controller.press("take_off")
    controller.press("reset")
    controller.drone.is_flying = True
    controller.wait(BOOTSTRAP_S / 2)
    assert not controller.gui.navdata_is_due(controller.now_s)
    controller.press("take_off")
    assert controller.drone.told[-1] == "take off"
    controller.wait(BOOTSTRAP_S)
    assert controller.gui.navdata_is_due(controller.now_s)
    controller.press("take_off")
    assert controller.drone.told[-1] == "land"


def test_reset_wins_over_a_press_in_the_same_packet():
    controller = Controller(is_bootstrapped=True)
    controller.say(take_off=True, reset=True)
    controller.say(take_off=True)  # still held, so no edge
    assert controller.drone.told == ["reset"]


def test_invalid_packets_change_nothing():
    controller = Controller(is_bootstrapped=True)
    controller.say(hover=False)
    controls = controller.gui.controls
    controller.wait(CONTROLLER_TIMEOUT_S + 0.1)
    for nonsense in (b"", b"{", b'{"seq": 2, "state": {"take_off": "yes"}}', b'{"seq": 2, "state": {"roll": NaN}}'):
        with pytest.raises(RemoteProtocolError):
            controller.gui.receive(nonsense, ("192.0.2.9", 1), controller.now_s)
    assert (controller.gui.controls, controller.drone.told) == (controls, [])
    assert controller.receivers() == [OWN]  # the previous packet was too long ago


def test_navdata_goes_to_a_port_of_the_hosts_that_controlled_it_last():
    controller = Controller(navdata_port=5561)
    for number in range(MAX_CONTROLLERS + 3):
        controller.say(source=(f"192.0.2.{number}", 40000 + number))
    controller.say(source=("192.0.2.5", 50000))
    assert controller.receivers() == [OWN, *(f"192.0.2.{number}" for number in (3, 4, 6, 7, 8, 9, 10, 5))]
    controller.say(source=("2001:db8::1", 40000, 0, 2))
    addresses = controller.gui.receivers(controller.now_s)
    assert {port for _, port, *_ in addresses} == {5561}
    assert addresses[-1] == ("2001:db8::1", 5561, 0, 2)


def test_navdata_goes_to_its_own_host_before_any_packets():
    # Like the real GUI: a controller that holds a height replies to each demo, and sends nothing before.
    gui = Gui(Drone(), GuiDialect(is_bootstrapped=True, navdata_port=5561))
    assert gui.receivers(0.0) == ((OWN, 5561),)
    gui.receive(b'{"seq": 1}', (OWN, 40000), 0.0)
    assert gui.receivers(0.0) == gui.receivers(60.0) == ((OWN, 5561),)
    assert Gui(Drone(), GuiDialect(), "::1").receivers(0.0)[0][0] == "::1"
