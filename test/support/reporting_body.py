# SPDX-License-Identifier: Apache-2.0
"""ReportingBody: a vehicle whose reports lack numbers, flown within its limits by a bridge's feedback. Pure."""

import math

from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.motion.limits import LimitParameters, Limits
from drone_bridge.motion.measurement import Measurement
from drone_bridge.motion.observed_motion import ObservedMotion
from drone_bridge.motion.vectors import added, scaled, turned
from drone_bridge.session.feedback import Feedback

QUANTITIES = ("position", "velocity", "yaw", "height")
#: Step of the body. It is commanded in each third one (20 Hz), and reports in each second one (30 Hz).
STEP_S = 1 / 60
COMMANDS, REPORTS = 3, 2
#: Duration of a flight.
FLIGHT_S = 25.0
NORTH = math.pi / 2
#: Whether a report lacks a number, by the report's number.
MISSING = {
    "once": lambda number: number == 30,
    "at the start": lambda number: number < 3,
    "every second time": lambda number: number % 2 == 1,
    "every second time, first": lambda number: number % 2 == 0,
    "4 of 5 s": lambda number: number % 150 >= 30,
    "for ever": lambda number: number >= 30,
}
#: Those after which the vehicle still gets as far as its limit.
PASSING = ("once", "at the start", "every second time", "every second time, first")


class ReportingBody:
    """Vehicle that changes its velocity by at most 1 m/s², heads north, and reports some of its motion.

    Its odometry starts at a place of its own, on a hill.
    """

    def __init__(self, reports=QUANTITIES, **parameters):
        self.now_s = 0.0
        self.observed = ObservedMotion(lambda: self.now_s)
        self.limits = Limits(LimitParameters(max_speed=2.0, **parameters), self.observed)
        self._feedback = Feedback(self.observed, self.limits)
        self.place, self.velocity = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
        self.reports = reports

    def report(self, lacks="", value=None):
        """Report all but one quantity, which is `value` instead."""
        x, y, z = self.place
        truth = {
            "position": (40.0 + x, -7.0 + y, 20.0 + z),
            "velocity": turned(self.velocity, -NORTH),
            "yaw": NORTH,
            "height": z,
        }
        said = {name: truth[name] for name in self.reports}
        if lacks in said:
            said[lacks] = (1.0, value, 0.0) if isinstance(truth[lacks], tuple) and value is not None else value
        if said.get("velocity"):
            said["velocity"] = BodyVelocity(*said["velocity"])
        self._feedback.measured(Measurement(**said), self.now_s)

    def fly(self, wanted, is_missing, lacks, value):
        """Follow a velocity along the world's axes, within the limits. Return all places."""
        places, aim = [], (0.0, 0.0, 0.0)
        for step in range(round(FLIGHT_S / STEP_S)):
            self.now_s = step * STEP_S
            if not step % REPORTS:
                self.report(lacks if is_missing(step // REPORTS) else "", value)
            if not step % COMMANDS:
                allowed = BodyVelocity()
                if not self.limits.is_blind(self.now_s):
                    allowed = self.limits.limited(BodyVelocity(*turned(wanted, -NORTH)), self.now_s)
                aim = turned(allowed.linear, NORTH)
            change = [a - v for a, v in zip(aim, self.velocity, strict=True)]
            share = min(1.0, STEP_S / max(math.hypot(*change), 1e-9))
            before, self.velocity = self.velocity, added(self.velocity, [share * each for each in change])
            self.place = added(self.place, scaled(added(before, self.velocity), STEP_S / 2))
            places.append(self.place)
        return places
