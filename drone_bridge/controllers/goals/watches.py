# SPDX-License-Identifier: Apache-2.0
"""Watches of a GoalSession: the vehicle, and the progress of a goal. Pure, with the time as an input."""

import math
from collections.abc import Callable

from drone_bridge.controllers.goals.guides import GoalError, GoalFailedError, GoalParameters, Ground, GuideStep
from drone_bridge.controllers.goals.requests import GoalFence
from drone_bridge.controllers.vehicle_pose import VehiclePose
from drone_bridge.controllers.waypoints.waypoint import Waypoint

NEARER_M = 0.05  # smallest decrease of the distance that counts as progress


class VehicleWatch:
    """Newest reports of the vehicle and of its bridge, at a time. Its fields are set by the owner of the session."""

    def __init__(self, parameters: GoalParameters, service: Callable[[str], object]) -> None:
        """Begin without a report. `service` is that of GoalSession."""
        self.patience_s, self._service = parameters.patience, service
        self.measured: VehiclePose | None = None
        #: Frame of the odometry.
        self.frame = ""
        self.ground = Ground()
        self.fence: GoalFence | None = None
        self.is_held = False
        #: Whether a person is at the helm, and the commands of a program that the vehicle follows; empty without any.
        self.is_steered, self.overruled_by = False, ""
        #: Whether the variance of its place was known, and is not any more.
        self.is_doubted = False
        #: Whether the pose began again while the current goal is followed or held.
        self.restarted = False
        #: Time, and age of the last odometry, s, not counting a stall, whose messages are still to be handled.
        self.now_s, self.silent_s = -math.inf, math.inf
        self._received_s, self._was_located, self._knows_restarts = -math.inf, False, False

    def move(
        self, now_s: float, measured: VehiclePose, frame: str, height: float | None = None, *, is_located: bool = True
    ) -> None:
        """Handle odometry with the height above the ground, m, if known. `is_located`: its x has a known variance."""
        self.measured, self.frame, self._received_s = measured, frame, now_s
        self._was_located |= is_located
        self.is_doubted = self._was_located and not is_located
        self.ground.seen(float(measured.position[2]), height)

    def restart(self) -> None:
        """Handle a restart of the pose, or of the bridge, which reports its count again and may begin at 0, too."""
        self.restarted, self._knows_restarts = self._knows_restarts, True

    def look(self, now_s: float, running_s: float) -> None:
        """Set the time, where `running_s` is that since the process was stalled, s."""
        self.now_s, self.silent_s = now_s, min(now_s - self._received_s, running_s)

    def outside(self, points: list[Waypoint]) -> str:
        """Return a sentence about a point outside of the fence, or an empty string."""
        return self.fence.problem(points) if self.fence and self.fence.frame == self.frame else ""

    def is_grounded(self) -> bool:
        """Return whether the drone is on the ground, and offers to take off, which is looked up now."""
        return self.ground.is_flying is False and self._service("takeoff") is not None


class ProgressWatch:
    """Watch of the progress of one goal."""

    def __init__(self, parameters: GoalParameters, rivals: Callable[[], str]) -> None:
        """Begin. `rivals` is that of GoalSession."""
        self._parameters, self._rivals = parameters, rivals
        # At the last progress: m to go, time, and what was waited for.
        self._nearest, self._nearer_s, self._waits_for = math.inf, -math.inf, ""

    def check(self, now_s: float, step: GuideStep, z: float) -> None:
        """Raise GoalFailedError if a goal makes no progress for stuck_time, or waits for longer than answer_time.

        Where the distance is unknown, sinking is progress: it is that of a landing.
        """
        left = step.distance if math.isfinite(step.distance) else z
        if step.done or step.waiting_for != self._waits_for or left < self._nearest - NEARER_M:
            self._nearest, self._nearer_s, self._waits_for = left, now_s, step.waiting_for
        limit_s = self._parameters.answer_time if step.waiting_for else self._parameters.stuck_time
        if now_s - self._nearer_s > limit_s:
            away = f", {step.distance:.1f} m from the goal" if math.isfinite(step.distance) else ""
            cause = f"{self._rivals()}a fence or another limit of the vehicle's bridge may be in the way."
            if step.waiting_for:
                cause = f"it waits for {step.waiting_for}; see the diagnostics of its bridge."
            raise GoalFailedError(GoalError.NO_PROGRESS, f"No progress for {limit_s:g} s{away}: {cause}")
