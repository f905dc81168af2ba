# SPDX-License-Identifier: Apache-2.0
"""point_cloud: points of bumpers and cliffs as Nav2's costmap marks them, and back. Without a contact it is empty."""

import math
import struct
from array import array
from collections.abc import Sequence
from itertools import chain

from builtin_interfaces.msg import Time
from sensor_msgs.msg import PointCloud2, PointField

from drone_bridge.motion.vectors import Triple

#: Most points that are read.
MOST = 64


def point_cloud(points: Sequence[Triple], frame: str, stamp: Time) -> PointCloud2:
    """Return a cloud of points, m, as x, y and z of float32. An empty one ends the marks of the cloud before it."""
    message = PointCloud2(height=1, width=len(points), point_step=12, row_step=12 * len(points), is_dense=True)
    message.header.frame_id, message.header.stamp = frame, stamp
    places = zip("xyz", (0, 4, 8), strict=True)
    message.fields = [PointField(name=n, offset=at, datatype=PointField.FLOAT32, count=1) for n, at in places]
    message.data = array("B", struct.pack(f"<{3 * len(points)}f", *chain.from_iterable(points)))
    return message


def points_of(message: PointCloud2) -> tuple[Triple, ...]:
    """Return the finite points of a cloud, at most MOST; none if it has no x, y and z of float32."""
    at = {each.name: each.offset for each in message.fields if each.datatype == PointField.FLOAT32}
    order, data, step = ">" if message.is_bigendian else "<", bytes(message.data), message.point_step
    if not {*"xyz"} <= {*at} or not 0 < max(at[axis] for axis in "xyz") + 4 <= step:
        return ()
    starts = range(0, min(len(data) - step + 1, MOST * step), step)
    found = (tuple(struct.unpack_from(f"{order}f", data, start + at[axis])[0] for axis in "xyz") for start in starts)
    return tuple((x, y, z) for x, y, z in found if all(map(math.isfinite, (x, y, z))))
