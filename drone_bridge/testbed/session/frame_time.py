# SPDX-License-Identifier: Apache-2.0
"""FrameTime: time of a testbed's frames, in seconds. Pure.

If frames are always far apart, their time is in another unit, such as milliseconds.
"""

#: Repeated steps longer than this are not seconds, s.
LONGEST_STEP_S = 1.0
_LONG_STEPS = 3


class FrameTime:
    """Time of one conversation's frames. Call `see` for each frame."""

    def __init__(self, unit_s: float = 1.0) -> None:
        """`unit_s` is the unit of the time on the wire, s."""
        self._unit_s = unit_s
        #: Time of the newest frame, s.
        self.newest_s = 0.0
        #: Reason why the time is wrong, as a sentence without a full stop; empty if it is plausible.
        self.problem = ""
        self._long_steps = 0

    def see(self, wire: float) -> float:
        """Return the time of the next frame, s. It is smaller than the last one in a new simulation."""
        before_s, self.newest_s = self.newest_s, wire * self._unit_s
        step_s = self.newest_s - before_s
        self._long_steps = self._long_steps + 1 if step_s > LONGEST_STEP_S else 0
        self.problem = ""
        if self._long_steps >= _LONG_STEPS:
            self.problem = (
                f"its frames are {step_s:.3g} s apart by its own time, so velocities are not flown. If that time is in "
                "milliseconds or microseconds, set time_unit"
            )
        return self.newest_s
