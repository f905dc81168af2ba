# SPDX-License-Identifier: Apache-2.0
"""A client of the kestrel that takes off, follows a plan, and lands.

drone-bridge operate kestrel --plan '4s forward 0.5'
"""

import contextlib
import sys
import time

from drone_bridge.net.blocking import receive
from drone_bridge.net.connector import LinkCancelledError, LinkError, LinkRefusedError, LinkTimeoutError
from drone_bridge.net.datagram_link import DatagramPeer
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
PATIENCE_S = 15.0  # for an answer; a request is not sent twice, as its answer may be on its way
HELLO_PERIOD_S = 1.0


class Client:
    """Talks to the drone."""

    def __init__(self, drone, cancellation) -> None:
        self._drone, self._cancellation = drone, cancellation
        self._protocol = ClientConnection()
        self._asked = ""
        self._answer: Answer | None = None
        self._heard_s = self._greeted_s = time.monotonic()
        self.state: State | None = None

    def send(self, message) -> None:
        """Send a message; that nobody listens yet is no failure."""
        with contextlib.suppress(LinkRefusedError):
            self._drone.send(self._protocol.send(message), None)

    def greet_again(self) -> None:
        """Greet a drone that is silent, as one that has restarted knows no client."""
        now_s = time.monotonic()
        if min(now_s - self._heard_s, now_s - self._greeted_s) > HELLO_PERIOD_S:
            self._greeted_s = now_s
            self.send(Hello())

    def receive_for(self, seconds: float) -> None:
        """Receive for a time. Raises LinkCancelledError."""
        due_s = time.monotonic() + seconds
        while (left_s := due_s - time.monotonic()) > 0:
            with contextlib.suppress(LinkTimeoutError, LinkRefusedError):
                self._take(receive(self._drone, self._cancellation, left_s).data)

    def ask(self, request, patience_s: float = PATIENCE_S) -> bool:
        """Send a request; return whether the answer is ok, False without one."""
        self._asked, self._answer, until_s = WORDS[type(request)], None, time.monotonic() + patience_s
        self.send(request)
        while self._answer is None and time.monotonic() < until_s:
            self.receive_for(PERIOD_S)
        print_event(f"{type(request).__name__}: {self._answer or 'no answer'}")
        return bool(self._answer and self._answer.is_ok)

    def _take(self, data: bytes) -> None:
        self._protocol.receive_data(data)
        self._heard_s = time.monotonic()
        try:
            for event in self._protocol.events():
                if not isinstance(event, Answer):
                    self.state = event
                elif event.request == self._asked:
                    self._answer = event
        except RemoteProtocolError as error:
            print_event(f"received something invalid: {error}")


def operate(options, cancellation, stack) -> int:
    """Fly the plan; return 0 if take-off and landing, if any, were confirmed. Raises LinkError."""
    drone = DatagramPeer(options.host, options.port, print_retry, cancellation=cancellation)
    stack.callback(drone.close)
    with contextlib.suppress(LinkCancelledError):
        drone.open()
        client = Client(drone, cancellation)
        try:
            while not (client.ask(Hello(), HELLO_PERIOD_S) and client.state):
                client.receive_for(HELLO_PERIOD_S)
            if not (options.in_the_air or client.ask(TakeOff())):
                return 1
            follow(options, client)
            return int(not (options.in_the_air or client.ask(Land())))
        finally:
            with contextlib.suppress(LinkError):
                client.send(Steer())
    return 0


def follow(options, client) -> None:
    """Steer along the plan. Raises LinkCancelledError."""
    began_s, leg = time.monotonic(), None
    while (elapsed_s := time.monotonic() - began_s) < options.plan.duration_s:
        if (now := options.plan.leg_at(elapsed_s)) is not leg:
            leg = now
            print_event(f"{leg}: {client.state}")

        def share(value: float, full: float) -> int:
            return round(FULL * max(-1.0, min(1.0, value / full)))

        speed, turn = options.full_speed, options.full_turn
        axes = (share(leg.left, speed), share(leg.forward, speed), share(leg.up, speed), share(leg.turn, turn))
        client.greet_again()
        client.send(Steer(*axes))
        client.receive_for(PERIOD_S)
    client.send(Steer())


def main(arguments=None) -> int:
    """Run the program; return its exit code."""
    parser = OperatorParser("kestrel", "A client of the kestrel that follows a plan.", DEFAULT_PORT, "the drone")
    parser.add_argument("--in-the-air", action="store_true", help="steer from the start, without take-off and landing")
    drone = parser.add_argument_group("drone: what its commands mean")
    drone.add_argument("--full-speed", type=positive, default=2.0, help="at full deflection, m/s (%(default)s)")
    drone.add_argument("--full-turn", type=positive, default=1.5, help="at full deflection, rad/s (%(default)s)")
    return run_program("kestrel operator", operate, parser.parse_args(arguments))


if __name__ == "__main__":
    sys.exit(main())
