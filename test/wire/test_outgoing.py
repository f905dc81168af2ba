# SPDX-License-Identifier: Apache-2.0
"""Computed numbers: clamped to the wire's range or replaced by neutral, so that they end no link."""

import math

import pytest

from drone_bridge.dronegui import codec as dronegui
from drone_bridge.dronegui import units
from drone_bridge.dronegui.session.controller import HOVER
from drone_bridge.motion.flight_control import RatesAndThrust
from drone_bridge.motion.tilted_drone import Shares
from drone_bridge.robot import codec as robot
from drone_bridge.telemetry import codec as telemetry
from drone_bridge.telemetry.units import Units
from drone_bridge.testbed.codec import FLOAT32, AngleUnit, Constants, MotionParameters
from drone_bridge.testbed.units import motion_parameters
from drone_bridge.wire import LocalProtocolError
from drone_bridge.wire.outgoing import encoded, fitted

#: What the tilt of a saturated drone is for rounding: the next number after 1.
FULL_TILT = math.nextafter(1.0, 2.0)
#: Largest deflections of the landing challenge's drone: thrust, pitch, roll, yaw.
DEFLECTIONS = (1.0, 0.5, 0.5, 0.5)


def refuse(sentence):
    raise AssertionError(sentence)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_tilt_that_is_full_but_for_rounding_is_full_on_the_wire(sign):
    shares = Shares(*(sign * FULL_TILT for _ in Shares._fields))
    controls = units.controls(shares)
    with pytest.raises(LocalProtocolError, match=r"roll is -?1\.0000000000000002"):
        dronegui.ControllerConnection().send(controls)
    receiver = dronegui.ReceiverConnection()
    receiver.receive_data(encoded(dronegui.ControllerConnection().send, controls, HOVER, refuse))
    read = receiver.next_event().controls
    assert (read.roll, read.pitch, read.yaw, read.gas) == (sign, -sign, -sign, sign)

    command = Units().command(shares)
    drone = telemetry.DroneConnection()
    drone.receive_data(encoded(telemetry.ControllerConnection().send, command, None, refuse))
    read = drone.next_event()
    assert tuple(map(abs, (read.thrust, read.pitch, read.roll, read.yaw))) == DEFLECTIONS


def test_values_far_beyond_the_range_are_clamped():
    assert fitted(dronegui.Controls(roll=1e300, gas=-2)) == dronegui.Controls(roll=1.0, gas=-1.0)
    assert fitted(robot.SkidSteerUpdate(70_000, 2049, -5000)) == robot.SkidSteerUpdate(70_000, 2048, -2048)


def test_measured_values_and_values_within_the_range_are_unchanged():
    within = dronegui.Controls(roll=1.0, pitch=-1.0)
    assert fitted(within) is within
    measured = dronegui.Demo(altitude=1e12)
    assert fitted(measured) is measured
    assert encoded(dronegui.ReceiverConnection().send, measured, None, lambda sentence: None) is None


@pytest.mark.parametrize("wrong", [math.nan, math.inf, None, "1"])
def test_neutral_replaces_nan(wrong):
    refusals = []
    send = dronegui.ControllerConnection().send
    sent = encoded(send, dronegui.Controls(hover=False, pitch=wrong), HOVER, refusals.append)
    assert sent == dronegui.ControllerConnection().send(HOVER)
    (refusal,) = refusals
    assert refusal.startswith("Controls can't be sent: pitch is ")
    assert "from -1 to 1. " in refusal


def test_without_a_valid_neutral_command_nothing_is_sent():
    refusals = []
    bad = dronegui.Controls(pitch=math.nan)
    for neutral in (None, bad):
        assert encoded(dronegui.ControllerConnection().send, bad, neutral, refusals.append) is None
    assert [refusal.rpartition(". ")[2] for refusal in refusals] == [
        "Nothing is sent instead.",
        "The neutral command is sent instead.",
        "Nothing is sent instead.",
    ]


def test_a_nan_rate_is_refused_instead_of_clamped():
    constants = Constants(90.0, 90.0, 1, 1, 0.25, 1.0, 9.81, 0.2, 25.0, 720.0, 720.0, 720.0)
    motion, _ = motion_parameters(RatesAndThrust(0.0, math.nan, 0.0, math.nan), constants, AngleUnit.DEGREES)
    assert [math.isnan(number) for number in (motion.pitch_rate, motion.thrust)] == [True, True]
    beyond = MotionParameters(1e39, 0.0, 0.0, -1e300)
    assert fitted(beyond) == MotionParameters(FLOAT32.most, 0.0, 0.0, FLOAT32.least)
