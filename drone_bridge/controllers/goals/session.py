# SPDX-License-Identifier: Apache-2.0
"""GoalSession: decides which goal is followed, and how each ends. Pure, with the time as an input.

Every goal is accepted. One that can't be followed is aborted, since a rejected goal can't carry a reason. Once a goal
can be followed, it replaces the current one. A reached goal is held until another one begins, but for a landing, and a
takeoff by the vehicle's service.

At each step, the first row of ENDINGS that applies ends a goal, with a code:

| it ends if | waits | begins | followed | held |
|---|---|---|---|---|
| its client cancels it | CANCELED | CANCELED | CANCELED | |
| a prerequisite is missing for `patience` | NO_ODOMETRY | | | |
| a pose is outside of the fence | | INVALID | | |
| no client is there any more | | | | NONE |
| the pose of the odometry began again, and it is no landing | | | POSE_RESTARTED | POSE_RESTARTED |
| odometry is silent for `patience` | | NO_ODOMETRY | NO_ODOMETRY | NO_ODOMETRY |
| the vehicle's place is doubted, and it is no landing | | NO_ODOMETRY | NO_ODOMETRY | NO_ODOMETRY |
| the vehicle is held, and it needs commands | | HELD | HELD | HELD |
| a person is at the helm, and it needs commands | | HELD | HELD | HELD |
| a program commands the vehicle | | | | NONE |
| the drone is on the ground, can take off, and should be in the air | | REFUSED | REFUSED | REFUSED |

While a program commands the vehicle, a followed goal, but no landing, waits: its commands are refused. It goes on
afterwards, or ends by `ProgressWatch`.

Besides, a pending goal ends with REPLACED when another arrives, a followed one when another begins, with NO_PROGRESS by
`ProgressWatch`, and with the code of a guide that fails.
"""

import functools
import math
from collections.abc import Callable, Set
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from drone_bridge.controllers.goals import guides
from drone_bridge.controllers.goals.guides import GoalError, GoalFailedError, GoalParameters, Guide, GuideStep, Service
from drone_bridge.controllers.goals.requests import LAND, ORIGIN, TAKE_OFF, GoalRequest
from drone_bridge.controllers.goals.watches import ProgressWatch, VehicleWatch
from drone_bridge.controllers.waypoints.waypoint import Waypoint
from drone_bridge.motion.quaternions import Placed
from drone_bridge.session.obstacles import Obstacle

#: Duration of zero commands after a goal has ended early.
STOPPING_S = 0.5
STILL = GuideStep()
#: How long a reached goal is held after the last client of the actions has gone, s.
_LEFT_S, _LOOK_S = 1.0, 0.25  # and the period of looking for clients
_RESTARTED = "The vehicle's own pose began again, by a reset of its board or with a new bridge: its place is uncertain."
_DOUBTED = "The vehicle's place is unknown: its bridge doubts the reported motion, and its diagnostics say why."


class GoalStage(Enum):
    """Stage of a goal."""

    WAITS = "pending, until its prerequisites are there"
    BEGINS = "its prerequisites are there: it may replace the current goal"
    FOLLOWED = "the current goal"
    HELD = "reached, and its place is held"


@dataclass(eq=False)
class Goal:
    """Goal, from its arrival until it is no longer held."""

    request: GoalRequest
    began_s: float
    #: Gets its code and a message.
    end: Callable[[GoalError, str], object]
    #: Returns whether any program is there for which it is held.
    has_client: Callable[[], bool]
    is_canceled: Callable[[], bool] = lambda: False
    report: Callable[[GuideStep], object] = lambda step: None
    # For the session.
    stage: GoalStage = GoalStage.WAITS
    guide: Guide = field(init=False)  # unless it waits
    missing: str = ""  # prerequisite, while it waits
    outside: str = ""  # sentence about a pose outside of the fence
    attended_s: float = -math.inf  # when it was followed, or a program was there
    looked_s: float = -math.inf  # for such programs

    @property
    def lands(self) -> bool:
        """Whether it is a landing, which needs no known place."""
        return self.request.name == LAND

    @property
    def flies(self) -> bool:
        """Whether it is a flight to poses, or a takeoff that began in the air, as at the end of a landing."""
        begins_up = isinstance(self.guide, guides.TakeOffGuide) and not self.guide.calls
        return isinstance(self.guide, guides.FlightGuide) or begins_up

    def is_left(self, now_s: float) -> bool:
        """Return whether no program and no page is there any more for a goal that was reached, and is held.

        A held goal is no command: a drone that nobody flies has to land (`limits.land_unattended`).
        """
        if now_s >= self.looked_s + _LOOK_S:
            self.looked_s = now_s
            if self.has_client():
                self.attended_s = now_s
        return now_s - self.attended_s > _LEFT_S


