# SPDX-License-Identifier: Apache-2.0
"""LimitedVehicle: arbiter of a vehicle with limits, its hold and its reports, with the test's clock."""

from collections import Counter
from types import SimpleNamespace

from drone_bridge.motion.limits import LimitParameters, Limits
from drone_bridge.motion.observed_motion import ObservedMotion
from drone_bridge.session.arbiter import Arbiter, Rank
from drone_bridge.session.hold_state import HoldState

LAND_AFTER_S, ODOMETRY_TIMEOUT_S = 5.0, 0.5
#: Time without reports after which the vehicle has to land, s.
LANDS_AFTER_S = LAND_AFTER_S + ODOMETRY_TIMEOUT_S


class LimitedVehicle:
    """Vehicle with a maximum height. It has to land without reports for LANDS_AFTER_S."""

    def __init__(self, clock, *, sinks):
        """`clock` returns the time. `sinks`: whether it lands by a velocity."""
        self.hold, self.observed = HoldState(), ObservedMotion(clock)
        parameters = LimitParameters(
            max_height=50.0, odometry_timeout=ODOMETRY_TIMEOUT_S, land_without_odometry=LAND_AFTER_S
        )
        statistics = SimpleNamespace(counts=Counter(), record_duration=lambda name, seconds: None)
        self.arbiter = Arbiter(self.hold, Limits(parameters, self.observed), lambda: 0.5, statistics)
        self.arbiter.sinks = sinks

    def report(self, height=2.0):
        """Report a motion at a height, m."""
        self.observed.measured(0.0, velocity=(0.0, 0.0, 0.0), height=height)


def landing_state(talk):
    """Return whether the limits of a talk's vehicle require a landing, and what its session does about it."""
    return talk.vehicle.arbiter.rank(talk.now_s) is Rank.LANDING, talk.session.landing(talk.now_s)
