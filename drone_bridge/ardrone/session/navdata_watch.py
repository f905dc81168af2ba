# SPDX-License-Identifier: Apache-2.0
"""NavdataWatch: the newest navdata of one drone, what they measure, and what is wrong with them or the drone. Pure.

| navdata | are |
|---|---|
| with an older number, unless the drone has started over | dropped, `late_navdata` |
| with a gap before their number | followed, `navdata_gaps` |
| with the same state bits, more than FOLLOWED_RATE per second | only published |
| others | followed |
"""

import math
from typing import NamedTuple

from drone_bridge.ar_drone.flight_state import FlyingReport
from drone_bridge.ardrone import units
from drone_bridge.ardrone.codec import Navdata, State, Tag
from drone_bridge.ardrone.codec.navdata import DEMO_BYTES
from drone_bridge.ardrone.session.emergency import NOT_SHOWN, SHOWN, SHOWN_BEFORE, UNKNOWN
from drone_bridge.motion.measurement import Measurement
from drone_bridge.session.continuous_pose import ContinuousPose, continued
from drone_bridge.session.feedback import Feedback
from drone_bridge.session.session import Action, Publish
from drone_bridge.wire.counters import problems
from drone_bridge.wire.rate_limit import RateLimit

#: Navdata that is older does not show a state, s.
FRESH_S = 0.5
WAKE_S = 0.2
#: Time for which navdata may lack the flight state, s.
SETTING_UP_S = 5.0
#: Period in which navdata is counted, s, and the part of it that may be missing.
COUNTED_S, MISSING = 5.0, 0.25
#: Most navdata per second that are followed, but for changes of state bits. Those in between are only published.
FOLLOWED_RATE = 30.0
#: Distance to the drone's own altitude_max from which it may climb no higher, m.
NEAR_CEILING_M = 0.2
_STARTED = State.WATCHDOG | State.BOOTSTRAP | State.COMMUNICATION_LOST  # state bits of a drone that has just started
GAPS, LATE = problems("navdata_gaps", "late_navdata")
UNHEARD = "{} sends no navdata: switch it on, join its Wi-Fi, and run `drone-bridge doctor`"
#: Causes of an emergency, in the order in which they are named.
CAUSES = {
    State.CUTOUT: "a propeller was blocked",
    State.ANGLES_OUT_OF_RANGE: "it was tilted too far",
    State.MOTOR_FAULT: "a motor has a fault",
    State.ULTRASOUND_DEAF: "its ultrasound sensor receives nothing",
    State.SOFTWARE_FAULT: "its software has a fault",
    State.USER_EMERGENCY: "a client has stopped the motors",
    State.BATTERY_LOW: "its battery is low",
    State.TIMER_ELAPSED: "its timer has elapsed",
}


class Known(NamedTuple):
    """What is known of the drone now."""

    navdata: Navdata | None
    """The newest of this connection."""
    age_s: float
    is_connected: bool
    has_reported: bool
    """Whether navdata has arrived since this process was last stalled."""
    set_up_problem: str
    """Why the flight state has been unknown for long, as a clause."""

    @property
    def shown(self) -> str:
        """Whether an emergency is shown, as EmergencyBit needs it."""
        if self.navdata is None or self.age_s > FRESH_S:
            return UNKNOWN
        if not self.navdata.has(State.EMERGENCY):
            return NOT_SHOWN
        return SHOWN if self.has_reported else SHOWN_BEFORE

    def checked(self) -> Navdata:
        """Return the current navdata. Raises ValueError with a sentence."""
        if not self.is_connected or self.navdata is None:
            raise ValueError("The drone sends no navdata, so it is unknown whether it flies.")
        if not self.has_reported:
            raise ValueError("The drone has sent no navdata since the bridge was stalled. Please call again.")
        return self.navdata


