# SPDX-License-Identifier: Apache-2.0
"""Steering: repeats the arbiter's velocity for the vehicle. Pure, with the time as an argument.

A vehicle in the simulator has no watchdog: it keeps its last velocity. A bridge that connects therefore first sends
zero, in case an earlier one was killed while the vehicle moved. Another client that steers can't be distinguished from
that, and its vehicle is stopped as well.

| state | sent, at most at `rate` | ends |
|---|---|---|
| released | nothing, after the zero of a new connection | engaged, by a command with known attitude, or on hold |
| engaged | the command; zero on hold, and without a command | released, after `release_after` without a command |

A slow simulator gets the newest velocity after it has answered, but a stop is immediate. One that leaves a request
unanswered for UNANSWERED_S gets zero once, and nothing more. After a stall of this process, the last velocity is
repeated, or replaced by zero.
"""

import math
from functools import partial
from typing import Any, NoReturn

from drone_bridge.motion.body_velocity import STILL, BodyVelocity
from drone_bridge.session.arbiter import CommandSource, Rank
from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.session.client_parameters import SimulatorClientParameters
from drone_bridge.simulator.session.exchange import (
    REFUSED_VELOCITIES,
    UNSTEERED,
    VELOCITIES,
    Exchange,
    OnAnswer,
    ignore,
)
from drone_bridge.simulator.session.heading import Heading
from drone_bridge.simulator.units import set_velocity
from drone_bridge.wire.outgoing import UNENCODABLE, encoded

#: A local simulator answers within 1 ms, a busy one within several 10 ms.
UNANSWERED_S = 0.3
_UNKNOWN_ATTITUDE = (
    "The vehicle can't be steered: its attitude is unknown. Either it does not exist, or the rotation from its "
    "principal axes to its model has not been learned, which takes a moment while the simulation is paused."
)


class Steering:
    """Steering of the vehicle, across all connections."""

    def __init__(self, arbiter: CommandSource[NoReturn], parameters: SimulatorClientParameters) -> None:
        """`parameters` may change at any time."""
        self._arbiter, self._parameters = arbiter, parameters
        #: Time of the next `turn`. A new command makes it due now.
        self.due_s = math.inf
        self._is_engaged = False
        self._stale_since_s: float | None = None
        self._sent_s = -math.inf
        self._unanswered = 0
        self._sent: BodyVelocity | None = None

    def begin(self, exchange: Exchange) -> None:
        """Stop the vehicle on a new connection, and forget earlier commands."""
        self._arbiter.forget()
        self._unanswered, self._sent = 0, None
        self._sent_s = self.due_s = -math.inf
        self._stale_since_s = exchange.now_s if self._is_engaged else None
        self._send(exchange, STILL, None, ignore)  # a missing vehicle is reported by the request for its state

    def resume(self) -> None:
        """Send at the next `turn`: a velocity from before a stall of this process may be in flight."""
        self._sent_s = self.due_s = -math.inf

    def turn(self, exchange: Exchange, heading: Heading) -> None:
        """Send a velocity if due. Without an attitude, only zero can be sent, as forward is unknown."""
        now_s = exchange.now_s
        if now_s < self.due_s:
            return
        period_s = 1.0 / self._parameters.rate
        self.due_s = self._sent_s + period_s
        if now_s < self.due_s:
            return
        decision = self._arbiter.decide(now_s)
        # Other clients may steer it as well. On hold, zero is therefore repeated.
        command = STILL if decision.rank is Rank.HOLD else decision.command
        if command is None and not self._is_engaged:
            self.due_s = math.inf
            return
        self._sent_s, self.due_s = now_s, now_s + period_s
        if command is not None:
            if heading.attitude is None and command != STILL:
                sentence = _UNKNOWN_ATTITUDE if heading.is_settled else ""  # it is learned within 4 s of a connection
                exchange.note(UNSTEERED, sentence, is_ongoing=True)
                return
            self._is_engaged, self._stale_since_s = True, None
        elif self._stale_since_s is None:
            self._stale_since_s = now_s
        is_slow = now_s >= exchange.requests.unanswered_since_s + UNANSWERED_S
        velocity = STILL if command is None or is_slow else command
        if self._unanswered and (velocity != STILL or self._sent == STILL):
            exchange.note("late_velocities")
            return
        self._command(exchange, velocity, heading.attitude)
        exchange.note(VELOCITIES)
        release_s = self._parameters.release_after
        if self._stale_since_s is not None and release_s and now_s - self._stale_since_s >= release_s:
            self._is_engaged, self._stale_since_s = False, None

    @property
    def is_moving(self) -> bool:
        """Whether the vehicle is steered, and the last velocity was not zero."""
        return self._is_engaged and self._sent not in (None, STILL)

    def last_requests(self) -> list[bytes]:
        """Return the last messages, which stop a steered vehicle."""
        return [sim.frame(request) for request in self._requests(STILL, None)] if self._is_engaged else []

    def _command(self, exchange: Exchange, velocity: BodyVelocity, attitude: Any) -> None:
        def answered(answer: sim.Response) -> None:
            self._unanswered -= 1
            if isinstance(answer, sim.Error):
                entity = self._parameters.vehicle
                sentence = f"The simulator refused to steer entity {entity} (code {answer.code})."
                exchange.note(REFUSED_VELOCITIES, sentence, is_ongoing=True)

        self._sent = velocity
        self._unanswered += self._send(exchange, velocity, attitude, answered)

    def _send(self, exchange: Exchange, velocity: BodyVelocity, attitude: Any, on_answer: OnAnswer) -> int:
        """Return the number of expected answers. A request that can't be encoded is counted and dropped."""
        send, refuse = partial(exchange.send, on_answer=on_answer), partial(exchange.note, UNENCODABLE)
        requests = self._requests(velocity, attitude)
        return sum(encoded(send, request, None, refuse) is not None for request in requests)

    def _requests(self, velocity: BodyVelocity, attitude: Any) -> tuple[sim.SetEntity, sim.SetEntity]:
        return set_velocity(self._parameters.vehicle, velocity, attitude)
