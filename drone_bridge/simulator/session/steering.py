# SPDX-License-Identifier: Apache-2.0
"""Steering: sets the vehicle's velocities by what an arbiter decides, again and again. Pure, with the time handed in.

A vehicle in the simulator has no watchdog: it goes on as it was commanded. So a bridge that connects first says zero,
as one that was killed may have left the vehicle moving. Nothing tells such a one from another client that steers, which
is stopped as well.

| state | what is sent, at most at `rate` | ends |
|---|---|---|
| left alone | nothing, after the zero of a new connection | engaged, by a command of known direction, or on hold |
| engaged | the command; zero on hold, and when there is none | left alone, after `release_after` without a command |

A simulator that is slow gets the newest velocity when it has answered, but a stop does not wait for that. One that does
not answer gets zero once, by `stop`, and nothing more. Right after this process was suspended, the velocity that was
sent before is sent again, or zero in its place.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn

from drone_bridge.motion.body_velocity import STILL, BodyVelocity
from drone_bridge.session.arbiter import Arbiter, Rank
from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.session.exchange import Exchange, OnAnswer, ignore
from drone_bridge.wire.outgoing import UNENCODABLE, encoded

_UNKNOWN_ATTITUDE = (
    "The vehicle can't be steered, as its attitude is unknown: either it does not exist, or the rotation from its "
    "principal axes to its model has not been learned, which takes a moment in which the simulation is paused."
)


#: The requests that set a velocity for the vehicle's attitude, which zero does not need.
ToRequests = Callable[[BodyVelocity, Any], tuple[sim.SetEntity, ...]]


class Steering:
    """Over all connections."""

    def __init__(self, arbiter: Arbiter[NoReturn], to_requests: ToRequests, parameter: Callable[[str], Any]) -> None:
        """`parameter` returns the present `vehicle`, `rate` and `release_after`."""
        self._arbiter, self._to_requests, self._parameter = arbiter, to_requests, parameter
        #: When `turn` does something; a new command makes that now.
        self.due_s = math.inf
        self._is_engaged = False
        self._stale_since_s: float | None = None
        self._sent_s = -math.inf
        self._unanswered = 0
        self._is_refused = False  # on this connection, which is logged once
        self._sent: BodyVelocity | None = None

    def begin(self, exchange: Exchange) -> None:
        """Stop the vehicle, on a new connection, and forget what was commanded before."""
        self._arbiter.forget()
        self._unanswered, self._is_refused, self._sent = 0, False, None
        self._sent_s = self.due_s = -math.inf
        self._stale_since_s = exchange.now_s if self._is_engaged else None
        self._send(exchange, STILL, None, ignore)  # that there is no vehicle is said by who asks for its state

    def resume(self) -> None:
        """Have `turn` send at once: what was decided before this process stood still may be on its way."""
        self._sent_s = self.due_s = -math.inf

    def turn(self, exchange: Exchange, attitude: Any) -> None:
        """Send what is due. Without an attitude only zero can be sent, as the direction of forward is unknown."""
        now_s = exchange.now_s
        if now_s < self.due_s:
            return
        period_s = 1.0 / float(self._parameter("rate"))
        self.due_s = self._sent_s + period_s
        if now_s < self.due_s:
            return
        decision = self._arbiter.decide(now_s)
        # Others may steer it as well: on hold it is kept still for as long as that lasts.
        command = STILL if decision.rank is Rank.HOLD else decision.command
        if command is None and not self._is_engaged:
            self.due_s = math.inf
            return
        self._sent_s, self.due_s = now_s, now_s + period_s
        if command is not None:
            if attitude is None and command != STILL:
                exchange.note("unsteered_commands", _UNKNOWN_ATTITUDE, is_ongoing=True)
                return
            self._is_engaged, self._stale_since_s = True, None
        elif self._stale_since_s is None:
            self._stale_since_s = now_s
        velocity = STILL if command is None else command
        if self._unanswered and (velocity != STILL or self._sent == STILL):
            exchange.note("late_velocities")
            return
        self._command(exchange, velocity, attitude)
        exchange.note("velocities")
        release_s = float(self._parameter("release_after"))
        if self._stale_since_s is not None and release_s and now_s - self._stale_since_s >= release_s:
            self._is_engaged, self._stale_since_s = False, None

    def stop(self, exchange: Exchange) -> None:
        """Send zero to a vehicle that is steered, whatever is unanswered, unless that was sent last."""
        if self._is_engaged and self._sent != STILL:
            self._command(exchange, STILL, None)

    def last_requests(self) -> list[bytes]:
        """Return the last messages, which stop a vehicle that is being steered."""
        return [sim.frame(request) for request in self._to_requests(STILL, None)] if self._is_engaged else []

    def _command(self, exchange: Exchange, velocity: BodyVelocity, attitude: Any) -> None:
        def answered(answer: sim.Response) -> None:
            self._unanswered -= 1
            if isinstance(answer, sim.Error):
                entity = self._parameter("vehicle")
                sentence = f"The simulator refuses to steer entity {entity} (code {answer.code})."
                exchange.note("refused_velocities", "" if self._is_refused else sentence)
                self._is_refused = True

        self._sent = velocity
        self._unanswered += self._send(exchange, velocity, attitude, answered)

    def _send(self, exchange: Exchange, velocity: BodyVelocity, attitude: Any, on_answer: OnAnswer) -> int:
        """Return how many answers are to come: what can't be encoded is counted, and ends no link."""
        send, refuse = partial(exchange.send, on_answer=on_answer), partial(exchange.note, UNENCODABLE)
        requests = self._to_requests(velocity, attitude)
        return sum(encoded(send, request, None, refuse) is not None for request in requests)