class EndEvent(Enum):
    """Event that ends a goal: its text in the table, and the message to the client."""

    CANCELED = "its client cancels it", "Canceled."
    LATE = (
        "a prerequisite is missing for `patience`",
        "No {goal.missing} was received within {patience:g} s: the bridge's diagnostics say why.",
    )
    OUTSIDE = "a pose is outside of the fence", "{goal.outside}"
    LEFT = "no client is there any more", "the client of the last goal has gone"
    RESTARTED = "the pose of the odometry began again, and it is no landing", _RESTARTED
    SILENT = (
        "odometry is silent for `patience`",
        "No odometry was received for {patience:g} s: the bridge's diagnostics say why.",
    )
    DOUBTED = "the vehicle's place is doubted, and it is no landing", _DOUBTED
    HELD = "the vehicle is held, and it needs commands", f"The vehicle is held: {Obstacle.HOLD.remedy()}."
    HELM = "a person is at the helm, and it needs commands", Obstacle.HELM.sentence()
    OVERRULED = "a program commands the vehicle", "the vehicle follows {now.overruled_by}"
    GROUNDED = "the drone is on the ground, can take off, and should be in the air", Obstacle.GROUNDED.sentence()


class Ending(NamedTuple):
    """Row of ENDINGS: an event, its code, the stages in which it ends a goal, and the test for it."""

    event: EndEvent
    code: GoalError
    stages: Set[GoalStage]
    happens: Callable[[Goal, VehicleWatch], object]


_WAITS, _BEGINS, _FOLLOWED, _HELD = ({stage} for stage in GoalStage)
_CURRENT = _FOLLOWED | _HELD
_GUIDED = _BEGINS | _CURRENT
#: What ends a goal: the first row that applies.
ENDINGS = (
    Ending(EndEvent.CANCELED, GoalError.CANCELED, _WAITS | _BEGINS | _FOLLOWED, lambda goal, _: goal.is_canceled()),
    Ending(EndEvent.LATE, GoalError.NO_ODOMETRY, _WAITS, lambda goal, now: now.now_s - goal.began_s > now.patience_s),
    Ending(EndEvent.OUTSIDE, GoalError.INVALID, _BEGINS, lambda goal, _: goal.outside),
    Ending(EndEvent.LEFT, GoalError.NONE, _HELD, lambda goal, now: goal.is_left(now.now_s)),
    Ending(EndEvent.RESTARTED, GoalError.POSE_RESTARTED, _CURRENT, lambda goal, now: now.restarted and not goal.lands),
    Ending(EndEvent.SILENT, GoalError.NO_ODOMETRY, _GUIDED, lambda _, now: now.silent_s > now.patience_s),
    Ending(EndEvent.DOUBTED, GoalError.NO_ODOMETRY, _GUIDED, lambda goal, now: now.is_doubted and not goal.lands),
    Ending(EndEvent.HELD, GoalError.HELD, _GUIDED, lambda goal, now: now.is_held and goal.guide.steers),
    Ending(EndEvent.HELM, GoalError.HELD, _GUIDED, lambda goal, now: now.is_steered and goal.guide.steers),
    Ending(EndEvent.OVERRULED, GoalError.NONE, _HELD, lambda _, now: now.overruled_by),
    Ending(EndEvent.GROUNDED, GoalError.REFUSED, _GUIDED, lambda goal, now: goal.flies and now.is_grounded()),
)


