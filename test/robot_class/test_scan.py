# SPDX-License-Identifier: Apache-2.0
"""Scans of a lidar: in the emulator's room, as LaserScan, and of another vehicle's lidar at a server."""

import math
from dataclasses import replace

import pytest
from builtin_interfaces.msg import Time
from sensor_msgs.msg import LaserScan

from drone_bridge.robot_class import BodyVelocity, Lidar, Robot, Udp
from drone_bridge.robot_class.scans import distances_of, laser_scan
from drone_bridge.robot_class.vehicle.body import EmulatedBody

STEP_S, INCREMENT = 0.02, math.radians(3)
LIDAR = Lidar(0.5, 2.4, 0.26, rays=100, angle_min=-1.0, increment=INCREMENT, mount=(0.2, 0.1, 0.3), yaw=0.4)


class Scanner(Robot):
    name, control, topics, lidar = "scanner", Udp(1), ("scan",), LIDAR
    max_speeds = {"x": 2.0, "yaw": 3.0}  # noqa: RUF012


def is_free(x, y):
    """Return whether a place in the room is outside of its walls and its box, by their corners in metres."""
    is_inside = -1.5 < x < 3.0 and -1.5 < y < 2.5 and not (x > 2.0 and y > 1.0)
    return is_inside and not (1.2 < x < 1.7 and -0.9 < y < -0.5)


def marched(pose, ray):
    """Go along a ray by millimetres until a wall is met."""
    x, y, heading = pose
    x, y = x + 0.2 * math.cos(heading) - 0.1 * math.sin(heading), y + 0.2 * math.sin(heading) + 0.1 * math.cos(heading)
    direction = heading + 0.4 - 1.0 + ray * INCREMENT
    steps = (mm / 1000 for mm in range(5000))
    return next(s for s in steps if not is_free(x + s * math.cos(direction), y + s * math.sin(direction)))


@pytest.mark.parametrize("turn", [0.0, 3.0])
def test_each_ray_ends_at_the_wall_that_it_met_while_the_robot_moved(turn):
    body = EmulatedBody(Scanner)
    body.x, body.y, body.heading, body.wanted = 0.3, 0.4, -2.0, BodyVelocity(0.3, turn=turn)
    poses, met = [], 0
    while body.telemetry().scan is None:
        body.step(STEP_S)
        poses.append((body.x, body.y, body.heading))
    for ray, found in enumerate(body.telemetry().scan):
        true = marched(poses[max(0, math.ceil(ray * 0.26 / 120 / STEP_S) - 1)], ray)
        met += math.isfinite(found)
        assert math.isinf(found) if not 0.5 <= true <= 2.4 else found == pytest.approx(true, abs=0.002), ray
    assert 50 < met < 100


def test_a_scan_has_the_times_angles_and_limits_that_nav2_and_slam_toolbox_need():
    scan = laser_scan(LIDAR, [math.inf, *[1.0] * 99], "laser", Time(sec=3))
    assert scan.angle_min == pytest.approx(-1.0)
    assert round((scan.angle_max - scan.angle_min) / scan.angle_increment) + 1 == len(scan.ranges)  # Karto's rule
    assert (scan.range_min, scan.range_max, scan.ranges[0]) == pytest.approx((0.5, 2.4, math.inf))
    assert (scan.scan_time, scan.time_increment) == pytest.approx((0.26, 0.26 / 120))
    first_s = scan.header.stamp.sec + scan.header.stamp.nanosec / 1e9
    assert first_s + 99 * scan.time_increment == pytest.approx(3.0)


@pytest.mark.parametrize("step", [0.25, -0.25, 1.0])
def test_a_server_reads_a_scan_of_other_angles_by_the_nearest_ray(step):
    """The wall is 2 m ahead in each direction, plus 1 mm for each degree; a ray right behind meets nothing."""
    number = round(360 / abs(step))
    degrees = [math.remainder(math.copysign(-180, step) + at * step, 360) for at in range(number)]
    ranges = [math.inf if abs(each) > 179 else 2.0 + each / 1000 for each in degrees]
    first = math.radians(math.copysign(-180, step))
    message = LaserScan(
        angle_min=first, angle_increment=math.radians(step), range_min=0.1, range_max=9.0, ranges=ranges
    )
    lidar = replace(LIDAR, rays=120, angle_min=0.0)
    found = distances_of(lidar, message)
    expected = [math.inf if at == 60 else 2.0 + math.remainder(3 * at, 360) / 1000 for at in range(120)]
    assert found == pytest.approx(expected, abs=0.0011)
    assert distances_of(lidar, LaserScan(ranges=[1.0])) is None


@pytest.mark.parametrize(
    ("topics", "lidar"),
    [((), LIDAR), (("scan",), None), (("scan",), Lidar(1.0, 1.0, 0.2)), (("scan",), Lidar(0, 5, 0))],
)
def test_a_lidar_that_can_t_be_is_refused(topics, lidar):
    with pytest.raises(ValueError, match="lidar"):
        type("Wrong", (Robot,), {"name": "wrong", "control": Udp(1), "topics": topics, "lidar": lidar})


def test_a_ray_between_the_last_and_the_first_one_of_a_whole_turn_is_read():
    scan = LaserScan(angle_min=-math.pi, angle_increment=math.radians(90), range_min=0.5, range_max=2.0)
    scan.ranges = [1.0, 1.25, 1.5, 1.75]
    lidar = replace(LIDAR, rays=3, angle_min=-math.pi - math.radians(50), increment=math.radians(40))
    assert distances_of(lidar, scan) == (1.75, 1.0, 1.0)
