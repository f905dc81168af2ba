# SPDX-License-Identifier: Apache-2.0
"""Bumpers: an emulated robot drives into a wall, and its cloud is read as an obstacle layer of Nav2 does."""

import math

import numpy as np
import pytest
from builtin_interfaces.msg import Time

from drone_bridge.robot_class import BodyVelocity
from drone_bridge.robot_class.connection import StatePacket
from drone_bridge.robot_class.contacts import points_of
from drone_bridge.robot_class.topics import RobotClassTranslation, make_rows
from drone_bridge.robot_class.vehicle.body import EmulatedBody
from drone_bridge.robots.create2 import NUMBERS, Create2
from drone_bridge.robots.kobuki import Kobuki
from drone_bridge.ros.topics.frames import DroneFrameNames

#: Radius of both robots' footprints, and the heights of obstacles that are marked, m.
FOOTPRINT_M, MARKED_M = 0.18, (0.0, 2.0)


def cloud(robot, body):
    """Return the cloud of a bridge, by a report over the wire."""
    end, row = robot(), next(row for row in make_rows(robot) if row.name == "bumper/points")
    if robot is Create2:
        end.decode_command(bytes([148, len(NUMBERS), *NUMBERS]))
    told = robot().decode_report(end.encode_report(body.telemetry()))
    return row.to_ros(RobotClassTranslation(DroneFrameNames(), ""), StatePacket(b"", told), Time(sec=3))


@pytest.mark.parametrize("robot", [Create2, Kobuki])
@pytest.mark.parametrize(("heading", "bearing"), [(0.0, 0.0), (math.radians(70), -70.0), (math.radians(-70), 70.0)])
def test_a_robot_at_a_wall_marks_it_in_its_direction_until_it_backs_up(robot, heading, bearing):
    body = EmulatedBody(robot)
    body.x, body.heading, body.has_walls, body.wanted = 2.5, heading, True, BodyVelocity(0.3)
    assert cloud(robot, body).width == 0, "nothing is marked, and the last cloud is forgotten"
    for _ in range(200):
        body.step(0.02)
    message = cloud(robot, body)
    assert (message.header.frame_id, message.header.stamp.sec) == ("base_link", 3)
    names = [(each.name, each.offset, each.datatype) for each in message.fields]
    assert names == [("x", 0, 7), ("y", 4, 7), ("z", 8, 7)]
    ((x, y, z),) = np.frombuffer(bytes(message.data), "<f4").reshape(message.width, 3)
    assert math.hypot(x, y) > FOOTPRINT_M
    assert MARKED_M[0] < z < MARKED_M[1]
    assert math.degrees(math.atan2(y, x)) == pytest.approx(bearing, abs=1.0)
    at_wall = body.x + x * math.cos(body.heading) - y * math.sin(body.heading)
    assert at_wall == pytest.approx(3.0, abs=0.05), "metres, of the first wall ahead"
    assert points_of(message)[0] == pytest.approx((x, y, z))
    body.wanted = BodyVelocity(-0.3)
    for _ in range(50):
        body.step(0.02)
    assert cloud(robot, body).width == 0


def test_a_cloud_of_others_is_read_where_it_has_points():
    message = cloud(Kobuki, EmulatedBody(Kobuki))
    message.width, message.data = 2, np.array([[1, 2, 3], [np.nan, 0, 0]], "<f4").tobytes()
    assert points_of(message) == ((1.0, 2.0, 3.0),)
    message.point_step = 8
    assert points_of(message) == ()