class GoalSession:
    """Goals of one vehicle, one at a time. The owner calls `step` regularly. For one thread."""

    def __init__(
        self,
        parameters: GoalParameters,
        service: Callable[[str], Service | None],
        seen_from: Callable[[str, str], Placed | None],
        *,
        flies: bool,
        rivals: Callable[[], str] = str,
    ) -> None:
        """Begin without a goal.

        Args:
            parameters: the parameters of goals.
            service: returns a caller of the vehicle's service takeoff or land, or None if it offers none.
            seen_from: returns the pose of a frame in another one, given first, or None while it is unknown.
            flies: whether the vehicle is a drone, not a rover.
            rivals: returns the other publishers of commands, as the beginning of a sentence; empty without any.
        """
        self._rivals = rivals
        self._parameters, self._service, self._seen_from, self._flies = parameters, service, seen_from, flies
        #: Reports of the vehicle, set by the owner.
        self.vehicle = VehicleWatch(parameters, service)
        self._progress = ProgressWatch(parameters, rivals)
        self._pending: Goal | None = None
        self._current: Goal | None = None
        self._stop_until_s = -math.inf
        #: Whether its newest commands are those of a landing.
        self.lands = False
        #: State, and the reason for it.
        self.state = ("idle", "there is no goal")

    @property
    def is_idle(self) -> bool:
        """Whether there was nothing to do at the last step, and no goal has arrived since."""
        return self._pending is None and self._current is None and self.vehicle.now_s >= self._stop_until_s

    def receive(self, goal: Goal) -> bool:
        """Take a new goal. Return False for an invalid one, which has ended."""
        if problem := goal.request.problem():
            goal.end(GoalError.INVALID, problem)
            return False
        self._replace(self._pending, goal)
        self._pending = goal
        return True

    def step(self, now_s: float, running_s: float = math.inf) -> GuideStep | None:
        """Return the current step, or None to publish no command. `running_s` is the time since a stall, s."""
        self.vehicle.look(now_s, running_s)
        if self._pending:
            self._begin(self._pending)
        if not (current := self._current):
            return STILL if now_s < self._stop_until_s else None
        is_followed = current.stage is GoalStage.FOLLOWED
        try:
            step = self._step(current)
        except GoalFailedError as error:
            return self._give_up(current, error)
        if is_followed:
            self._follow_up(current, step)
        if step.commands and not self._current:
            self._stop_until_s = now_s + STOPPING_S
            return STILL
        return step if step.commands else None

    def _begin(self, goal: Goal) -> None:
        """Replace the current goal by the pending one once that can be followed."""
        goal.missing, points = self._points_of(goal.request)
        if not goal.missing:
            goal.stage, goal.guide = GoalStage.BEGINS, self._guide(goal.request, points)
            goal.outside = self.vehicle.outside(points)
        try:
            self._check(goal)
        except GoalFailedError as error:
            self._pending = None
            goal.end(error.code, str(error))
            return
        if goal.missing:
            goal.report(GuideStep(waiting_for=goal.missing))
            return
        before = self._current
        if before and before.stage is GoalStage.FOLLOWED:
            # One that equals it is the same, sent again by an impatient client.
            goal.guide = before.guide if goal.request == before.request else goal.guide
            self._replace(before, goal)
        self._current, self._pending, goal.stage, self.lands = goal, None, GoalStage.FOLLOWED, goal.lands
        self._progress, self.vehicle.restarted = ProgressWatch(self._parameters, self._rivals), False
        self.state = (goal.request.name, "begins")

    def _replace(self, before: Goal | None, goal: Goal) -> None:
        if before:
            before.end(GoalError.REPLACED, f"Replaced by another goal: {goal.request.name}.")

    def _points_of(self, request: GoalRequest) -> tuple[str, list[Waypoint]]:
        """Return the missing prerequisite of a goal, or an empty string and its poses in the odometry frame."""
        base, measured, points = self.vehicle.frame, self.vehicle.measured, []
        seen_from = functools.cache(functools.partial(self._seen_from, base))
        if measured is None:
            return "odometry", []
        for pose in request.poses:
            origin = ORIGIN if pose.frame in ("", base) else seen_from(pose.frame)
            if origin is None:
                return f"transform from {pose.frame} to {base}", []
            points.append(pose.waypoint(origin, float(measured.position[2]), flies=self._flies))
        return "", points

    def _guide(self, request: GoalRequest, points: list[Waypoint]) -> Guide:
        parameters, ground = self._parameters, self.vehicle.ground
        if request.name == TAKE_OFF:
            service = None if ground.is_flying else self._service("takeoff")
            return guides.TakeOffGuide(parameters, request.height, ground, service)
        if request.name == LAND:
            return guides.LandGuide(parameters, ground, self._service("land"))
        way = guides.FlightGuide if self._flies else guides.DriveGuide
        return way(parameters, parameters.waypoints(request.tolerance, request.speed), points)

    def _check(self, goal: Goal) -> None:
        """Raise GoalFailedError by the first row of ENDINGS that applies."""
        for row in ENDINGS:
            if goal.stage in row.stages and row.happens(goal, self.vehicle):
                message = str(row.event.value[1]).format(
                    goal=goal, patience=self._parameters.patience, now=self.vehicle
                )
                raise GoalFailedError(row.code, message)

    def _step(self, goal: Goal) -> GuideStep:
        """Return the step of the current goal. Raises GoalFailedError."""
        self._check(goal)
        now_s, measured = self.vehicle.now_s, self.vehicle.measured
        assert measured
        step = GuideStep(waiting_for="odometry", commands=goal.guide.steers)
        if self.vehicle.silent_s <= self._parameters.odometry_timeout:
            step = goal.guide.step(now_s, measured)
        if self.vehicle.overruled_by and step.commands and not goal.lands:
            step = step._replace(waiting_for=f"the end of {self.vehicle.overruled_by}")
        if goal.stage is GoalStage.FOLLOWED:
            self._progress.check(now_s, step, float(measured.position[2]))
        return step

    def _give_up(self, goal: Goal, error: GoalFailedError) -> GuideStep | None:
        self._current, self.state = None, ("idle", str(error))
        if error.code is GoalError.NONE:
            return None
        self._stop_until_s = self.vehicle.now_s + STOPPING_S  # then no commands: other nodes can steer
        if goal.stage is GoalStage.FOLLOWED:
            goal.end(error.code, str(error))
        return STILL

    def _follow_up(self, goal: Goal, step: GuideStep) -> None:
        if not step.done:
            self.state = (goal.request.name, f"waits for {step.waiting_for}" if step.waiting_for else "on the way")
            goal.report(step)
            return
        is_held = step.commands and not goal.lands
        self.state = ("holding" if is_held else "idle", step.done)
        self._current, goal.stage, goal.attended_s = goal if is_held else None, GoalStage.HELD, self.vehicle.now_s
        goal.end(GoalError.NONE, step.done)
