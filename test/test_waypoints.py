# SPDX-License-Identifier: Apache-2.0
"""From waypoint to waypoint: the way alone, closed over a vehicle that does what it is told, without ROS."""

import math

import numpy as np
import pytest
from geometry_msgs.msg import Point, Quaternion
from nav_msgs.msg import Odometry

from drone_bridge.controllers.messages import read_pose
from drone_bridge.controllers.waypoints import Waypoint, WaypointParameters, Waypoints, WaypointState
from drone_bridge.motion.matrices import rotation_from_angles, rotation_from_vector

STEP_S = 0.05
BOX = ("x=3 y=0 z=-1.5 yaw=0", "x=3 y=2 z=-1.5", "x=0 y=2 z=-1.5 yaw=3", "x=0 y=0 z=-1.5")


class Vehicle:
    """Moves as it is told, a step late; a current may carry it along."""

    def __init__(
        self, *points, position=(0.0, 0.0, 0.0), angles=(0.0, 0.0, 0.0), current=(0.0, 0.0, 0.0), **parameters
    ):
        self.way = Waypoints(WaypointParameters(**parameters), tuple(map(Waypoint.read, points)))
        self.position = np.array(position)
        self.rotation = rotation_from_angles(*angles)
        self._current = np.array(current)
        self.now_s = 100.0
        self.path, self.decisions = [], []
        self._pending = None

    def swim(self, seconds, until=None):
        for _ in range(round(seconds / STEP_S)):
            decision = self.way.update(self.now_s, self.position.copy(), self.rotation)
            self.path.append(self.position.copy())
            self.decisions.append(decision)
            if until and until(decision):
                break
            acting, self._pending = self._pending, decision
            if acting:
                self.position += STEP_S * (self._current + self.rotation @ acting.velocity)
                self.rotation = self.rotation @ rotation_from_vector(STEP_S * np.array(acting.turn))
            self.now_s += STEP_S
        return self

    def swim_to_the_end(self):
        return self.swim(120, lambda decision: decision.state is WaypointState.DONE)

    @property
    def yaw(self):
        return math.atan2(self.rotation[1, 0], self.rotation[0, 0])

    @property
    def speeds(self):
        return np.linalg.norm(np.diff(self.path, axis=0), axis=1) / STEP_S


def away_from_line(path, start, end):
    direction = (np.array(end) - start) / np.linalg.norm(np.array(end) - start)
    offsets = np.array(path) - start
    return float(np.linalg.norm(offsets - np.outer(offsets @ direction, direction), axis=1).max())


def test_waypoints_are_read_as_people_write_them():
    assert Waypoint.read("x=2 y=-1.5  yaw=1e-1") == Waypoint(x=2.0, y=-1.5, yaw=0.1)
    assert str(Waypoint.read("z=-3 x=1.25")) == "x 1.25 z -3.00 m"
    assert str(Waypoint.read("y=0 yaw=1.5708")) == "y 0.00 m, yaw 90°"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "a waypoint is empty, and needs at least one of x="),
        ("  ", "a waypoint is empty"),
        ("x=1 x=2", "'x=1 x=2' has 'x=2', and consists of x=, y=, z= .m. and yaw= .rad., each once at most"),
        ("roll=1", "has 'roll=1', and consists of"),
        ("1 2 3", "has '1', and consists of"),
        ("x=one", "has 'x=one', and x has to be a finite number"),
        ("y=nan", "y has to be a finite number"),
        ("yaw=inf", "yaw has to be a finite number"),
        ("x", "x has to be a finite number"),
    ],
)
def test_an_invalid_waypoint_is_refused_with_a_sentence(text, sentence):
    with pytest.raises(ValueError, match=sentence):
        Waypoint.read(text)


def test_a_box_is_swum_to_its_end_within_the_limits():
    vehicle = Vehicle(*BOX, max_speed=0.8, max_climb_speed=0.3, max_turn_rate=0.4).swim_to_the_end()
    assert vehicle.decisions[-1].state is WaypointState.DONE
    assert vehicle.speeds.max() <= 0.8 + 1e-9
    assert vehicle.speeds.max() > 0.79
    assert abs(np.diff(vehicle.path, axis=0)[:, 2]).max() / STEP_S <= 0.3 + 1e-9
    assert max(abs(decision.turn[2]) for decision in vehicle.decisions) <= 0.4 + 1e-9
    reached = [np.linalg.norm(np.array(vehicle.path) - corner, axis=1).min() for corner in corners(BOX)]
    assert max(reached) < 0.3


def corners(points):
    return [Waypoint.read(point).place(np.zeros(3)) for point in points]


@pytest.mark.parametrize("angles", [(0.0, 0.0, 0.0), (0.0, 0.0, 2.5), (0.3, -0.2, -1.0)])
def test_a_path_is_straight_even_while_it_turns_and_climbs_slowly(angles):
    vehicle = Vehicle("x=3 y=4 z=2 yaw=-2", angles=angles, max_climb_speed=0.1).swim_to_the_end()
    assert vehicle.decisions[-1].state is WaypointState.DONE
    assert away_from_line(vehicle.path, (0, 0, 0), (3, 4, 2)) < 0.04


def test_the_last_waypoint_is_held_for_good():
    vehicle = Vehicle("x=1").swim(20)
    assert vehicle.decisions[-1].state is WaypointState.DONE
    assert vehicle.position[0] == pytest.approx(1.0, abs=0.01)
    vehicle.position[0] = 3.0  # carried off
    vehicle.swim(20)
    assert vehicle.position[0] == pytest.approx(1.0, abs=0.01)
    assert vehicle.decisions[-1].state is WaypointState.DONE


def test_a_gap_in_the_odometry_begins_another_line():
    vehicle = Vehicle("x=10 y=0").swim(2)
    vehicle.position = np.array([1.0, 5.0, 0.0])
    vehicle.way.interrupted()
    vehicle.path.clear()
    vehicle.swim_to_the_end()
    assert away_from_line(vehicle.path, (1, 5, 0), (10, 0, 0)) < 0.05


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("orientation", Quaternion(w=0.0), r"the orientation in odom is \(.*\), and has to have length 1"),
        ("orientation", Quaternion(w=1e200), r"the orientation in odom is \(.*1e\+200\), and has to have length 1"),
        ("position", Point(x=math.inf), r"the position in odom is \(inf, .*\), and has to be within 1e\+09 m"),
        ("position", Point(x=-1e308), r"the position in odom is \(-1e\+308, .*\), and has to be within 1e\+09 m"),
    ],
)
def test_odometry_that_no_vehicle_can_have_is_refused_with_a_sentence(field, value, sentence):
    odometry = Odometry()
    odometry.pose.pose.orientation.w = 1.0
    assert not read_pose(odometry, "odom")[0].any()
    setattr(odometry.pose.pose, field, value)
    with pytest.raises(ValueError, match=sentence):
        read_pose(odometry, "odom")
