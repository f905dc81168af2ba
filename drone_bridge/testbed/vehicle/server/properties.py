# SPDX-License-Identifier: Apache-2.0
"""PropertiesSource: the drone's properties, from drone_properties, or else from camera_info and parameters."""

from collections.abc import Callable
from functools import partial

from sensor_msgs.msg import CameraInfo

from drone_bridge.msg import DroneProperties
from drone_bridge.net.clock import elapsed_s
from drone_bridge.ros.node.protocol_node import ProtocolNode
from drone_bridge.ros.qos import latched
from drone_bridge.testbed import topics as translate
from drone_bridge.testbed import units
from drone_bridge.testbed.codec import AngleUnit, AttitudeLayout, Constants, TestbedConnection
from drone_bridge.testbed.topics import SIDES
from drone_bridge.testbed.vehicle.server.parameters import DRONE, SIDES_OF, assumed_drone
from drone_bridge.wire.events import LocalProtocolError

_CHECK_PERIOD_S = 0.1


class PropertiesSource:
    """Subscribes to drone_properties, and falls back to camera_info and parameters after `source_timeout`.

    After the first drone_properties, the fallback is disabled. For the executor.
    """

    def __init__(self, node: ProtocolNode, on_properties: Callable[[DroneProperties], None]) -> None:
        """`on_properties` is called with new or changed properties."""
        self._node = node
        self._sides = SIDES_OF[node.parameters["cameras"]]
        self._on_properties = on_properties
        self._assumed = assumed_drone(node.parameters)
        self._infos: dict[str, CameraInfo] = {}
        self._learned: DroneProperties | None = None  # from the fallback
        self._since_s = elapsed_s()
        self._uses_camera_info = self._is_known = False
        node.make_subscription(DroneProperties, "drone_properties", self._take_properties, latched())
        self._timer = node.make_timer(_CHECK_PERIOD_S, self._check_timeout)

    @property
    def missing(self) -> str:
        """Sources of the missing properties, as a sentence."""
        resolve = self._node.resolve_topic_name
        infos = " and ".join(resolve(f"{side}/camera_info") for side in self._sides if side not in self._infos)
        infos = infos and f" {infos} and"
        return f"The drone's properties come from {resolve('drone_properties')}, or{infos} the parameters {DRONE}.*."

    def _take_properties(self, properties: DroneProperties) -> None:
        if len(self._sides) < len(SIDES):  # both images are the same
            properties.camera_separation = 0.0
        self._is_known = True
        self._timer.cancel()
        if self._uses_camera_info:
            self._uses_camera_info = False
            for side in self._sides:
                self._node.end_subscriptions(f"{side}/camera_info")
        self._node.report.facts["constants"] = "from drone_properties"
        self._on_properties(properties)

    def _check_timeout(self) -> None:
        """Subscribe to camera_info only if needed, as each image has one."""
        if self._is_known or self._uses_camera_info:
            return
        if elapsed_s() - self._since_s > self._node.parameters["source_timeout"]:
            self._timer.cancel()
            self._uses_camera_info = True
            for side in self._sides:
                self._node.make_subscription(CameraInfo, f"{side}/camera_info", partial(self._take_info, side), 1)
            if not self._sides:
                self._assume(DroneProperties(**self._assumed), f"from the parameters {DRONE}.*")

    def _take_info(self, side: str, info: CameraInfo) -> None:
        self._infos[side] = info
        if self._is_known or self._infos.keys() < set(self._sides):
            return
        properties = DroneProperties(**self._assumed)
        try:
            translate.add_cameras(properties, self._infos["left"], self._infos.get("right"))
        except ValueError as error:
            self._node.report.count_and_warn("rejected_input", f"The camera_info was refused: {error}")
            return
        if properties != self._learned:
            self._assume(properties, f"from camera_info and the parameters {DRONE}.*")

    def _assume(self, properties: DroneProperties, source: str) -> None:
        self._learned = properties
        self._node.report.facts["constants"] = source
        self._node.report.inform(f"No publisher on drone_properties: using the parameters {DRONE}.*.")
        self._on_properties(properties)


def read_properties(properties: DroneProperties, unit: AngleUnit) -> Constants:
    """Return the constants of a drone. Raises ValueError for values that an autopilot would refuse."""
    constants = units.constants_of(properties, unit)
    try:
        TestbedConnection(AttitudeLayout.POSE, unit).send(constants)
    except LocalProtocolError as error:
        raise ValueError(str(error)) from error
    return constants
