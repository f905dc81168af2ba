# SPDX-License-Identifier: Apache-2.0
"""laser_scan: a scan of a Robot's lidar as Nav2 and slam_toolbox need it, and back from a scan of any lidar."""

import math
from array import array
from collections.abc import Sequence

from builtin_interfaces.msg import Time
from sensor_msgs.msg import LaserScan

from drone_bridge.robot_class.transports import Lidar
from drone_bridge.ros.time import NANOSECONDS, nanoseconds_of, time_from_nanoseconds


def laser_scan(lidar: Lidar, distances: Sequence[float], frame: str, stamp: Time) -> LaserScan:
    """Return a scan whose last ray is of a stamp. The stamp of a LaserScan is that of its first ray.

    slam_toolbox drops a scan unless its number of rays is (angle_max - angle_min) / angle_increment + 1.
    """
    per_ray_s = lidar.scan_s * lidar.increment / math.tau
    message = LaserScan(angle_min=lidar.angle_min, angle_max=lidar.angle_min + (lidar.rays - 1) * lidar.increment)
    message.angle_increment, message.time_increment, message.scan_time = lidar.increment, per_ray_s, lidar.scan_s
    message.range_min, message.range_max, message.ranges = lidar.range_min, lidar.range_max, array("f", distances)
    first_ns = nanoseconds_of(stamp) - round((lidar.rays - 1) * per_ray_s * NANOSECONDS)
    message.header.frame_id, message.header.stamp = frame, time_from_nanoseconds(max(0, first_ns))
    return message


def distances_of(lidar: Lidar, message: LaserScan) -> tuple[float, ...] | None:
    """Return the distances along a lidar's rays in a scan of any: of its nearest ray, within its reach, else inf.

    None for a scan without angles. Both look in the same direction at the angle 0.
    """
    first, step, ranges = message.angle_min, message.angle_increment, message.ranges
    if not (math.isfinite(first) and math.isfinite(step) and step and len(ranges)):
        return None
    of_turn = math.tau / abs(step)
    found = []
    for number in range(lidar.rays):
        at = round((lidar.angle_min + number * lidar.increment - first) / step % of_turn)
        at = 0 if at == round(of_turn) else at  # the ray before the first one is as near
        is_hit = at < len(ranges) and message.range_min <= ranges[at] <= message.range_max
        found.append(ranges[at] if is_hit else math.inf)
    return tuple(found)
