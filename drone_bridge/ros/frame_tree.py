# SPDX-License-Identifier: Apache-2.0
"""FrameTree: the newest transforms of tf, and where frames are as seen from others. There is no wheel of tf2_ros."""

import math

from geometry_msgs.msg import TransformStamped
from rclpy.node import Node
from rclpy.qos import QoSProfile
from tf2_msgs.msg import TFMessage

from drone_bridge.motion.quaternions import IDENTITY, Quaternion, inverse, multiplied, rotated, unit_quaternion
from drone_bridge.ros.qos import latched
from drone_bridge.ros.subscriptions import subscribe

Point = tuple[float, float, float]
Placed = tuple[Point, Quaternion]  # m, in the frame that it is seen from

_MAX_FRAMES = 10_000
_LONGEST_CHAIN = 32
# A rotation whose length is further from 1 is none.
_UNIT_TOLERANCE = 0.1


class FrameTree:
    """Hears the tf of a node, from when it is first used. For the executor."""

    def __init__(self, node: Node) -> None:
        self._node: Node | None = node  # until it is listening
        self._by_child: dict[str, TransformStamped] = {}

    def seen_from(self, base: str, frame: str) -> Placed | None:
        """Return where a frame is as seen from another one, None while tf does not have that."""
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
        """Note transforms; those with a NaN or without a rotation say nothing."""
        for each in message.transforms:
            move = each.transform.translation
            is_place = all(map(math.isfinite, (move.x, move.y, move.z)))
            is_turn = unit_quaternion(each.transform.rotation, _UNIT_TOLERANCE) is not None
            has_room = len(self._by_child) < _MAX_FRAMES or each.child_frame_id in self._by_child
            if is_place and is_turn and has_room:
                self._by_child[each.child_frame_id] = each

    def _ancestors(self, frame: str) -> dict[str, Placed]:
        """Return the frame and all above it, nearest first, each with where the frame is in it."""
        found: dict[str, Placed] = {frame: ((0.0, 0.0, 0.0), IDENTITY)}
        placed = found[frame]
        while (above := self._by_child.get(frame)) and len(found) < _LONGEST_CHAIN:
            move, turn = above.transform.translation, unit_quaternion(above.transform.rotation, _UNIT_TOLERANCE)
            assert turn
            x, y, z = rotated(turn, *placed[0])
            placed = (x + move.x, y + move.y, z + move.z), multiplied(turn, placed[1])
            frame = above.header.frame_id
            if frame in found:  # a ring
                break
            found[frame] = placed
        return found


def all_static() -> QoSProfile:
    """Return what hears all static transforms, of any number of publishers."""
    profile = latched()
    profile.depth = 100  # of each publisher, which may have published its frames one by one
    return profile