class NavdataWatch:
    """Navdata of one drone."""

    def __init__(self, drone: str, feedback: Feedback, pose: ContinuousPose | None) -> None:
        """Start without any. See ArdroneClientSession for the arguments."""
        self._drone, self._feedback, self._pose = drone, feedback, pose
        #: The newest of this connection, and the time at which navdata is asked for again.
        self.navdata: Navdata | None = None
        self.due_s = math.inf
        #: Problems with navdata, an emergency, the ceiling and the magnetometer, as clauses; empty if there is none.
        self.problems = "", "", "", ""
        self._rate_limit = RateLimit()
        self._set_up_at = -math.inf  # the newest navdata with a flight state, or the start of the connection
        self._counted: tuple[float, int, int] | None = None  # instant and number of the first one, number of others
        self._missing = ""
        self._published: bool | None = None  # whether it flies

    def connected(self, now_s: float) -> None:
        """Begin with the first navdata after silence."""
        self._set_up_at = now_s
        if self._pose:
            self._pose.greeted()

    def forget(self, now_s: float) -> None:
        """Count navdata anew, after silence or a stall."""
        self._counted = None

    def count_late(self) -> None:
        """Count navdata that were overtaken: they have arrived."""
        if self._counted:
            self._counted = *self._counted[:2], self._counted[2] + 1

    def is_due(self, navdata: Navdata, before: Navdata | None, now_s: float) -> bool:
        """Count navdata, and return whether it is time to follow them."""
        if not self._counted or not before or navdata.sequence <= before.sequence:
            self._counted = now_s, navdata.sequence, 0
        begin_s, begin, count = self._counted
        self._counted = begin_s, begin, count + 1
        if (period_s := now_s - begin_s) >= COUNTED_S:
            sent, received = (navdata.sequence - begin) / period_s, (count + 1) / period_s
            found = f"{received:.0f} of {sent:.0f} navdata per second arrive: perhaps another program gets the rest"
            self._missing = found if received < (1 - MISSING) * sent else ""
            self._counted = now_s, navdata.sequence, 0
        return self._rate_limit.is_due(now_s, FOLLOWED_RATE)

    def measure(self, navdata: Navdata, now_s: float) -> tuple[Measurement, list[Action]]:
        """Follow navdata. Return its measurement, and what else is to be reported."""
        if is_set_up(navdata):
            self._set_up_at = now_s
        measured, restarted = continued(self._pose, units.measurement(navdata), now_s)
        if navdata.demo is not None:
            self._feedback.measured(measured, now_s)
        if navdata.is_airborne is self._published:
            return measured, [*restarted]
        self._published = navdata.is_airborne
        return measured, [*restarted, Publish(FlyingReport(navdata.is_airborne))]

    def steered(self, is_climbing: bool, ceiling: float | None) -> None:
        """Notice whether the drone's own altitude_max, mm, has stopped a climb, until it sinks."""
        demo, (reports, emergency, climb, magnetometer) = self.navdata.demo if self.navdata else None, self.problems
        if ceiling is None or demo is None or demo.altitude <= ceiling - 1000 * NEAR_CEILING_M:
            climb = ""
        elif is_climbing:
            climb = f"the drone climbs no higher than its own altitude_max of {ceiling / 1000:g} m"
        self.problems = reports, emergency, climb, magnetometer

    def set_up_problem(self, now_s: float) -> str:
        """Return why the flight state has been unknown for SETTING_UP_S, as a clause; empty otherwise."""
        navdata = self.navdata
        if not navdata or is_set_up(navdata) or now_s - self._set_up_at <= SETTING_UP_S:
            return ""
        if navdata.has(State.BOOTSTRAP):
            return f"{self._drone} stays in BOOTSTRAP: it does not follow the setting general:navdata_demo"
        size = len(navdata.data(Tag.DEMO))
        return f"{self._drone} sends navdata without a flight state: the option demo has {size} of {DEMO_BYTES} bytes"

    def report(self, known: Known, *, is_asking: bool, is_version_1: bool) -> None:
        """Update the problems."""
        navdata, emergency, magnetometer = known.navdata if known.is_connected else None, "", ""
        if navdata and navdata.has(State.EMERGENCY):
            emergency = f"the drone is in an emergency: {causes(navdata)}. Call reset when it is on the ground"
        if navdata and navdata.has(State.MAGNETOMETER_UNCALIBRATED) and not is_version_1:
            magnetometer = "the drone's magnetometer needs calibration, and its heading may drift"
        reports = known.set_up_problem or self._missing if navdata else UNHEARD.format(self._drone) if is_asking else ""
        self.problems = reports, emergency, self.problems[2] if navdata else "", magnetometer


def place_of(navdata: Navdata, before: Navdata | None) -> str:
    """Return the counter of navdata whose number is not the next one; empty if it is, or if the drone starts over."""
    starts_over = navdata.sequence <= 1 or navdata.has(_STARTED)
    if starts_over or not before or navdata.sequence == before.sequence + 1:
        return ""
    return LATE if navdata.sequence <= before.sequence else GAPS


def is_set_up(navdata: Navdata) -> bool:
    """Return whether navdata has a flight state."""
    return navdata.demo is not None and not navdata.has(State.BOOTSTRAP)


def flight_state(navdata: Navdata | None) -> str:
    """Return the flight state in words."""
    state = navdata.demo.flight_state if navdata and navdata.demo else None
    return "nothing" if state is None else str(state)


def causes(navdata: Navdata) -> str:
    """Return the causes of an emergency, separated by commas."""
    return ", ".join(text for bit, text in CAUSES.items() if navdata.has(bit)) or "for an unknown reason"
