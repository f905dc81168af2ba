# SPDX-License-Identifier: Apache-2.0
"""FakePilot: commands for the session of a drone that is flown by tilt, as a test wants them."""

import math
from types import SimpleNamespace

from drone_bridge.session.arbiter import Rank


class FakePilot:
    """Pilot and feedback of a session, with a count of its restarts."""

    def __init__(self):
        self.wanted, self.notes, self.restarts, self.rank = None, [], 0, Rank.NEUTRAL
        self.is_height_doubted = self.is_position_doubted = False
        self.modelled_velocity = None
        self.measurements, self.charges = [], []
        self.limits = SimpleNamespace(
            takeoff_refusal="",
            charged=lambda charge, now_s: self.charges.append(charge),
            flew=lambda is_flying, now_s: None,
            land_at=math.inf,
        )
        self.arbiter = SimpleNamespace(
            rank=lambda now_s: self.rank,
            is_held=lambda now_s: self.rank is Rank.HOLD,
            cause=lambda now_s: None,
            limits=self.limits,
        )

    def shares(self, now_s, *, is_overruled=False):
        return None if is_overruled else self.wanted

    def restart(self, now_s):
        self.restarts += 1

    def reported(self, measured, now_s):
        self.measurements.append(measured)
