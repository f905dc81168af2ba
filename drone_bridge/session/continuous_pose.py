# SPDX-License-Identifier: Apache-2.0
"""ContinuousPose: goes on from the last pose of a vehicle whose own pose begins again. Pure.

Many vehicles count their pose from power-up. After a reset of the board, a goal or a fence in `odom` is elsewhere.
A pose begins again

- if it is within NEAR of 0 after a greeting, and the last one was not within FAR of 0;
- if it is 0 after a greeting, and the last one was not within SHORT of 0;
- or if it has moved farther than the vehicle can in the meantime, by more than FAR.

Poses are then shifted in the plane, so that the first one is the last one before. Height is not changed. The motion in
between is unknown: see `ObservedMotion.moved_unseen`.
"""

import math
from dataclasses import replace

from drone_bridge.motion.measurement import Measurement
from drone_bridge.motion.observed_motion import ObservedMotion
from drone_bridge.motion.planar_pose import PlanarPose
from drone_bridge.session.session import Actions, Note

#: Tolerances of place and yaw, m and rad.
NEAR, FAR, SHORT = 0.1, 0.3, 0.03
#: Restarts within this time, s, are no resets: the pose has another unit, or the vehicle another maximum.
LEAPING_S = 1.0
#: Limit of the numbers that are used: sums with larger ones lose the place.
FARTHEST = 1e9
#: Counter.
POSE_RESTARTS = "pose_restarts"


def continued(pose: "ContinuousPose | None", measured: Measurement, now_s: float) -> tuple[Measurement, Actions]:
    """Update a pose, see `ContinuousPose.update`. Without one, the report is returned unchanged."""
    return pose.update(measured, now_s) if pose else (measured, [])


class ContinuousPose:
    """Pose of one vehicle in `odom`. For the thread of its session."""

    def __init__(self, observed: ObservedMotion, max_speed: float, max_turn_rate: float) -> None:
        """Start without an offset. The maxima are the vehicle's own, m/s and rad/s."""
        self._observed, self._max_speed = observed, max_speed
        #: May be replaced.
        self.max_turn_rate = max_turn_rate
        self._origin = PlanarPose()  # of the vehicle's own frame in odom
        self._own, self._last = PlanarPose(), PlanarPose()  # the newest pose, in the vehicle's own frame and in odom
        self._place_at = self._yaw_at = -math.inf  # times of the last reports
        self._slack_s = 0.0  # longest gap of late: the reports after it may be late ones
        self._restarted_at = -math.inf
        self._is_greeted = False

    def greeted(self) -> None:
        """Expect a pose that may begin again: the vehicle was just connected."""
        self._is_greeted = True

    def update(self, measured: Measurement, now_s: float) -> tuple[Measurement, Actions]:
        """Return a report with its pose in `odom`, and the actions if the vehicle's own one has begun again."""
        place, yaw = measured.position, measured.yaw
        if (place is None and yaw is None) or not all(abs(each) < FARTHEST for each in (*(place or ()), yaw or 0.0)):
            return measured, []
        own = PlanarPose(*(place or self._own)[:2], self._own.yaw if yaw is None else yaw)
        since_s = min(self._place_at if place else math.inf, math.inf if yaw is None else self._yaw_at)
        gap_s = now_s - since_s
        self._slack_s = max(gap_s, self._slack_s - gap_s) if math.isfinite(since_s) else 0.0
        actions: Actions = []
        if math.isfinite(since_s) and self._begins_again(own, has_place=place is not None, has_yaw=yaw is not None):
            if self._is_greeted:  # what is not reported yet has begun again, too
                own = PlanarPose(*(place or (0.0, 0.0))[:2], yaw or 0.0)
            self._origin = self._last.seeing(PlanarPose().seen_from(own))
            self._observed.moved_unseen(self._max_speed * gap_s if gap_s > 0.0 else 0.0)  # not inf * 0
            sentence = (
                f"The vehicle's own pose began again at x = {own.x:.2f} m, y = {own.y:.2f} m, yaw = {own.yaw:.2f} rad. "
                f"odom goes on from {self._last.x:.2f} m, {self._last.y:.2f} m, {self._last.yaw:.2f} rad."
            )
            if now_s - self._restarted_at < LEAPING_S:
                most = f"{self._max_speed:g} m/s and {self.max_turn_rate:g} rad/s"
                sentence += f" It does so again and again: is it in m and rad, and does it move by {most} at most?"
            self._restarted_at = now_s
            actions = [Note(POSE_RESTARTS), Note("", sentence)]  # counted, and so published, although a log may block
        self._own, self._last, self._is_greeted = own, self._origin.seeing(own), False
        self._place_at, self._yaw_at = now_s if place else self._place_at, self._yaw_at if yaw is None else now_s
        return self.shifted(measured), actions

    def shifted(self, measured: Measurement) -> Measurement:
        """Return a report with its pose in `odom`, by the present offset."""
        if self._origin == PlanarPose():
            return measured
        place, yaw = measured.position, measured.yaw
        pose = self._origin.seeing(PlanarPose(*(place or (0.0, 0.0))[:2], yaw or 0.0))
        return replace(
            measured,
            position=(pose.x, pose.y, place[2]) if place else None,
            yaw=None if yaw is None else pose.yaw,
        )

    def _begins_again(self, own: PlanarPose, *, has_place: bool, has_yaw: bool) -> bool:
        """Return whether the vehicle's own pose begins again. Only what is reported counts."""
        way, turn = (math.hypot(own.x, own.y), abs(math.remainder(own.yaw, math.tau)))
        off = max(has_place * way, has_yaw * turn)
        was_off = max(math.hypot(self._own.x, self._own.y), abs(math.remainder(self._own.yaw, math.tau)))
        if self._is_greeted and ((off <= NEAR and was_off > FAR) or (not off and was_off > SHORT)):
            return True
        moved = math.hypot(own.x - self._own.x, own.y - self._own.y)
        turned = abs(math.remainder(own.yaw - self._own.yaw, math.tau))
        most, most_turn = self._max_speed * self._slack_s + FAR, self.max_turn_rate * self._slack_s + FAR
        return moved > most or turned > most_turn
