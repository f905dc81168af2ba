# SPDX-License-Identifier: Apache-2.0
"""The topics of a testbed: its drone's properties and transforms, and the sensor data of every frame."""

from collections.abc import Iterator
from functools import partial
from typing import Final

from builtin_interfaces.msg import Time
from nav_msgs.msg import Odometry
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import CameraInfo, CompressedImage, Image, Imu
from std_msgs.msg import Header
from tf2_msgs.msg import TFMessage

from drone_bridge.msg import DroneProperties
from drone_bridge.ros.common_parameters import frame_names, odometry_covariances
from drone_bridge.ros.frames import transform
from drone_bridge.ros.images import JpegEncoder, Rgb8Image
from drone_bridge.ros.link_node import LinkNode
from drone_bridge.ros.message_template import STAMP, MessageTemplate
from drone_bridge.ros.simulated_time import Stamps
from drone_bridge.ros.time import stamp_numbers, time_from_seconds
from drone_bridge.ros.topics import Output, Outputs, latched, newest
from drone_bridge.testbed.codec import AngleUnit, Constants, SensorFrame
from drone_bridge.testbed.topics import translation as translate
from drone_bridge.testbed.topics.translation import SIDES, StereoFrameNames

#: Rarer than in other bridges: frames of 30 Hz find the caches cold, and each count delays one of them.
SUBSCRIBER_CHECK_PERIOD_S: Final = 0.5


class TestbedOutputs:
    """The publishers of testbed_bridge, and what makes their messages."""

    __test__ = False  # not a test, whatever its name tells pytest

    def __init__(self, node: LinkNode, stamps: Stamps, unit: AngleUnit, has_position: bool) -> None:
        """`has_position`: whether the testbed sends, or may send, positions."""
        get = node.parameters.__getitem__
        self._node = node
        self._counts = node.statistics.counts
        self._clock_publisher = stamps.clock_publisher
        self._unit = unit
        self._standard_deviation = get("attitude_standard_deviation")
        self._names = frame_names(node.parameters, StereoFrameNames)
        self._covariances = odometry_covariances(node.parameters)
        self._image_publishers = [node.make_publisher(Image, f"{side}/image_raw", newest()) for side in SIDES]
        self._info_publishers = [node.make_publisher(CameraInfo, f"{side}/camera_info", newest()) for side in SIDES]
        self._jpeg_publishers = [
            node.make_publisher(CompressedImage, f"{side}/image_raw/compressed", newest()) for side in SIDES
        ]
        self._imu_publisher = node.make_publisher(Imu, "imu/data", 10)
        self._properties_publisher = node.make_publisher(DroneProperties, "drone_properties", latched())
        self._static_tf_publisher = node.make_publisher(TFMessage, "/tf_static", latched())
        self._odometry_publisher = node.make_publisher(Odometry, "odom", 10) if has_position else None
        self._tf_publisher = node.make_publisher(TFMessage, "/tf", 100) if has_position and get("publish_tf") else None
        self._attitude: MessageTemplate | None = None  # its covariances are those of all frames with these constants
        self._pose_stamp: Time | None = None
        self._pose_numbers: tuple[float, ...] | None = None  # of the frame with this stamp
        self._has_map_to_odom = has_position and get("publish_map_to_odom")

    def publish_properties(self, constants: Constants) -> None:
        """Publish the announced drone, latched."""
        properties = translate.drone_properties(constants, self._unit)
        properties.header.stamp = self._node.now()
        properties.header.frame_id = self._names.base_link
        self._node.publish(self._properties_publisher, properties)

    def publish_static_transforms(self, constants: Constants, has_position: bool) -> None:
        """Publish where the cameras are and, if the testbed sends positions, the map."""
        transforms = translate.camera_transforms(constants, self._names)
        if has_position and self._has_map_to_odom:
            transforms.append(translate.map_transform(self._names))
        now = self._node.now()
        for each in transforms:
            each.header.stamp = now
        self._node.publish(self._static_tf_publisher, TFMessage(transforms=transforms))

    def frame_outputs(self, constants: Constants) -> Outputs[SensorFrame]:
        """Return the topics that are published with every frame after these constants."""
        self._attitude = None
        return Outputs(self._node, self._make_outputs(constants), SUBSCRIBER_CHECK_PERIOD_S)

    def _make_outputs(self, constants: Constants) -> Iterator[Output]:
        """Yield every topic with the function that makes its message; constant parts are made here."""
        if self._clock_publisher:
            yield Output(self._clock_publisher, lambda frame, _: Clock(clock=time_from_seconds(frame.time)))
        for side, publisher in zip(SIDES, self._info_publishers, strict=True):
            info = MessageTemplate(translate.camera_info(constants, self._unit, self._names, side), STAMP)
            yield Output(publisher, partial(self._info, info))
        # Small messages first: who puts a frame together has dealt with them when the images have come.
        yield Output(self._imu_publisher, self._imu)
        if self._odometry_publisher:
            odometry = MessageTemplate(self._odometry(), STAMP, "pose.pose")
            yield Output(self._odometry_publisher, partial(self._pose, odometry))
        if self._tf_publisher:
            moved = TFMessage(transforms=[transform(self._names.odom, self._names.base_link)])
            tf = MessageTemplate(moved, f"transforms[0].{STAMP}", "transforms[0].transform")
            yield Output(self._tf_publisher, partial(self._pose, tf))
        for side, publisher in zip(SIDES, self._image_publishers, strict=True):
            image = Rgb8Image(constants.width, constants.height, self._names.optical(side))
            yield Output(publisher, partial(self._image, image, side))
        for side, publisher in zip(SIDES, self._jpeg_publishers, strict=True):
            size = constants.width, constants.height
            encoder = JpegEncoder(*size, self._names.optical(side), self._node.parameters["jpeg_quality"])
            yield Output(publisher, partial(self._compressed_image, encoder, side))

    def _odometry(self) -> Odometry:
        """Return what is the same in all: frames and covariances."""
        message = Odometry(header=Header(frame_id=self._names.odom), child_frame_id=self._names.base_link)
        self._covariances.fill(message)
        return message

    def _info(self, info: MessageTemplate, _: SensorFrame, stamp: Time) -> bytes:
        return info.filled(stamp_numbers(stamp))

    def _image(self, image: Rgb8Image, side: str, frame: SensorFrame, stamp: Time) -> Image:
        self._counts["images"] += 1
        return image.filled(getattr(frame, side), stamp)

    def _compressed_image(
        self, encoder: JpegEncoder, side: str, frame: SensorFrame, stamp: Time
    ) -> CompressedImage | None:
        try:
            message = encoder.image(getattr(frame, side), stamp)
        except ValueError as error:
            self._node.count_and_warn("images not compressed", f"{side}/image_raw/compressed {error}.")
            return None
        self._counts["images compressed"] += 1
        return message

    def _imu(self, frame: SensorFrame, stamp: Time) -> bytes:
        if self._attitude is None:
            imu = translate.imu(frame, self._unit, self._standard_deviation, self._names)
            self._attitude = MessageTemplate(imu, STAMP, "orientation")
        return self._attitude.filled(stamp_numbers(stamp), translate.orientation(frame, self._unit))

    def _pose(self, template: MessageTemplate, frame: SensorFrame, stamp: Time) -> bytes | None:
        if stamp is not self._pose_stamp:  # else this frame's pose was published on the other of odom and tf
            self._pose_stamp, self._pose_numbers = stamp, translate.pose_numbers(frame, self._unit)
        return template.filled(stamp_numbers(stamp), self._pose_numbers) if self._pose_numbers else None
