# SPDX-License-Identifier: Apache-2.0
"""Presses of buttons, packet by packet."""

from drone_bridge.bridges.dronegui.buttons import PACKETS_PER_LEVEL, ButtonPanel

BUTTON = "take_off"


def send(panel, count):
    """Send packets that take no time, and return which of them said that the button is pressed."""
    said = []
    for _ in range(count):
        down = panel.down(0.0)
        said.append(BUTTON in down)
        panel.sent(down, 0.0, was_refused=False)
    return said


def test_a_press_is_said_by_enough_packets_and_so_is_its_end():
    panel = ButtonPanel()
    panel.open()
    press = panel.press(BUTTON, hold_s=0.0)
    assert send(panel, 2 * PACKETS_PER_LEVEL) == PACKETS_PER_LEVEL * [True] + PACKETS_PER_LEVEL * [False]
    assert (press.was_sent, press.was_released, panel.over()) == (True, True, [press])


def test_a_press_that_begins_while_a_packet_is_sent_comes_with_the_next_one():
    panel = ButtonPanel()
    panel.open()
    down = panel.down(0.0)
    press = panel.press(BUTTON, hold_s=0.0)
    assert not panel.sent(down, 0.0, was_refused=False)
    assert send(panel, PACKETS_PER_LEVEL) == PACKETS_PER_LEVEL * [True]
    assert press.was_sent
