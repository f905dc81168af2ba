# SPDX-License-Identifier: Apache-2.0
"""Measurements of the pad that land_on_pad reads from topics."""

import math

import pytest
from geometry_msgs.msg import PointStamped, TwistWithCovarianceStamped
from sensor_msgs.msg import Imu

from drone_bridge.controllers.land_on_pad.behaviour import read_measured
from drone_bridge.controllers.land_on_pad.images import attitude, pad_message
from drone_bridge.motion.quaternions import quaternion_from_euler
from drone_bridge.msg import LandingPad
from drone_bridge.ros.time import time_from_seconds
from drone_bridge.ros.topics.transforms import set_quaternion
from drone_bridge.telemetry.topics import LandingFrameNames, TelemetryTranslation
from drone_bridge.telemetry.units import Units
from drone_bridge.telemetry.vehicle.emulator.world import FlightSetup, LandingFlight

SPOILERS = {
    "velocity has nan": lambda messages: setattr(messages["velocity"].twist.twist.linear, "x", math.nan),
    "height has nan": lambda messages: setattr(messages["height"].point, "z", math.nan),
    r"the orientation in imu/data is \(nan": lambda messages: setattr(messages["imu/data"].orientation, "x", math.nan),
    "imu/data has no orientation": lambda messages: messages["imu/data"].orientation_covariance.__setitem__(0, -1.0),
    "landing_pad has .*nan": lambda messages: setattr(messages["landing_pad"], "offset_x", math.nan),
}


@pytest.mark.parametrize("sentence", SPOILERS)
def test_unusable_messages_are_refused_with_a_sentence(sentence):
    telemetry = LandingFlight(FlightSetup(images=False)).advance()
    stamp = time_from_seconds(1.0)
    make = TelemetryTranslation(LandingFrameNames(), Units())
    pad = LandingPad(detected=True, offset_x=1.0, offset_y=0.0, distance=3.0, confidence=0.9)
    pad.header.frame_id = "base_link"
    messages = {
        "imu/data": make.imu(telemetry, stamp),
        "velocity": make.velocity(telemetry, stamp),
        "height": make.height(telemetry, stamp),
        "landing_pad": pad,
    }
    assert read_measured(messages, landed=False).sighting
    pad.confidence = 0.01
    assert not read_measured(messages, landed=False).sighting
    pad.confidence = 0.9
    SPOILERS[sentence](messages)
    with pytest.raises(ValueError, match=sentence):
        read_measured(messages, landed=False)


@pytest.mark.parametrize("frame", ["base_stabilized", "base_footprint", "base_link"])
def test_measurements_are_in_axes_that_tilt_with_the_drone_or_do_not(frame):
    """The pad is 3 m below and 1 m north of a drone that looks north and has its nose down."""
    pitch, is_levelled = 0.3, frame != "base_link"
    imu = Imu()
    set_quaternion(imu.orientation, quaternion_from_euler(0.0, pitch, math.pi / 2))
    north, down = 1.0, 3.0
    if not is_levelled:  # along the body's x, which points down by the pitch, and its z
        cos, sin = math.cos(pitch), math.sin(pitch)
        north, down = cos * north + sin * down, cos * down - sin * north
    messages = {
        "imu/data": imu,
        "velocity": TwistWithCovarianceStamped(),
        "height": PointStamped(),
        "landing_pad": LandingPad(detected=True, offset_x=north, offset_y=0.0, distance=down, confidence=1.0),
    }
    linear = messages["velocity"].twist.twist.linear
    linear.x, linear.z = north, -down
    imu.header.frame_id = "d1/base_link"
    for topic in ("velocity", "landing_pad"):
        messages[topic].header.frame_id = f"d1/{frame}"
    measured = read_measured(messages, landed=False)
    assert measured.sighting.offset == pytest.approx((0.0, 1.0, -3.0))
    assert measured.velocity == pytest.approx((0.0, 1.0, -3.0))
    if not is_levelled:
        message = pad_message(measured.sighting, attitude(imu), "d1/base_link", imu.header.stamp)
        assert message.header.frame_id == "d1/base_link"
        assert (message.offset_x, message.offset_y, message.distance) == pytest.approx((north, 0.0, down))
