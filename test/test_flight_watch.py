# SPDX-License-Identifier: Apache-2.0
"""What dronegui_bridge knows of its drone, for how long, and what it refuses to press once that is over."""

from types import SimpleNamespace

import pytest

from drone_bridge.dronegui.bridge.flight import LISTENING_S, ButtonPanel, FlightCommands, FlightWatch, Source
from drone_bridge.dronegui.codec import FlightState

NAVDATA_TIMEOUT_S = 1.0
PARAMETERS = {
    "press_time": 0.5,
    "navdata_timeout": NAVDATA_TIMEOUT_S,
    "confirm_timeout": 5.0,
    "navdata_port": 5561,
    "bootstrap": True,
}
COMMANDS = ("take_off", "land", "reset")
LANDS_IT = 'If it flies, "Land" in the GUI lands it.'


class Waits:
    """An executor that nobody goes on."""

    async def until(self, condition, timeout_s):
        if not condition():
            await Forever()
        return True


class Forever:
    def __await__(self):
        yield


class Bridge:
    """A bridge whose link and clock are the test's."""

    def __init__(self):
        self.now_s = 100.0
        self.watch = FlightWatch(lambda: NAVDATA_TIMEOUT_S, lambda: self.now_s)
        self.panel = ButtonPanel()
        self.panel.is_open = True
        node = SimpleNamespace(parameters=PARAMETERS, inform=lambda sentence: None)
        self.flight = FlightCommands(
            node, self.panel, self.watch, Waits(), lambda is_flying: None, expects_link=lambda: True
        )
        self.watch.listen()

    def pressed(self, command):
        """Call a service; return the button that it presses, or why it refuses to."""
        try:
            getattr(self.flight, command)().send(None)
        except ValueError as error:
            assert not self.panel.down(self.now_s)
            return str(error)
        (button,) = self.panel.down(self.now_s)
        return button


@pytest.fixture
def bridge():
    return Bridge()


def navdata_ceases(bridge):
    """The GUI is killed, or the drone has left it, and nobody says so."""
    bridge.watch.note(FlightState.FLYING)
    bridge.now_s += NAVDATA_TIMEOUT_S + 0.1


def port_refuses(bridge):
    """The GUI is killed, and its port refuses a packet at once."""
    bridge.watch.note(FlightState.HOVERING)
    bridge.now_s += 0.05
    assert bridge.watch.refused()


def port_refuses_without_navdata(bridge):
    """As for a GUI that keeps navdata to itself: that the drone flies was assumed from the press."""
    bridge.watch.assume(True, Source.PRESS)
    assert bridge.watch.refused()


def port_refuses_after_a_person_s_word(bridge):
    bridge.watch.assume(True, Source.PERSON)
    bridge.now_s += LISTENING_S + 0.1
    assert bridge.watch.refused()


ENDS = (navdata_ceases, port_refuses, port_refuses_without_navdata, port_refuses_after_a_person_s_word)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("ends", ENDS)
def test_what_was_known_of_a_flight_is_unknown_once_the_gui_is_gone(bridge, ends, command):
    """A person may have landed it by the GUI's own Land: the next press of take_off would be a take-off."""
    ends(bridge)
    assert bridge.watch.is_flying is None
    refusal = bridge.pressed(command)
    assert refusal.startswith("It is not known whether the drone flies: ")
    assert LANDS_IT in refusal


@pytest.mark.parametrize("ends", ENDS)
def test_a_person_s_word_makes_it_known_again(bridge, ends):
    ends(bridge)
    bridge.watch.assume(True, Source.PERSON)
    assert "land it" in bridge.pressed("take_off")
    assert bridge.pressed("land") == "take_off"


@pytest.mark.parametrize("ends", ENDS)
def test_navdata_makes_it_known_again(bridge, ends):
    ends(bridge)
    bridge.watch.note(FlightState.LANDED)
    assert "is on the ground, as its navdata says" in bridge.pressed("land")
    assert bridge.pressed("take_off") == "take_off"


@pytest.mark.parametrize("ends", ENDS)
def test_an_emergency_stop_takes_a_person_who_says_that_it_flies(bridge, ends):
    """reset is also how people have a fresh GUI ask for navdata, and in the air it stops the motors."""
    ends(bridge)
    assert "If its motors are to stop all the same, call assume_flying with true, and reset" in bridge.pressed("reset")
    bridge.watch.assume(True, Source.PERSON)
    assert bridge.pressed("reset") == "reset"


def test_navdata_without_a_state_does_not_keep_an_old_one(bridge):
    navdata_ceases(bridge)
    bridge.watch.note(None)
    assert bridge.watch.hears_gui
    assert "navdata has no known state" in bridge.pressed("land")


def test_what_a_person_said_before_there_was_a_gui_holds_for_the_one_that_is_started_then(bridge):
    bridge.watch.begin(is_flying=False)
    for _ in range(100):
        bridge.now_s += 1.0  # some machines tell of a refusal once a second
        assert not bridge.watch.refused()
    assert bridge.watch.is_flying is False
    bridge.now_s += LISTENING_S + 0.1  # it has come, and goes again
    assert bridge.watch.refused()
    bridge.watch.begin(is_flying=False)  # as a bridge that is configured anew reads its parameters anew
    assert bridge.watch.is_flying is None


def test_a_gui_that_was_never_heard_of_is_bootstrapped_by_reset(bridge):
    """As the scripts of its authors begin."""
    assert not bridge.watch.refused()
    assert bridge.pressed("reset") == "reset"


def test_the_loss_is_told_once(bridge):
    port_refuses(bridge)
    assert not bridge.watch.refused()


def test_a_fresh_gui_is_bootstrapped_anew_once_a_person_says_that_the_drone_stands(bridge):
    bridge.watch.was_reset_pressed = True
    bridge.watch.assume(False, Source.PRESS)
    assert bridge.watch.refused()
    bridge.watch.assume(False, Source.PERSON)
    assert bridge.pressed("take_off") == "reset"
