# SPDX-License-Identifier: Apache-2.0
"""Waypoints: commands and calls, and their times, with a vehicle that follows them."""

import math

import numpy as np
import pytest
from geometry_msgs.msg import Point, Quaternion
from nav_msgs.msg import Odometry

from drone_bridge.controllers.goals.guides import DriveGuide, FlightGuide, GoalParameters
from drone_bridge.controllers.messages import read_pose
from drone_bridge.controllers.vehicle_pose import VehiclePose
from drone_bridge.controllers.waypoints.waypoint import Waypoint
from drone_bridge.controllers.waypoints.waypoints import WaypointParameters, Waypoints, WaypointState
from drone_bridge.motion.body_velocity import STILL, BodyVelocity
from drone_bridge.motion.matrices import rotation_from_angles, rotation_from_vector

STEP_S = 0.05
BOX = ("x=3 y=0 z=-1.5 yaw=0", "x=3 y=2 z=-1.5", "x=0 y=2 z=-1.5 yaw=3", "x=0 y=0 z=-1.5")
AT_START = VehiclePose(np.zeros(3), rotation_from_angles(0.0, 0.0, 0.0))


class Vehicle:
    """Vehicle that follows commands with a delay of one step, in an optional current."""

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
            decision = self.way.update(self.now_s, VehiclePose(self.position.copy(), self.rotation))
            self.path.append(self.position.copy())
            self.decisions.append(decision)
            if until and until(decision):
                break
            acting, self._pending = self._pending, decision
            if acting:
                self.position += STEP_S * (self._current + self.rotation @ acting.velocity.linear)
                self.rotation = self.rotation @ rotation_from_vector(STEP_S * np.array(acting.velocity.angular))
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
    assert str(Waypoint.read("y=0 yaw=1.5708 for=3")) == "y 0.00 m, yaw 90°, for 3 s"
    assert Waypoint.read("left=-0.3 turn=0.5 for=2") == Waypoint(left=-0.3, turn=0.5, duration_s=2.0)
    assert str(Waypoint.read("left=-0.3 turn=0.5 for=2")) == "left -0.3 turn 0.5, for 2 s"
    assert Waypoint.read("for=5 takeoff") == Waypoint(call="takeoff", duration_s=5.0)
    assert str(Waypoint.read("land")) == "land"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "a waypoint is empty"),
        ("  ", "a waypoint is empty"),
        ("x=1 x=2", "'x=1 x=2' has more than one x"),
        ("takeoff land", "'takeoff land' has more than one call"),
        ("x=1 forward=1 for=2", "'x=1 forward=1 for=2' is more than one of a place, a leg and a call"),
        ("land z=0", "'land z=0' is more than one"),
        ("forward=1", "'forward=1' has no duration"),
        ("for=-1", "'for=-1', but for= must be from 0 to 3600 s"),
        ("for=inf", "for must be a finite number"),
        ("call=land", "has 'call=land', but must consist of x="),
        ("roll=1", "has 'roll=1', but must consist of"),
        ("1 2 3", "has '1', but must consist of"),
        ("x=one", "x must be a finite number"),
        ("y=nan", "y must be a finite number"),
        ("yaw=90", "'yaw=90', but yaw= must be from -6.28319 to 6.28319 rad"),
        ("yaw=inf", "yaw must be a finite number"),
        ("x", "x must be a finite number"),
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
    assert max(abs(decision.velocity.turn) for decision in vehicle.decisions) <= 0.4 + 1e-9
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


STANDING = 10_000  # poses of a recorded path, for which its vehicle stood
RECORDED = [Waypoint(0.001 * (each % 2), 0.0, 0.0, 0.0) for each in range(STANDING)]


@pytest.mark.parametrize("guide", [FlightGuide, DriveGuide])
def test_places_within_the_tolerance_are_passed_at_once(guide):
    goal = GoalParameters()
    step = guide(goal, goal.waypoints(0.0, 0.0), [*RECORDED, Waypoint(2.0, 0.0, 0.0, 0.0)]).step(0.0, AT_START)
    assert step.velocity.forward > 0.5
    assert not step.done


