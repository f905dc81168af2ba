# SPDX-License-Identifier: Apache-2.0
"""vehicle_model: publishes the shape of a vehicle for rviz and the web page.

It publishes one of the package's models as `robot_description`, and its fixed joints as static transforms, like
robot_state_publisher, which has no wheel. Here the description itself has the frame prefix, so that displays need no
prefix setting. Several vehicles, each with a world of its own, can be placed side by side in a common frame, so that
one window shows them all.
"""

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from ament_index_python.packages import get_package_share_directory
from rclpy.node import Node
from std_msgs.msg import String
from tf2_msgs.msg import TFMessage

from drone_bridge.ros.node.parameters import DeclaredParameters, ParameterDeclaration
from drone_bridge.ros.node.program import run
from drone_bridge.ros.qos import latched
from drone_bridge.ros.topics.transforms import transform
from drone_bridge.ros.topics.urdf import fixed_transforms, put_before_frames

MODELS = ("drone", "rover", "submarine")
PARAMETERS = (
    ParameterDeclaration("model", MODELS[0], "Model to publish.", choices=MODELS),
    ParameterDeclaration("frame_prefix", "", "Prefix of every tf frame, such as drone1/."),
    ParameterDeclaration(
        "world_frame", "", "Common frame of several vehicles, in which this one is placed. Empty: none."
    ),
    ParameterDeclaration(
        "placed_frame", "odom", "Frame of this vehicle that is placed in world_frame, without the prefix."
    ),
    ParameterDeclaration("place_x", 0.0, "Position of placed_frame in world_frame, m.", range=(-1e4, 1e4)),
    ParameterDeclaration("place_y", 0.0, "Position of placed_frame in world_frame, m.", range=(-1e4, 1e4)),
    ParameterDeclaration("place_z", 0.0, "Position of placed_frame in world_frame, m.", range=(-1e4, 1e4)),
)


class VehicleModel(Node):
    """Node that publishes one model once, latched."""

    def __init__(self, **options: Any) -> None:
        """Make the node; `options` are rclpy's, such as `namespace`."""
        super().__init__("vehicle_model", **options)
        self._declared = DeclaredParameters(self, PARAMETERS)
        self._description_publisher = self.create_publisher(String, "robot_description", latched())
        self._tf_publisher = self.create_publisher(TFMessage, "/tf_static", latched())

    def start(self) -> bool:
        get = self._declared.__getitem__
        file = Path(get_package_share_directory("drone_bridge"), "urdf", f"{get('model')}.urdf")
        description = ElementTree.parse(file).getroot()
        put_before_frames(description, get("frame_prefix"))
        transforms = fixed_transforms(description)
        if get("world_frame"):
            placed = get("frame_prefix") + get("placed_frame")
            place = (get("place_x"), get("place_y"), get("place_z"))
            transforms.append(transform(get("world_frame"), placed, place))
        now = self.get_clock().now().to_msg()
        for message in transforms:
            message.header.stamp = now
        self._tf_publisher.publish(TFMessage(transforms=transforms))
        self._description_publisher.publish(String(data=ElementTree.tostring(description, encoding="unicode")))
        self._declared.freeze_because("when the node starts, and the model is published: restart it")
        self.get_logger().info(f"Publishing the model of a {get('model')}.")
        return True

    def leave(self) -> None:
        """Do nothing: there is nothing to stop."""


def main() -> int:
    """Run the node."""
    return run(VehicleModel)
