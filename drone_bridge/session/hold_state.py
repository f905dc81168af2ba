# SPDX-License-Identifier: Apache-2.0
"""HoldState: hold and helm of a vehicle. Pure, with the time as an input.

| state | begins with | commands followed | ends with |
|---|---|---|---|
| free | | all | |
| at the helm | a command from the helm, while the vehicle is free, or held because a helm ended | the helm's; none \
while those are refused | HELM_ENDS_AFTER_S without one: held, because the helm ended |
| held, because the helm ended | see above | none | `release`, or a new command from the helm |
| held, as it was or may have been before | `HoldState(reason)` | none | as its reason |
| held, on request | `hold` | none | only `release`; a person's request replaces a machine's |

A vehicle has one pilot: while the helm is fresh, commands of other pilots are refused.

A person may be at the helm of a held vehicle. The commands are not followed until the vehicle is released; from then on
the helm has control, and no other source gets in between.

A refused command from the helm, such as one by a wrong clock, shows that a person is there: it takes the helm as others
do. It does not count as attendance, since nobody can fly the vehicle by such commands.
"""

import math
from enum import Enum
from typing import NamedTuple

#: Timeout of a silent helm. It is generous, since a silent helm still locks out all other commands.
HELM_ENDS_AFTER_S = 1.0
# Reasons for a hold, or for the hold after the node is killed.
CALLED, AT_HELM, HELM_ENDED = "the service hold was called", "a person was at the helm", "the helm ended"
#: Reason why other commands are refused while the vehicle follows its helm.
STEERED = "a person is at the helm"
#: What follows it, with a reason, while the commands from the helm are refused.
HELM_REFUSED = ", and its commands are refused: "
#: Time after a release in which a refused command may have been sent before it, s: it does not take the helm.
STRAGGLES_S = 0.5
#: Reasons that are not a request. All others are.
NOT_REQUESTED = ("", AT_HELM, HELM_ENDED)
#: Reasons of a machine's hold: also a program that fails calls the service. All others are a person's, or unknown.
BY_MACHINE = (*NOT_REQUESTED, CALLED)


class HelmPilot(NamedTuple):
    """Who is at the helm."""

    id: str
    name: str


NOBODY = HelmPilot("", "")
#: Sticks on ~/helm, which has no names.
ANONYMOUS = HelmPilot("anonymous", "a person without a name")


class InControl(Enum):
    """Who controls the vehicle. The value is its text in docs/bridges.md."""

    FREE = "programs"
    HELM = "a person at the helm"
    REFUSED_HELM = "a person at the helm whose commands are refused"
    HELD_BY_MACHINE = "a hold by a program, or by the end of the helm"
    HELD_BY_PERSON = "a hold by a person"


class HoldState:
    """Hold and helm. Written by one thread, or under a lock. Safe to read from any thread: an immutable snapshot."""

    def __init__(self, reason: str = "") -> None:
        """`reason` is that of an initial hold; empty for none."""
        #: Snapshot: reason of the hold, empty for none; time of the helm's last command, s, None for no helm.
        self.now: tuple[str, float | None] = reason, None
        #: Why the newest command from the helm is refused, a sentence; empty if it is followed.
        self.refused_helm = ""
        #: Time at which a person last steered or released the vehicle, and of the last release, s.
        self.attended_s = self.released_s = -math.inf
        self._pilot = NOBODY  # the last one

    # For any thread.

    def control(self, now_s: float) -> InControl:
        """Return who controls the vehicle, from one snapshot. Not a person at the helm of a held vehicle."""
        reason, received_s = self.now
        if reason or _has_ended(received_s, now_s):
            return InControl.HELD_BY_MACHINE if reason in BY_MACHINE else InControl.HELD_BY_PERSON
        if received_s is None:
            return InControl.FREE
        return InControl.REFUSED_HELM if self.refused_helm else InControl.HELM

    def reason(self, now_s: float) -> str:
        """Return why the vehicle must be neutral; empty if it need not be."""
        reason, received_s = self.now
        return reason or (HELM_ENDED if _has_ended(received_s, now_s) else "")

    @property
    def is_free(self) -> bool:
        """Whether commands from other sources than the helm are followed."""
        return self.now == ("", None)

    def pilot(self, now_s: float) -> HelmPilot:
        """Return who is at the helm, also of a held vehicle."""
        received_s = self.now[1]
        return NOBODY if received_s is None or _has_ended(received_s, now_s) else self._pilot

    # Transitions.

    def claim(self, pilot: HelmPilot, now_s: float) -> bool:
        """Make a pilot the sender of the next command from the helm. Return False while another is at the helm."""
        is_free = self.pilot(now_s).id in ("", pilot.id)
        self._pilot = pilot if is_free else self._pilot
        return is_free

    def steer(self, now_s: float, refused: str = "") -> bool:
        """Record a command from the helm. Return whether it takes the helm, and so begins to steer.

        `refused` is why the command is refused, a sentence; empty if it is not.
        """
        reason, received_s = self.now
        self.refused_helm = refused  # before the helm is taken
        is_new = received_s is None or _has_ended(received_s, now_s)
        begins = is_new and reason in NOT_REQUESTED
        if (begins or not reason) and not refused:
            self.attended_s = now_s  # before the hold ends, as for `release`
        self.now = "" if begins else reason, now_s
        return begins

    def hold(self, reason: str) -> bool:
        """Hold the vehicle and end the helm. Return False for a repeated request, which keeps the first reason."""
        before, is_persons = self.now[0], reason not in BY_MACHINE
        is_new = before in NOT_REQUESTED or (is_persons and before in BY_MACHINE)
        self.now = reason if is_new else before, None
        return is_new

    def end_helm(self, now_s: float) -> bool:
        """Hold the vehicle if the helm has timed out. Return whether the state has changed."""
        return _has_ended(self.now[1], now_s) and self.hold(HELM_ENDED)

    def release(self, now_s: float) -> None:
        """Release the hold. The helm keeps control unless it has timed out."""
        self.attended_s = self.released_s = now_s
        self.now = "", None if _has_ended(self.now[1], now_s) else self.now[1]


def _has_ended(received_s: float | None, now_s: float) -> bool:
    return received_s is not None and now_s - received_s > HELM_ENDS_AFTER_S
