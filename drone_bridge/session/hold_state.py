# SPDX-License-Identifier: Apache-2.0
"""HoldState: whether a vehicle is held, and whether a person is at its helm. Pure, with the time handed in.

| state | begins | commands that are followed | ends |
|---|---|---|---|
| free | | all | |
| at the helm | a command from the helm, while the vehicle is free or held because a helm ended | the helm's | after \
HELM_ENDS_AFTER_S without one: held, because the helm ended |
| held, because the helm ended | see above | none | `release`, or somebody is at the helm again |
| held, on request | `hold` | none | `release` alone |

While it is held somebody may be at the helm, whose commands are not followed: it is theirs when the vehicle is
released, and nobody gets in between.
"""

#: A helm that is silent for longer has ended. Until then it locks out others all the same, so this may be generous.
HELM_ENDS_AFTER_S = 1.0
# Why a vehicle is held, or will be if the node is killed.
CALLED, AT_HELM, HELM_ENDED = "the service hold was called", "a person was at the helm", "the helm ended"
#: Every other reason is that of a request.
NOT_REQUESTED = ("", AT_HELM, HELM_ENDED)


class HoldState:
    """Changed by one thread, or under a lock; read by any thread, as all that there is to read is replaced at once."""

    def __init__(self, reason: str = "") -> None:
        """`reason` is why the vehicle is held from the beginning, empty if it is not."""
        #: Why it is held, empty if it is not, and when the helm was heard last, s; None: nobody is at the helm.
        self.now: tuple[str, float | None] = reason, None

    # For any thread.

    def look(self, now_s: float) -> tuple[bool, bool]:
        """Return whether the vehicle has to be neutral, and whether a person is at its helm, who counts if it has not.

        Both are of one moment.
        """
        reason, heard_s = self.now
        has_ended = _has_ended(heard_s, now_s)
        return bool(reason) or has_ended, heard_s is not None and not has_ended

    def reason(self, now_s: float) -> str:
        """Return why the vehicle has to be neutral, empty if it has not."""
        reason, heard_s = self.now
        return reason or (HELM_ENDED if _has_ended(heard_s, now_s) else "")

    @property
    def is_free(self) -> bool:
        """Whether commands of others than the helm are followed."""
        return self.now == ("", None)

    # What changes it.

    def steer(self, now_s: float) -> bool:
        """Note a command from the helm; return whether somebody who was not there before steers from now on."""
        reason, heard_s = self.now
        is_new = heard_s is None or _has_ended(heard_s, now_s)
        begins = is_new and reason in NOT_REQUESTED
        self.now = "" if begins else reason, now_s
        return begins

    def hold(self, reason: str) -> bool:
        """Hold, and end the helm. A hold on request keeps its first reason; return whether there was none yet."""
        before = self.now[0]
        is_requested = before not in NOT_REQUESTED
        self.now = before if is_requested else reason, None
        return not is_requested

    def end_helm(self, now_s: float) -> bool:
        """Hold if the helm has ended; return whether anything changes."""
        return _has_ended(self.now[1], now_s) and self.hold(HELM_ENDED)

    def release(self, now_s: float) -> None:
        """Follow commands again: those of the helm, if somebody is there."""
        self.now = "", None if _has_ended(self.now[1], now_s) else self.now[1]


def _has_ended(heard_s: float | None, now_s: float) -> bool:
    return heard_s is not None and now_s - heard_s > HELM_ENDS_AFTER_S
