# SPDX-License-Identifier: Apache-2.0
"""Client script of the kestrel that takes off, follows a plan, and lands.

drone-bridge operate kestrel --plan '4s forward 0.5'
"""

import contextlib
import sys

from drone_bridge.net.blocking import receive
from drone_bridge.net.connector import LinkCancelledError, LinkError, LinkRefusedError
from drone_bridge.net.datagram_link import DatagramPeer
from drone_bridge.programs.operator import Operator
from drone_bridge.programs.operator_options import OperatorParser
from drone_bridge.programs.options import positive
from drone_bridge.programs.program import print_event, print_retry, run_program
from drone_bridge.wire import RemoteProtocolError
from kestrel_bridge.codec import (
    DEFAULT_PORT,
    FULL,
    WORDS,
    Answer,
    ClientConnection,
    Hello,
    Land,
    State,
    Steer,
    TakeOff,
)

PERIOD_S = 0.05
PATIENCE_S = 15.0  # timeout of an answer; a request is not retried, since its answer may be in transit
HELLO_PERIOD_S = 1.0


class Client(Operator):
    """Operator of a drone: greets it, and sends requests and axes."""

    period_s = PERIOD_S

    def __init__(self, drone, options, cancellation) -> None:
        super().__init__(options.plan, cancellation)
        self._drone, self._options = drone, options
        self._protocol = ClientConnection()
        self._asked = ""
        self._answer: Answer | None = None
        self._received_s = self._greeted_s = self.now_s()
        self.state: State | None = None

    def prepare(self) -> None:
        """Greet until the drone answers, and take off. Raises LinkError if it refuses."""
        while not (self._ask(Hello(), HELLO_PERIOD_S) and self.state):
            self.wait(HELLO_PERIOD_S)
        if not self._options.in_the_air:
            self._fly(TakeOff())

    def steer(self, leg) -> str:
        """Send axes, and greet a silent drone, since one that has restarted has no client."""

        def share(value: float, full: float) -> int:
            return round(FULL * max(-1.0, min(1.0, value / full)))

        now_s = self.now_s()
        if min(now_s - self._received_s, now_s - self._greeted_s) > HELLO_PERIOD_S:
            self._greeted_s = now_s
            self._send(Hello())
        speed, turn = self._options.full_speed, self._options.full_turn
        axes = (share(leg.left, speed), share(leg.forward, speed), share(leg.up, speed), share(leg.turn, turn))
        self._send(Steer(*axes))
        return str(self.state)

    def finish(self) -> None:
        self._send(Steer())
        if not self._options.in_the_air:
            self._fly(Land())

    def leave(self) -> None:
        with contextlib.suppress(LinkError):
            self._send(Steer())

    def listen(self, timeout_s: float) -> None:
        try:
            data = receive(self._drone, self.cancellation, timeout_s).data
        except LinkRefusedError:
            return  # it does not listen yet
        self._protocol.receive_data(data)
        self._received_s = self.now_s()
        try:
            for event in self._protocol.events():
                if not isinstance(event, Answer):
                    self.state = event
                elif event.request == self._asked:
                    self._answer = event
        except RemoteProtocolError as error:
            print_event(f"rejected a datagram: {error}")

    def _send(self, message) -> None:
        with contextlib.suppress(LinkRefusedError):
            self._drone.send(self._protocol.send(message), None)

    def _fly(self, request) -> None:
        if not self._ask(request):
            raise LinkError(f"The drone did not confirm {WORDS[type(request)]}.")

    def _ask(self, request, patience_s: float = PATIENCE_S) -> bool:
        """Send a request. Return whether the answer is ok; False without one."""
        self._asked, self._answer = WORDS[type(request)], None
        self._send(request)
        self.wait(patience_s, until=lambda: self._answer is not None)
        print_event(f"{type(request).__name__}: {self._answer or 'no answer'}")
        return bool(self._answer and self._answer.is_ok)


def operate(options, cancellation, stack) -> int:
    """Fly the plan. Raises LinkError."""
    drone = DatagramPeer(options.host, options.port, print_retry, cancellation=cancellation)
    stack.callback(drone.close)
    with contextlib.suppress(LinkCancelledError):
        drone.open()
        Client(drone, options, cancellation).run()
    return 0


def main(arguments=None) -> int:
    """Run the program; return its exit code."""
    parser = OperatorParser("kestrel", "A client of the kestrel that follows a plan.", DEFAULT_PORT, "the drone")
    parser.add_argument("--in-the-air", action="store_true", help="steer from the start, without takeoff and landing")
    drone = parser.add_argument_group("drone: meaning of its commands")
    drone.add_argument("--full-speed", type=positive, default=2.0, help="at full deflection, m/s (%(default)s)")
    drone.add_argument("--full-turn", type=positive, default=1.5, help="at full deflection, rad/s (%(default)s)")
    return run_program("kestrel operator", operate, parser.parse_args(arguments))


if __name__ == "__main__":
    sys.exit(main())
