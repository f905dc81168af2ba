# SPDX-License-Identifier: Apache-2.0
"""FrameTime: time of a testbed's frames, in seconds, without the repeats of a float32. Pure.

Theory of operation:

The wire's time is a float32, whose resolution decreases with its value: after 73 hours (2**18 s) it is coarser than a
frame period at 60 Hz, and several frames have the same time. These are distinguished by the frame period, which is
estimated from many frames. A time that repeats for longer than one step of the float32 is frozen, and no time is
added. If frames are always far apart, their time is in another unit, such as milliseconds.
"""

import math

#: Repeated steps longer than this are not seconds, s.
LONGEST_STEP_S = 1.0
_LONG_STEPS = 3
#: Frames with the same time, while no period is known.
_MOST_REPEATS = 100
_FLOAT32_DIGITS = 24


def float32_step(value: float) -> float:
    """Return the distance to the next larger float32."""
    return math.ldexp(1.0, math.frexp(max(abs(value), 1e-30))[1] - _FLOAT32_DIGITS)


class FrameTime:
    """Time of one conversation's frames. Call `see` for each frame."""

    def __init__(self, unit_s: float = 1.0) -> None:
        """`unit_s` is the unit of the time on the wire, s."""
        self._unit_s = unit_s
        #: Time of the newest frame, s.
        self.newest_s = 0.0
        #: Reason why the time is wrong, as a sentence without a full stop; empty if it is plausible.
        self.problem = ""
        self._wire: float | None = None
        self._long_steps = 0
        self._period: float | None = None  # of frames, in the wire's unit
        self._changed: tuple[float, int] | None = None  # the first new time after it was frozen, and its frame
        self._frames = self._repeats = 0

    def see(self, wire: float) -> float:
        """Return the time of the next frame, s. It is smaller than the last one in a new simulation."""
        before, self._wire = self._wire, wire
        self._frames += 1
        if before is None or wire < before:
            self._changed, self._long_steps = None, 0
            self.newest_s = wire * self._unit_s
        elif wire == before:
            self._repeat(wire)
        else:
            self._advance(wire, wire - before)
        return self.newest_s

    def _repeat(self, wire: float) -> None:
        """Interpolate a repeated time, unless time is frozen."""
        self._repeats += 1
        step = float32_step(wire)
        if self._period is not None and self._period < step:
            filled_s = self.newest_s + self._period * self._unit_s
            if filled_s < (wire + step) * self._unit_s:
                self.newest_s = filled_s
                return
        if self._period is not None or self._repeats > _MOST_REPEATS:
            self._changed = None  # the period is unknown

    def _advance(self, wire: float, step: float) -> None:
        self._repeats = 0
        if self._changed is None:
            self._changed = wire, self._frames
        else:
            first, number = self._changed
            self._period = (wire - first) / (self._frames - number)
        self._long_steps = self._long_steps + 1 if step * self._unit_s > LONGEST_STEP_S else 0
        self.problem = ""
        if self._long_steps >= _LONG_STEPS:
            self.problem = (
                f"its frames are {step * self._unit_s:.3g} s apart by its own time, so velocities are not flown. If "
                "that time is in milliseconds or microseconds, set time_unit"
            )
        resolution, period = float32_step(wire), self._period
        if period is None or period >= resolution:
            self.newest_s = wire * self._unit_s
        else:
            filled = self.newest_s / self._unit_s + period
            self.newest_s = max(wire - resolution / 2, min(filled, wire + resolution)) * self._unit_s
