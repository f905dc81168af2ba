# SPDX-License-Identifier: Apache-2.0
"""The topics of telemetry."""

from typing import Any

from builtin_interfaces.msg import Time
from geometry_msgs.msg import PointStamped, TwistStamped
from nav_msgs.msg import Odometry
from rclpy.publisher import Publisher
from sensor_msgs.msg import CameraInfo, CompressedImage, Image, Imu, Range
from std_msgs.msg import Bool, Float64
from tf2_msgs.msg import TFMessage

from drone_bridge.link_node.common_parameters import odometry_covariances
from drone_bridge.link_node.link_node import LinkNode
from drone_bridge.link_node.outputs import Output, Outputs
from drone_bridge.msg import LandingPad
from drone_bridge.node.qos import latched, newest
from drone_bridge.telemetry.codec import DroneTelemetry, RoverTelemetry
from drone_bridge.telemetry.topics.to_ros import DroneMessages, LandingFrameNames, rover_odometry, static_transforms
from drone_bridge.translate.jpeg import JpegDecoder
from drone_bridge.translate.transforms import odometry_transform


class TelemetryOutputs:
    """Publishes topics that have subscribers.

    Telemetry of the drone is for one thread; that of the rover may come from another one.
    """

    def __init__(
        self,
        node: LinkNode,
        names: LandingFrameNames,
        messages: DroneMessages,
        clock_publisher: "Publisher[Any] | None",
        altitude_as_range: bool,
    ) -> None:
        self._covariances = odometry_covariances(node.parameters)
        self._publishes_tf: bool = node.parameters["publish_tf"]
        self._node = node
        self._names = names
        self._messages = messages
        self._decoder = JpegDecoder(names.optical)
        make = node.make_publisher
        outputs = [
            Output(make(Imu, "imu/data", 10), messages.imu),
            Output(make(PointStamped, "height", 10), messages.height),
            Output(make(Float64, "vertical_velocity", 10), messages.vertical_velocity),
            Output(make(TwistStamped, "velocity", 10), messages.velocity),
            Output(make(LandingPad, "landing_pad", 10), messages.landing_pad),
            Output(make(CameraInfo, "camera/camera_info", newest()), messages.camera_info),
            Output(make(CompressedImage, "camera/image_raw/compressed", newest()), messages.compressed_image),
        ]
        if altitude_as_range:
            outputs.append(Output(make(Range, "altitude", 10), self._deprecated_altitude))
        if clock_publisher:
            outputs.insert(0, Output(clock_publisher, messages.clock))
        self._tf = make(TFMessage, "/tf", 100)
        if self._publishes_tf:
            outputs.append(Output(self._tf, messages.transforms))
        raw = Output(make(Image, "camera/image_raw", newest()), self._decoded)
        self._outputs: Outputs[DroneTelemetry] = Outputs(node, outputs)
        self._decoded_outputs: Outputs[DroneTelemetry] = Outputs(node, [raw])
        self._landed_publisher = make(Bool, "landed", latched())
        self._rover = make(Odometry, "rover/odom", 10)
        self._static_tf = make(TFMessage, "/tf_static", latched())
        self._has_static_transforms = False
        self._landed: bool | None = None  # as it was published
        self._was_altitude_advised = False

    def restart(self) -> None:
        """Publish latched messages again with the next telemetry."""
        self._has_static_transforms = False
        self._landed = None
        self._outputs.recheck()
        self._decoded_outputs.recheck()

    def publish_drone(self, telemetry: DroneTelemetry, stamp: Time) -> None:
        node = self._node
        if not self._has_static_transforms:
            self._publish_static_transforms(stamp)
        self._outputs.publish(telemetry, stamp)
        if telemetry.landed is not None and telemetry.landed != self._landed:
            self._landed = telemetry.landed
            node.publish(self._landed_publisher, Bool(data=telemetry.landed))
        camera = telemetry.camera
        if camera.jpeg is not None:
            node.statistics.counts["images"] += 1
            node.statistics.counts["images of another size"] += camera.jpeg_size != (camera.width, camera.height)
            self._decoded_outputs.publish(telemetry, stamp)  # last, as decoding takes its time

    def publish_rover(self, telemetry: RoverTelemetry, stamp: Time) -> None:
        message = rover_odometry(telemetry, stamp, self._names)
        self._covariances.fill(message)
        self._node.publish(self._rover, message)
        if self._publishes_tf:
            self._node.publish(self._tf, TFMessage(transforms=[odometry_transform(message)]))

    def _publish_static_transforms(self, stamp: Time) -> None:
        transforms = static_transforms(self._names)
        for transform in transforms:
            transform.header.stamp = stamp
        self._node.publish(self._static_tf, TFMessage(transforms=transforms))
        self._has_static_transforms = True

    def _deprecated_altitude(self, telemetry: DroneTelemetry, stamp: Time) -> Range:
        if not self._was_altitude_advised:
            self._was_altitude_advised = True
            self._node.get_logger().warning(
                "altitude, which has a subscriber, is deprecated: since 0.2 the height is on height, as a "
                "geometry_msgs/PointStamped. altitude will be removed in the next release; altitude_as_range: false "
                "removes it now."
            )
        return self._messages.altitude(telemetry, stamp)

    def _decoded(self, telemetry: DroneTelemetry, stamp: Time) -> Image | None:
        if telemetry.camera.jpeg is None:
            return None
        try:
            message = self._decoder.image(telemetry.camera.jpeg, stamp)
        except ValueError as error:
            self._node.count_and_warn(
                "undecodable images", f"An image {error}; the rest of its document was published."
            )
            return None
        self._node.statistics.counts["images decoded"] += 1
        return message
