# SPDX-License-Identifier: Apache-2.0
"""Navdata as ROS messages."""

import pytest
from builtin_interfaces.msg import Time

from drone_bridge.ar_drone.cameras import CAMERAS
from drone_bridge.ardrone.codec import Detected, Navdata, State
from drone_bridge.ardrone.codec.navdata import Pressure, detections_option, pressure_option, ultrasound_option
from drone_bridge.ardrone.topics import ArdroneTranslation
from drone_bridge.pictures.topics import camera_transforms
from drone_bridge.ros.topics.frames import DroneFrameNames

NAMES = DroneFrameNames("d1/")


def test_detections_are_in_a_frame_that_tf_knows():
    navdata = Navdata(State(0), 1, options=(detections_option([Detected(512, 430, 88, 61, 143)]),))
    message = ArdroneTranslation(NAMES).detections(navdata, Time())
    (found,) = message.detections
    assert (found.center_x, found.height, found.distance) == pytest.approx((0.512, 0.061, 1.43))
    assert message.header.frame_id in {each.child_frame_id for each in camera_transforms(NAMES, CAMERAS)}


def test_pressure_is_in_pascals_and_the_ultrasound_height_in_metres():
    options = pressure_option(Pressure(250, 101_300)), ultrasound_option(1250)
    navdata, made = Navdata(State(0), 1, options=options), ArdroneTranslation(NAMES)
    assert (made.fluid_pressure(navdata, Time()).fluid_pressure, made.range(navdata, Time()).range) == (101_300, 1.25)
