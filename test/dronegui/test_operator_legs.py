# SPDX-License-Identifier: Apache-2.0
"""Legs of the scripted operator on the wire, and its other output."""

from types import SimpleNamespace

import pytest

from drone_bridge.dronegui import operator as dronegui
from drone_bridge.dronegui.codec import Controls
from drone_bridge.net.connector import Cancellation, LinkRefusedError
from drone_bridge.programs.plan import Leg, parse_plan


class Drone:
    """State of the drone for the operator."""

    full_speed, full_climb, full_turn = 5.0, 0.5, 2.0


def test_legs_are_fractions_of_full_scale():
    controls = dronegui.controls_for(Leg(1.0, forward=0.5, left=-1.0, up=0.25, turn=1.0), Drone)
    assert controls == Controls(hover=False, roll=0.2, pitch=-0.1, yaw=-0.5, gas=0.5)
    assert dronegui.controls_for(Leg(1.0, forward=50.0), Drone).pitch == -1.0
    assert dronegui.controls_for(Leg(2.0), Drone) == Controls(hover=True)


class Flood:
    """A port of which there is always more to read."""

    reads = 0

    def receive(self):
        self.reads += 1
        return SimpleNamespace(data=b"no picture")


@pytest.mark.parametrize("has_picture", [False, True])
def test_a_flood_of_video_holds_up_no_command(has_picture):
    options, video = SimpleNamespace(plan=parse_plan("1s")), Flood()
    client = dronegui.DroneGuiClient(None, None, video, options, Cancellation())
    client._has_picture = has_picture
    client.listen(0.0)
    assert video.reads == (0 if has_picture else 1)


class StartingGui:
    """A GUI whose port is closed to the first datagrams."""

    refusals_left = 3

    def send(self, data, _):
        if self.refusals_left:
            self.refusals_left -= 1
            raise LinkRefusedError("The port is closed.")


def test_a_plan_for_a_flying_drone_waits_for_the_gui():
    gui, options = StartingGui(), SimpleNamespace(plan=parse_plan("1s forward 1"), in_the_air=True)
    dronegui.DroneGuiClient(gui, None, None, options, Cancellation()).prepare()
    assert not gui.refusals_left