@pytest.mark.parametrize(("goal_x", "way"), [(-0.2, -1), (-2.0, 0)])
def test_a_rover_that_has_overshot_its_goal_backs_up(goal_x, way):
    goal = GoalParameters()
    step = DriveGuide(goal, goal.waypoints(0.0, 0.0), [Waypoint(goal_x, 0.0, 0.0, 0.0)]).step(0.0, AT_START)
    assert np.sign(step.velocity.forward) == way
    assert bool(step.velocity.turn) is not bool(way)


@pytest.mark.parametrize("loops", [False, True])
def test_a_tour_within_the_tolerance_is_no_endless_loop(loops):
    way = Waypoints(WaypointParameters(loop=loops), tuple(RECORDED))
    for _ in range(3):
        assert math.hypot(*way.update(0.0, AT_START).velocity.linear) < 0.01


def test_each_place_keeps_its_stay():
    way = Waypoints(WaypointParameters(), tuple(map(Waypoint.read, ("x=0", "y=0 for=1", "z=0", "x=2"))))
    index = []
    for now_s in (0.0, 0.9, 1.0):
        way.update(now_s, AT_START)
        index.append(way.index)
    assert index == [1, 1, 3]


def test_a_gap_in_the_odometry_begins_another_line():
    vehicle = Vehicle("x=10 y=0", odometry_timeout=0.3).swim(2)
    vehicle.position = np.array([1.0, 5.0, 0.0])
    stopped = vehicle.way.update(vehicle.now_s, None)
    assert (stopped.state, stopped.reason) == (WaypointState.STOPPED, "no odometry for 0.3 s")
    assert stopped.velocity == STILL
    vehicle.path.clear()
    vehicle.swim_to_the_end()
    assert away_from_line(vehicle.path, (1, 5, 0), (10, 0, 0)) < 0.05


class Drone:
    """Drone without odometry that answers calls after a while, and records decisions: calls, velocities, or None."""

    ANSWER_S = 0.6

    def __init__(self, *points, **parameters):
        self.way = Waypoints(WaypointParameters(**parameters), tuple(map(Waypoint.read, points)))
        self.is_flying = False
        self.obeys = True
        self.refuses = {}  # service: how often
        self.now_s = 100.0
        self.log = []
        self._answer = None  # when and for what

    def fly(self, seconds=100.0):
        for _ in range(round(seconds / STEP_S)):
            if self._answer and self.now_s >= self._answer[0]:
                (_, call), self._answer = self._answer, None
                left = self.refuses.get(call, 0)
                self.refuses[call] = max(0, left - 1)
                if not left and self.obeys:
                    self.is_flying = call == "takeoff"
                self.way.answered(self.now_s, not left, "not now" if left else "done")
            self.last = self.way.update(self.now_s, None, self.is_flying)
            done = self.last.call or (self.last.velocity if self.last.commands else None)
            if self.last.call:
                assert self._answer is None, "a call before the answer to the one before"
                assert not self.last.commands
                self._answer = self.now_s + self.ANSWER_S, self.last.call
            if self.last.call or not self.log or self.log[-1] != done:
                self.log.append(done)
            if self.last.state in (WaypointState.DONE, WaypointState.FAILED) and done is None:
                break
            self.now_s += STEP_S
        return self

    @property
    def end(self):
        return self.last.state.value, self.last.reason


FLIGHT = ("takeoff for=2", "forward=0.2 for=1", "for=0.5", "left=-0.2 turn=0.1 for=1", "land")
AHEAD, ASIDE = BodyVelocity(forward=0.2), BodyVelocity(left=-0.2, turn=0.1)


