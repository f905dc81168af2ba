# SPDX-License-Identifier: Apache-2.0
"""Commands as controls: each sign with its physical meaning."""

from hypothesis import given
from hypothesis import strategies as st
from twists import twist

from drone_bridge.dronegui.codec import ControllerConnection, Controls
from drone_bridge.dronegui.topics import (
    HOVER,
    FullScale,
    controls_from_twist,
    is_zero,
    twist_from_controls,
)

SHARES = FullScale(1.0, 1.0, 1.0, 1.0)


def test_forward_tilts_the_nose_down_which_the_wire_counts_negative():
    assert controls_from_twist(twist(forward=0.5), SHARES) == (Controls(hover=False, pitch=-0.5), True)


def test_left_banks_left_which_the_wire_counts_negative():
    assert controls_from_twist(twist(left=0.5), SHARES) == (Controls(hover=False, roll=-0.5), True)


def test_up_climbs():
    assert controls_from_twist(twist(up=0.5), SHARES) == (Controls(hover=False, gas=0.5), True)


def test_a_left_turn_is_negative_on_the_wire():
    assert controls_from_twist(twist(left_turn=0.5), SHARES) == (Controls(hover=False, yaw=-0.5), True)


def test_deflections_are_clamped():
    controls, was_within = controls_from_twist(twist(5.0, -1e300, -2.0, 1.5), SHARES)
    assert controls == Controls(hover=False, roll=1.0, pitch=-1.0, yaw=-1.0, gas=-1.0)
    assert not was_within


def test_components_that_the_wire_lacks_are_ignored():
    message = twist()
    message.angular.x = message.angular.y = 1.0
    controls, was_within = controls_from_twist(message, SHARES)
    assert is_zero(controls)
    assert not controls.hover
    assert was_within


finite = st.floats(allow_nan=False, allow_infinity=False)


@given(finite, finite, finite, finite, st.floats(1e-3, 1e3))
def test_every_finite_command_can_be_sent(forward, left, up, left_turn, full):
    controls, _ = controls_from_twist(twist(forward, left, up, left_turn), FullScale(full, full, full, full))
    ControllerConnection().send(controls)


# The other way round.


def test_hover_is_zero_whatever_the_axes_say():
    assert twist_from_controls(Controls(hover=True, roll=1.0, pitch=1.0, yaw=1.0, gas=1.0), SHARES) == twist()
    assert twist_from_controls(HOVER, SHARES) == twist()


share = st.floats(-1, 1)


@given(share, share, share, share)
def test_controls_round_trip_through_cmd_vel(roll, pitch, yaw, gas):
    controls = Controls(hover=False, roll=roll, pitch=pitch, yaw=yaw, gas=gas)
    assert controls_from_twist(twist_from_controls(controls, SHARES), SHARES) == (controls, True)
