# SPDX-License-Identifier: Apache-2.0
"""What the scripted GUI's legs are on the wire."""

from drone_bridge.dronegui import operator as dronegui
from drone_bridge.dronegui.codec import Controls
from drone_bridge.programs.plan import Leg


class Drone:
    """What the operator is told of its drone."""

    full_speed, full_climb, full_turn = 5.0, 0.5, 2.0


def test_legs_are_fractions_of_full_scale():
    controls = dronegui.controls_for(Leg(1.0, forward=0.5, left=-1.0, up=0.25, turn=1.0), Drone)
    assert controls == Controls(hover=False, roll=0.2, pitch=-0.1, yaw=-0.5, gas=0.5)
    assert dronegui.controls_for(Leg(1.0, forward=50.0), Drone).pitch == -1.0
    assert dronegui.controls_for(Leg(2.0), Drone) == Controls(hover=True)
