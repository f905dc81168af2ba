# SPDX-License-Identifier: Apache-2.0
"""Presses of buttons, packet by packet, and before there is a link."""

import time
from types import SimpleNamespace

import pytest
from patience import wait_until

from drone_bridge.dronegui.bridge import flight
from drone_bridge.dronegui.bridge.flight import PACKETS_PER_LEVEL, ButtonPanel, FlightCommands, FlightWatch, Waits

BUTTON = "take_off"
PARAMETERS = {"press_time": 0.0, "navdata_timeout": 1.0}


def send(panel, count):
    """Send packets that take no time, and return which of them said that the button is pressed."""
    said = []
    for _ in range(count):
        down = panel.down(0.0)
        said.append(BUTTON in down)
        panel.sent(down, 0.0, was_refused=False)
    return said


def test_a_press_and_its_release_are_repeated_in_enough_packets():
    panel = ButtonPanel()
    panel.is_open = True
    press = panel.press(BUTTON, hold_s=0.0)
    assert send(panel, 2 * PACKETS_PER_LEVEL) == PACKETS_PER_LEVEL * [True] + PACKETS_PER_LEVEL * [False]
    assert (press.was_sent, press.was_released, press.is_over) == (True, True, True)


def test_a_press_lasts_as_long_as_it_is_to_and_then_its_release_is_repeated():
    panel = ButtonPanel()
    panel.is_open = True
    panel.press(BUTTON, hold_s=0.5)
    said = []
    for tick in range(20):  # a packet every 0.05 s
        down = panel.down(0.05 * tick)
        said.append(BUTTON in down)
        panel.sent(down, 0.05 * tick, was_refused=False)
    assert said == 10 * [True] + 10 * [False]


def test_a_press_that_begins_while_a_packet_is_sent_comes_with_the_next_one():
    panel = ButtonPanel()
    panel.is_open = True
    down = panel.down(0.0)
    press = panel.press(BUTTON, hold_s=0.0)
    panel.sent(down, 0.0, was_refused=False)
    assert send(panel, PACKETS_PER_LEVEL) == PACKETS_PER_LEVEL * [True]
    assert press.was_sent


def test_a_press_that_nobody_hears_is_given_up_at_once():
    """A GUI that is started while the button is down would take the rest of it for a press of its own."""
    panel = ButtonPanel()
    panel.is_open = True
    press = panel.press(BUTTON, hold_s=10.0)
    assert panel.down(0.0)
    panel.sent(panel.down(0.0), 0.0, was_refused=True)  # the packet before, which said nothing of it
    assert not press.is_over
    panel.sent(panel.down(0.1), 0.1, was_refused=True)
    assert (press.is_over, press.was_refused) == (True, True)
    assert not panel.down(0.2)


class Presser:
    """A bridge without a link, whose executor is the test."""

    def __init__(self):
        node = SimpleNamespace(executor=None, parameters=PARAMETERS, create_timer=self._make_timer)
        self.panel, waits = ButtonPanel(), Waits(node, None)
        watch = FlightWatch(lambda: 1.0)
        flight = FlightCommands(node, self.panel, watch, waits, lambda _: None, expects_link=lambda: True)
        self._reset = flight.reset()
        assert not self.run()

    def _make_timer(self, period_s, look, **_):
        self._look = look
        return SimpleNamespace(cancel=lambda: None, reset=lambda: None)

    def run(self):
        """Go on with what waits for something that has come; return whether that is all."""
        self._look()
        try:
            self._reset.send(None)
        except StopIteration:
            return True
        return False


def test_a_press_waits_for_the_link_of_a_bridge_that_has_just_been_activated():
    presser = Presser()
    assert not presser.run()
    assert not presser.panel.down(time.monotonic())
    presser.panel.is_open = True
    assert not presser.run()
    assert presser.panel.down(time.monotonic()) == {"reset"}


@pytest.mark.parametrize("is_closed", [False, True])
def test_waiting_for_a_link_before_a_press_is_bounded(monkeypatch, is_closed):
    monkeypatch.setattr(flight, "LINK_TIMEOUT_S", 0.05)
    presser = Presser()
    if is_closed:
        presser.panel.close()
    with pytest.raises(ValueError, match="reset can't be pressed while nothing is sent"):
        wait_until(presser.run, "the end of the wait")