def test_a_flight_by_the_clock_needs_no_odometry_and_stops_before_it_lands():
    drone = Drone(*FLIGHT).fly()
    assert drone.log == ["takeoff", None, AHEAD, STILL, ASIDE, STILL, "land", None]
    assert drone.end == ("done", "after waypoint 5 of 5: land")
    assert 5.7 <= drone.now_s - 100.0 < 6.3  # two answers, four times, and steps between them


def test_the_last_timed_leg_ends_with_zero_and_then_without_commands():
    drone = Drone("forward=0.2 for=1").fly()
    assert drone.log == [AHEAD, STILL, None]
    assert drone.end == ("done", "after waypoint 1 of 1: forward 0.2, for 1 s")


def test_a_step_back_in_time_lengthens_a_leg_at_most_once():
    drone = Drone("forward=0.2 for=1").fly(0.5)
    drone.now_s = 3.0
    assert drone.fly().now_s < 4.2


def test_refused_calls_are_repeated():
    drone = Drone(*FLIGHT)
    drone.refuses = {"takeoff": 2, "land": 1}
    assert drone.fly().end[0] == "done"
    assert [entry for entry in drone.log if isinstance(entry, str)] == ["takeoff"] * 3 + ["land"] * 2


@pytest.mark.parametrize("call", ["takeoff", "land"])
def test_a_permanently_refused_call_ends_the_tour_and_all_commands(call):
    drone = Drone(*FLIGHT)
    drone.refuses = {call: 100}
    assert drone.fly().end == ("failed", f"{call} was refused: not now")
    assert drone.log[-2:] == [call, None]
    assert (AHEAD in drone.log) == (call == "land")


@pytest.mark.parametrize("is_flying", [True, None])
def test_a_flight_is_not_done_until_the_drone_is_known_to_be_down(is_flying):
    drone = Drone(*FLIGHT).fly(5.0)
    drone.is_flying, drone.obeys = is_flying, False
    end, reason = drone.fly().end
    assert end == "failed"
    assert "within 30 s of land" in reason


def test_nothing_is_commanded_to_a_drone_that_has_not_taken_off():
    drone = Drone(*FLIGHT)
    drone.obeys = False
    end, reason = drone.fly().end
    assert end == "failed"
    assert "within 30 s of takeoff" in reason
    assert drone.log == ["takeoff", None]


def test_a_lost_bridge_ends_the_tour():
    drone = Drone(*FLIGHT).fly(3.0)
    drone.way.give_up("the bridge is gone")
    assert drone.fly().end == ("failed", "the bridge is gone")
    assert drone.log[-2:] == [AHEAD, None]


def test_a_tour_that_needs_odometry_waits_for_it_before_takeoff():
    drone = Drone("takeoff", "x=1 y=0", "land").fly(5.0)
    assert (drone.end, drone.log) == (("waiting", "for odometry"), [None])


def test_legs_are_within_the_limits():
    for leg in ("forward=0.4 left=0.4 for=1", "up=0.4 for=1", "turn=-0.6 for=1"):
        with pytest.raises(ValueError, match="exceeds max_speed, max_climb_speed or max_turn_rate"):
            Drone(leg, max_climb_speed=0.3)


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("orientation", Quaternion(w=0.0), r"the orientation in odom is \(.*\) but must have length 1"),
        ("orientation", Quaternion(w=1e200), r"the orientation in odom is \(.*1e\+200\) but must have length 1"),
        ("position", Point(x=math.inf), r"the position in odom is \(inf, .*\) but must be within 1e\+09 m"),
        ("position", Point(x=-1e308), r"the position in odom is \(-1e\+308, .*\) but must be within 1e\+09 m"),
    ],
)
def test_odometry_that_no_vehicle_can_have_is_refused_with_a_sentence(field, value, sentence):
    odometry = Odometry()
    odometry.pose.pose.orientation.w = 1.0
    assert not read_pose(odometry, "odom")[0].any()
    setattr(odometry.pose.pose, field, value)
    with pytest.raises(ValueError, match=sentence):
        read_pose(odometry, "odom")
