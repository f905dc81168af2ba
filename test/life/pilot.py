# SPDX-License-Identifier: Apache-2.0
"""Pilot: a program of the user that sends goals to the real controller, and the truth about their outcomes."""

from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Path
from virtual_ros import ActionGoal

from drone_bridge.action import FollowPath, GoTo, Land, TakeOff

#: Time within which each goal has an outcome, s, and for which a controller still commands after its client has left.
LONGEST_S, LEFT_S, IMPATIENT_S = 180.0, 3.0, 40.0
#: Time of a hold within which a goal ends, and that of a landing, s.
HELD_S, LONG_LANDING_S = 6.0, 10.0


class Pilot:
    """Client of the actions, one goal at a time."""

    def __init__(self, home):
        self._home, self._life, self._acts, self._rng = home, home.life, home.acts, home.acts.rng
        #: Place of the goal that was reached and not left, in odom.
        self.reached = None
        #: Times after which it may cancel a goal, and send it again, s.
        self.cancels_s = LONGEST_S, LONGEST_S, LONGEST_S, 5.0
        self.repeats_s = LONGEST_S, 4.0, 4.0, 10.0

    def follow(self, *goals):
        """Send goals one after another, until one fails, and leave. Return whether all have succeeded."""
        intent, graph = self._home.intent, self._home.graph
        while intent.is_commanded or intent.is_goal_open:
            yield 0.5
        intent.is_goal_open, graph.action_clients = True, 1
        is_success = True
        for name, fields in goals:
            is_success = yield from self._follow_one(name, fields)
            if not is_success:
                break
            yield self._rng.uniform(0.0, 5.0)
        graph.action_clients = 0
        yield LEFT_S
        intent.is_goal_open, self._home.asked_s = False, self._life.now_s
        return is_success

    def _follow_one(self, name, fields):
        self._acts.say(f"   goal {name} {fields}")
        server = self._home.graph.actions.get(f"/{name}")
        if not server:
            yield 1.0
            return False
        goal, before = ActionGoal(request_of(name, fields)), self._home.vehicle.height
        server.send(goal)
        is_fair, runs = self._is_fair(), self._home.bridge_runs if self._home.bridge_up_s > 5.0 else 0
        began_s = sent_s = self._life.now_s
        cancels_s = self._rng.choice(self.cancels_s)
        repeats_s = again_s = self._rng.choice(self.repeats_s)
        while goal.result is None:
            if self._life.now_s - began_s > LONGEST_S:
                self._life.fault("goals end", f"{name} {fields} has no outcome after {LONGEST_S:g} s: {goal.feedback}")
            held_s = min(self._home.intent.held_for_s, self._life.now_s - sent_s)
            if name != "land" and self._home.invariants.is_calm and held_s > HELD_S:
                self._life.fault("goals end", f"{name} {fields} goes on although the vehicle is held")
            if IMPATIENT_S > self._life.now_s - began_s > again_s:  # its client sends the same goal again
                self._acts.say(f"   {name} again")
                goal, again_s = ActionGoal(request_of(name, fields)), again_s + repeats_s
                server.send(goal)
                sent_s = self._life.now_s
            goal.is_cancel_requested = self._life.now_s - began_s > cancels_s
            yield 0.05
        message = goal.result.message
        self._acts.say(f"   {name}: {goal.status}: {message}")
        self._home.invariants.checks["goals are true"] += 1
        is_same_bridge = name != "land" or self._home.bridge_up_s > LONG_LANDING_S  # a new one knows less of the ground
        if goal.status == "succeeded" and is_same_bridge and (why := self._home.vehicle.untrue(name, fields, before)):
            self._life.fault("goals are true", f"{name} {fields}: {message!r}, but {why}")
        is_success = goal.status == "succeeded"
        goes = name in ("go_to", "follow_path")
        if is_success and goes and runs not in (0, self._home.bridge_runs):
            self._life.fault("goals are true", f"{name} {fields}: {message!r}, but its bridge was started anew")
        vehicle = self._home.vehicle
        calm_s = self._home.nature.calm_s - (self._life.now_s - began_s)
        is_calm = calm_s > max(vehicle.RECONNECTS_S, vehicle.ANSWERS_S)
        is_calm = is_calm and self._home.intent.held is False and not goal.is_cancel_requested
        if (is_fair if name == "take_off" else goes and self._is_free()) and is_calm and not is_success:
            self._life.fault("goals succeed", f"{name} {fields}: {message!r}")
        self.reached = fields["to"][:2] if is_success and goes else None
        return is_success

    def _is_fair(self):
        """Return whether a drone may take off."""
        vehicle = self._home.vehicle
        has_all = not {"battery", "navdata"} & {*vehicle.conditions()}
        is_able = vehicle.is_drone and vehicle.phase != "emergency" and has_all
        # During a request, such as emergency, it refuses.
        is_free = self._home.intent.held is False and not self._home.requests
        return is_able and vehicle.is_known_to_stand and is_free

    def _is_free(self):
        """Return whether a rover may go anywhere, having no fence."""
        return not self._home.vehicle.is_drone and not self._home.vehicle.fence_m


def request_of(name, fields):
    if name == "follow_path":
        return FollowPath.Goal(path=Path(poses=[_pose(place) for place in fields["through"]]))
    if name != "go_to":
        return {"take_off": TakeOff, "land": Land}[name].Goal(**fields)
    return GoTo.Goal(pose=_pose(fields["to"]))


def _pose(place):
    pose = PoseStamped()
    pose.pose.position.x, pose.pose.position.y, pose.pose.position.z = map(float, place)
    return pose
