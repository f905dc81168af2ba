# SPDX-License-Identifier: Apache-2.0
"""Serialized messages with gaps are what rclpy makes of the same messages."""

import struct

import pytest
from geometry_msgs.msg import PointStamped, PoseStamped, TransformStamped, TwistStamped
from hypothesis import given
from hypothesis import strategies as st
from nav_msgs.msg import Odometry
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import CameraInfo, Imu
from std_msgs.msg import Header
from tf2_msgs.msg import TFMessage

from drone_bridge.msg import ItemEvent, LandingPad
from drone_bridge.ros.images import pinhole_camera_info
from drone_bridge.ros.message_template import MessageTemplate, TransformTemplate, serialized_transforms

STAMP = (12, 345)
names = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)
floats = st.floats(allow_nan=False)


def transforms(*frames):
    return TFMessage(transforms=[TransformStamped(header=Header(frame_id="odom"), child_frame_id=f) for f in frames])


def assert_serialized(content, message):
    """Bytes that only align the others are left as they were in memory by rclpy, so content and length are compared."""
    assert len(content) == len(serialize_message(message))
    assert deserialize_message(content, type(message)) == message


@given(names, st.lists(floats, min_size=7, max_size=7), st.lists(floats, min_size=6, max_size=6))
def test_a_filled_message_is_what_rclpy_serializes(frame, pose, twist):
    message = Odometry(header=Header(frame_id=frame), child_frame_id=frame)
    template = MessageTemplate(message, "header.stamp", "pose.pose", "twist.twist", "pose.covariance[35]")
    message.header.stamp.sec, message.header.stamp.nanosec = STAMP
    place, turn = message.pose.pose.position, message.pose.pose.orientation
    place.x, place.y, place.z, turn.x, turn.y, turn.z, turn.w = pose
    linear, angular = message.twist.twist.linear, message.twist.twist.angular
    linear.x, linear.y, linear.z, angular.x, angular.y, angular.z = twist
    message.pose.covariance[35] = 4.0
    assert_serialized(template.filled(STAMP, pose, twist, (4.0,)), message)


@given(names, names)
def test_messages_of_any_layout_are_serialized_as_rclpy_does(frame, name):
    header = Header(frame_id=frame)
    for message in (
        PoseStamped(header=header),
        TwistStamped(header=header),
        PointStamped(header=header),
        Imu(header=header, angular_velocity_covariance=[float(number) for number in range(9)]),
        pinhole_camera_info(320, 240, focal_x=160.0, focal_y=161.0, frame_id=frame, baseline=0.1),
        CameraInfo(header=header, d=[]),
        LandingPad(header=header, detected=True),
        ItemEvent(header=header, id=7, name=name),
        transforms(),
        transforms(frame, name),
    ):
        assert_serialized(MessageTemplate(message).filled(), message)


@given(st.lists(st.tuples(names, st.lists(floats, min_size=7, max_size=7)), max_size=4))
def test_transforms_are_serialized_together_whichever_they_are(moved):
    message = transforms(*(frame for frame, _ in moved))
    for transform, (_, pose) in zip(message.transforms, moved, strict=True):
        transform.header.stamp.sec, transform.header.stamp.nanosec = STAMP
        place, turn = transform.transform.translation, transform.transform.rotation
        place.x, place.y, place.z, turn.x, turn.y, turn.z, turn.w = pose
    content = serialized_transforms((TransformTemplate("odom", frame), STAMP, pose) for frame, pose in moved)
    assert_serialized(content, message)


def test_each_gap_has_its_place():
    template = MessageTemplate(transforms("a", "bcd"), "transforms[1].transform", "transforms[0].header.stamp")
    first, second = deserialize_message(template.filled(range(1, 8), STAMP), TFMessage).transforms
    assert (first.header.stamp.sec, first.header.stamp.nanosec, first.transform.rotation.w) == (*STAMP, 1.0)
    assert (second.transform.translation.x, second.transform.rotation.w, second.child_frame_id) == (1.0, 7.0, "bcd")


def test_numbers_of_different_sizes_can_fill_one_gap():
    template = MessageTemplate(pinhole_camera_info(3, 2, focal_x=1.0, focal_y=1.0, frame_id="f"), "roi")
    message = deserialize_message(template.filled((1, 2, 3, 4, True)), CameraInfo)
    assert (message.roi.x_offset, message.roi.width, message.roi.do_rectify) == (1, 4, True)


def test_a_gap_has_to_hold_numbers():
    for path, error in (("header", "strings"), ("transforms", "strings"), ("pose", "no field"), ("head", "no field")):
        with pytest.raises(ValueError, match=error):
            MessageTemplate(TransformStamped() if path.startswith("head") else transforms("a"), path)


def test_what_does_not_fit_is_refused():
    template = MessageTemplate(PointStamped(), "header.stamp", "point")
    for numbers in ([STAMP], [STAMP, (1.0, 2.0)], [STAMP, (1.0, 2.0, 3.0), (4.0,)], [(2**31, 0), (1.0, 2.0, 3.0)]):
        with pytest.raises((ValueError, struct.error)):
            template.filled(*numbers)
