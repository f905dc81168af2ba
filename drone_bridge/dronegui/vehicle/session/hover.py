# SPDX-License-Identifier: Apache-2.0
"""HeldHover: whether the vehicle's service hover is held, for the button of that name. Pure.

| event | then |
|---|---|
| another state is wanted | the service is called |
| no node offers the service, as its bridge restarts | it is called again at once |
| a call failed, and its state is still wanted | it is called again after RETRY_S |

A vehicle refuses a release while it settles after a stall of its own.
"""

import math

from drone_bridge.session.session import Actions, Answer, Call

#: Service, with the wanted state as its tag.
HOVER = "hover"
#: Time until a failed call is repeated, s.
RETRY_S = 1.0


class HeldHover:
    """State of one vehicle's hover."""

    def __init__(self) -> None:
        """Start released."""
        self._is_held, self._call_again_at = False, math.inf

    def want(self, is_wanted: bool, now_s: float) -> Actions:
        """Call the service if that changes its state."""
        if is_wanted is self._is_held and now_s < self._call_again_at:
            return []
        self._is_held, self._call_again_at = is_wanted, math.inf
        return [Call(HOVER, is_wanted)]

    def answered(self, is_wanted: bool, answer: Answer, now_s: float) -> None:
        """Record the result of a call."""
        if not answer.is_success and not answer.was_displaced and is_wanted is self._is_held:
            self._call_again_at = now_s + RETRY_S

    def forget(self) -> None:
        """Record that no node offers the service: a bridge that restarts has forgotten its state."""
        self._call_again_at = -math.inf
