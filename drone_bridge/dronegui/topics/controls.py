# SPDX-License-Identifier: Apache-2.0
"""Converts between commands and controls of the dronegui protocol."""

from dataclasses import replace
from typing import Any, NamedTuple

from builtin_interfaces.msg import Time
from geometry_msgs.msg import Twist

from drone_bridge.dronegui.codec import AXES, BUTTONS, Controls, Demo
from drone_bridge.dronegui.topics.frames import body_from_dronegui_axes, dronegui_axes_from_body
from drone_bridge.msg import DroneGuiState

#: The command that is always safe, and never wrong: no button but hover.
HOVER = Controls(hover=True)


class FullScale(NamedTuple):
    """The command at full deflection of each axis, in the order of the wire."""

    roll: float  # linear.y
    pitch: float  # linear.x
    yaw: float  # angular.z
    gas: float  # linear.z


def controls_from_twist(twist: Twist, full_scale: FullScale) -> tuple[Controls, bool]:
    """Return a finite cmd_vel as controls, clamped to full scale, and whether it was within it.

    linear.x is forward, linear.y left, linear.z up, angular.z a left turn (REP 103); the rest is not on the wire.
    """
    asked = dronegui_axes_from_body(twist.linear.x, twist.linear.y, twist.linear.z, twist.angular.z)
    shares = [value / full for value, full in zip(asked, full_scale, strict=True)]
    clamped = [max(-1.0, min(1.0, share)) for share in shares]
    roll, pitch, yaw, gas = clamped
    return Controls(hover=False, roll=roll, pitch=pitch, yaw=yaw, gas=gas), clamped == shares


def twist_from_controls(controls: Controls, full_scale: FullScale) -> Twist:
    """Return controls as cmd_vel; zero while hover is pressed, which overrides the axes."""
    twist = Twist()
    if controls.hover:
        return twist
    shares = [getattr(controls, axis) for axis in AXES]
    forward, left, up, left_turn = body_from_dronegui_axes(
        *(share * full for share, full in zip(shares, full_scale, strict=True))
    )
    twist.linear.x, twist.linear.y, twist.linear.z, twist.angular.z = forward, left, up, left_turn
    return twist


def is_zero(controls: Controls) -> bool:
    """Return whether all axes are centred."""
    return not any(getattr(controls, axis) for axis in AXES)


def with_buttons(controls: Controls, pressed: frozenset[str]) -> Controls:
    """Return the controls with these buttons also pressed."""
    pressed_ones: dict[str, Any] = dict.fromkeys(pressed, True)
    return replace(controls, **pressed_ones)


def drone_gui_state(seq: int, controls: Controls, stamp: Time) -> DroneGuiState:
    """Return a sent packet as a message."""
    message = DroneGuiState(seq=seq, **{name: getattr(controls, name) for name in (*BUTTONS, *AXES)})
    message.header.stamp = stamp
    return message


def navdata_facts(demo: Demo) -> dict[str, str]:
    """Return what diagnostics show of navdata."""
    state = demo.flight_state
    unknown = "nothing" if demo.ctrl_state is None else f"an unknown state (ctrl_state {demo.ctrl_state})"
    missing = [name for name in ("phi", "theta", "psi", "altitude", "vx", "vy") if getattr(demo, name) is None]
    return {
        "flight state": unknown if state is None else state.name.lower().replace("_", " "),
        "navdata lacks": ", ".join(missing),
    }
