# SPDX-License-Identifier: Apache-2.0
"""How testbed_server learns what the drone is: from drone_properties, or from CameraInfos and parameters."""

import time
from collections.abc import Callable
from functools import partial
from typing import Final

from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import CameraInfo

from drone_bridge.link_node.link_node import LinkNode
from drone_bridge.msg import DroneProperties
from drone_bridge.servers.testbed.parameters import DRONE, SIDES_OF, assumed_drone
from drone_bridge.translate import testbed as translate
from drone_bridge.translate.testbed import SIDES

_LOOK_PERIOD_S: Final = 0.1


class PropertiesWatch:
    """Takes drone_properties; where none come within `source_timeout`, CameraInfos and parameters have to do.

    What drone_properties say holds from then on. All of it is done in the executor.
    """

    def __init__(self, node: LinkNode, learn: Callable[[DroneProperties], None]) -> None:
        """`learn` gets the properties, whenever they are told."""
        self._node = node
        self._sides = SIDES_OF[node.parameters["cameras"]]
        self._learn = learn
        self._assumed = assumed_drone(node.parameters)
        self._infos: dict[str, CameraInfo] = {}
        self._since_s = time.monotonic()
        self._looks_at_cameras = self._is_known = False
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        node.make_subscription(DroneProperties, "drone_properties", self._take_properties, latched)
        node.make_timer(_LOOK_PERIOD_S, self._look)

    @property
    def missing(self) -> str:
        """What has to come, in a sentence."""
        resolve = self._node.resolve_topic_name
        infos = " and ".join(resolve(f"{side}/camera_info") for side in self._sides if side not in self._infos)
        infos = infos and f" on {infos} and"
        return f"What the drone is comes on {resolve('drone_properties')}, or{infos} by parameters {DRONE}.*."

    def _take_properties(self, properties: DroneProperties) -> None:
        if len(self._sides) < len(SIDES):  # both images are the same then
            properties.camera_separation = 0.0
        self._is_known = True
        self._node.statistics.facts["constants"] = "from drone_properties"
        self._learn(properties)

    def _look(self) -> None:
        """Subscribe to CameraInfos when they are needed, and not before: one comes with every image."""
        if self._is_known or self._looks_at_cameras:
            return
        if time.monotonic() - self._since_s > self._node.parameters["source_timeout"]:
            self._looks_at_cameras = True
            for side in self._sides:
                self._node.make_subscription(CameraInfo, f"{side}/camera_info", partial(self._take_info, side), 1)
            if not self._sides:
                self._assume(DroneProperties(**self._assumed), f"from the parameters {DRONE}.*")

    def _take_info(self, side: str, info: CameraInfo) -> None:
        if self._is_known or (side in self._infos and _same(self._infos[side], info)):
            return
        self._infos[side] = info
        if self._infos.keys() < set(self._sides):
            return
        properties = DroneProperties(**self._assumed)
        try:
            translate.add_cameras(properties, self._infos["left"], self._infos.get("right"))
        except ValueError as error:
            self._node.complain("rejected input", f"The drone's cameras are not known: {error}")
            return
        self._assume(properties, f"from camera_info and the parameters {DRONE}.*")

    def _assume(self, properties: DroneProperties, whence: str) -> None:
        self._node.statistics.facts["constants"] = whence
        self._node.inform(f"Nobody publishes drone_properties: the drone is as the parameters {DRONE}.* say.")
        self._learn(properties)


def _same(one: CameraInfo, other: CameraInfo) -> bool:
    """Return whether they are of the same camera, whatever their stamps."""
    return (one.width, one.height, list(one.k), list(one.p)) == (
        other.width,
        other.height,
        list(other.k),
        list(other.p),
    )
