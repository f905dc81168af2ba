# SPDX-License-Identifier: Apache-2.0
"""FrameTree: newest transforms of tf, and poses of frames in others. It replaces tf2_ros, which has no wheel."""

import math

from geometry_msgs.msg import TransformStamped
from rclpy.node import Node
from rclpy.qos import QoSProfile
from tf2_msgs.msg import TFMessage

from drone_bridge.motion.quaternions import IDENTITY, Placed, inverse, multiplied, rotated, unit_quaternion
from drone_bridge.ros.qos import latched
from drone_bridge.ros.subscriptions import subscribe

_MAX_FRAMES = 10_000
_LONGEST_CHAIN = 32
# Tolerance for the norm of a rotation's quaternion.
_UNIT_TOLERANCE = 0.1


class FrameTree:
    """Buffer of tf, which subscribes at its first use. For the executor."""

    def __init__(self, node: Node) -> None:
        self._node: Node | None = node  # None once it has subscribed
        self._by_child: dict[str, TransformStamped] = {}

    def seen_from(self, base: str, frame: str) -> Placed | None:
        """Return the pose of a frame in `base`, or None while tf does not provide it."""
        if self._node:
            subscribe(self._node, TFMessage, "/tf", self.keep, QoSProfile(depth=100))
            subscribe(self._node, TFMessage, "/tf_static", self.keep, all_static())
            self._node = None
        up, down = self._ancestors(frame), self._ancestors(base)
        common = next((name for name in up if name in down), None)
        if common is None:
            return None
        (x, y, z), rotation = up[common]
        (bx, by, bz), turned = down[common]
        back = inverse(turned)
        return rotated(back, x - bx, y - by, z - bz), multiplied(back, rotation)

    def keep(self, message: TFMessage) -> None:
        """Store transforms. Those with NaN or without a valid rotation are ignored."""
        for each in message.transforms:
            move = each.transform.translation
            is_place = all(map(math.isfinite, (move.x, move.y, move.z)))
            is_turn = unit_quaternion(each.transform.rotation, _UNIT_TOLERANCE) is not None
            has_room = len(self._by_child) < _MAX_FRAMES or each.child_frame_id in self._by_child
            if is_place and is_turn and has_room:
                self._by_child[each.child_frame_id] = each

    def _ancestors(self, frame: str) -> dict[str, Placed]:
        """Return a frame and its ancestors, nearest first, each with the pose of the frame in it."""
        found: dict[str, Placed] = {frame: ((0.0, 0.0, 0.0), IDENTITY)}
        placed = found[frame]
        while (above := self._by_child.get(frame)) and len(found) < _LONGEST_CHAIN:
            move, turn = above.transform.translation, unit_quaternion(above.transform.rotation, _UNIT_TOLERANCE)
            assert turn
            x, y, z = rotated(turn, *placed[0])
            placed = (x + move.x, y + move.y, z + move.z), multiplied(turn, placed[1])
            frame = above.header.frame_id
            if frame in found:  # a cycle
                break
            found[frame] = placed
        return found


def all_static() -> QoSProfile:
    """Return the QoS that receives the static transforms of any number of publishers."""
    profile = latched()
    profile.depth = 100  # per publisher, which may have published its frames one by one
    return profile
