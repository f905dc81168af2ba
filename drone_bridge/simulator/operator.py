# SPDX-License-Identifier: Apache-2.0
"""ScriptedSimulatorClient: operator of the underwater simulator, which follows a plan and prints the streamed state.

    drone-bridge operate simulator --plan '4s forward 0.5, 3s turn 0.5'

Like other clients, it first runs the world, then repeatedly sets v in the world frame and w in the vehicle's frame. The
vehicle's state is streamed on a second connection, since real servers interleave streams and answers wrongly.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import sys
import time
from collections.abc import Sequence
from typing import Any

from drone_bridge.motion.wxyz import Vector, WxyzQuaternion, rotate
from drone_bridge.net.connector import Cancellation, LinkCancelledError, LinkError
from drone_bridge.net.tcp_connection import StreamOptions
from drone_bridge.net.tcp_peer import TcpPeer
from drone_bridge.programs.one_stream import OneStream
from drone_bridge.programs.operator import Operator
from drone_bridge.programs.operator_options import OperatorParser
from drone_bridge.programs.plan import REST, Leg, Plan
from drone_bridge.programs.program import print_event, print_retry, run_program
from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.codec import NEED_DATA, VEHICLE, Attribute
from drone_bridge.wire.addresses import address_name

SEND_PERIOD_S = 0.05
ANSWER_TIMEOUT_S = 10.0
STREAMED = (Attribute.POSITION, Attribute.VELOCITY, Attribute.ORIENTATION, Attribute.ANGULAR_VELOCITY)


class OperatorConnection:
    """Connection that sends requests, waits for answers, and queues other messages."""

    def __init__(self, stream: OneStream) -> None:
        self.news: list[sim.Response] = []  # out-of-band messages
        self._stream = stream
        self._connection = sim.ClientConnection()

    def ask(self, request: sim.Request) -> sim.Response:
        """Return the answer, which may be an Error. Raises LinkError and RemoteProtocolError."""
        self._stream.send(self._connection.send(request))  # in one piece, as real servers require
        deadline_s = time.monotonic() + ANSWER_TIMEOUT_S
        while not (answers := self._read(deadline_s)):
            continue
        return answers[0].response

    def listen(self, timeout_s: float) -> None:
        """Wait for messages. Raises LinkTimeoutError."""
        self._read(time.monotonic() + timeout_s)

    def leave(self, *requests: sim.Request) -> None:
        """Send the last messages, and wait for the server to close first, as real servers require."""
        self._stream.leave(*map(sim.frame, requests))

    def _read(self, deadline_s: float) -> list[sim.Answer]:
        data = self._stream.receive(max(0.0, deadline_s - time.monotonic()))
        if not data:
            raise LinkError(f"{self._stream.peer} closed the connection.")
        self._connection.receive_data(data)
        answers = []
        while (event := self._connection.next_event()) is not NEED_DATA:
            if isinstance(event, sim.Answer):
                answers.append(event)
            elif isinstance(event, sim.Response):
                self.news.append(event)
        return answers


class ScriptedSimulatorClient(Operator):
    """Operator that steers the vehicle and tracks its state."""

    period_s = SEND_PERIOD_S

    def __init__(
        self,
        requests: OperatorConnection,
        streams: OperatorConnection,
        vehicle: int,
        plan: Plan,
        cancellation: Cancellation,
    ) -> None:
        super().__init__(plan, cancellation)
        self._requests, self._streams, self._vehicle = requests, streams, vehicle
        #: Simulated seconds per second of the wall clock. Plans use simulated time.
        self._speed = 1.0
        #: Newest orientation of the vehicle. None while unknown.
        self.attitude: WxyzQuaternion | None = None

    @property
    def elapsed_s(self) -> float:
        return super().elapsed_s * self._speed

    def prepare(self) -> None:
        """Run the world, and wait for the stream of the vehicle's state. Raises LinkError."""
        for request in (sim.GetConfig(), sim.ListEntities(), sim.Run()):
            answer = self._requests.ask(request)
            print_event(f"{request.NAME}: {describe(answer)}")
            if isinstance(answer, sim.Configured):
                self._note_speed(answer)
        stream = sim.StreamEntity(self._vehicle, 1, STREAMED)
        answer = self._streams.ask(stream)
        print_event(f"{stream.NAME}: {describe(answer)}")
        if isinstance(answer, sim.Error):
            raise LinkError(f"The simulator does not stream entity {self._vehicle}: {answer.message}")
        self.wait(math.inf, until=lambda: self.attitude is not None)

    def _note_speed(self, configured: sim.Configured) -> None:
        if configured.non_real_time:
            print_event("the simulator is not real-time: the plan is in wall time")
        elif configured.speed > 0:
            self._speed = configured.speed
            if self._speed != 1.0:
                print_event(f"the plan is in simulated time: {self._speed:g} s per second")

    def listen(self, timeout_s: float) -> None:
        if not self._streams.news:
            self._streams.listen(timeout_s)
        for news in self._streams.news:
            if isinstance(news, sim.EntityData):
                self._take(news)
        self._streams.news.clear()
        self._requests.news.clear()

    def _take(self, data: sim.EntityData) -> None:
        x, v, q, w = data.values
        self.attitude = q  # type: ignore[assignment] # four numbers, as the wire has it
        if self.is_report_due():
            print_event(f"received x {_numbers(x)} m, v {_numbers(v)} m/s, q {_numbers(q)}, w {_numbers(w)} rad/s")

    def steer(self, leg: Leg) -> str:
        requests = self.requests_for(leg)
        for request in requests:
            answer = self._requests.ask(request)
            if isinstance(answer, sim.Error):
                print_event(f"{request.NAME} was refused: {answer.message}")
        return ", ".join(f"{name} {_numbers(request.value)}" for name, request in zip("vw", requests, strict=True))

    def finish(self) -> None:
        self.steer(REST)

    def leave(self) -> None:
        """Wait for the server to close first, as real servers require."""
        for client, requests in ((self._requests, self.requests_for(REST)), (self._streams, ())):
            with contextlib.suppress(LinkError):  # a lost connection is reported by its own error
                client.leave(*requests)

    def requests_for(self, leg: Leg) -> tuple[sim.SetEntity, sim.SetEntity]:
        """Return the requests that set a leg's velocities. v is in world axes, so it depends on the attitude."""
        body: Vector = (leg.forward, -leg.left, -leg.up)
        v = rotate(self.attitude, body) if self.attitude else (0.0, 0.0, 0.0)
        w = (0.0, 0.0, -leg.turn)
        return (
            sim.SetEntity(self._vehicle, Attribute.VELOCITY, v),
            sim.SetEntity(self._vehicle, Attribute.ANGULAR_VELOCITY, w),
        )


def describe(answer: sim.Response) -> str:
    """Return an answer as text."""
    if isinstance(answer, sim.Error):
        return f"error {answer.code}, {answer.message}"
    if isinstance(answer, sim.EntitiesListed):
        return f"entities {', '.join(map(str, answer.ids)) or 'none'}"
    if isinstance(answer, sim.Configured):
        return f"{answer.frequency:g} steps per second"
    return type(answer).__name__.lower()


def _numbers(values: Any) -> str:
    return " ".join(f"{value:.3f}" for value in values)


def operate(options: argparse.Namespace, cancellation: Cancellation, stack: contextlib.ExitStack) -> int:
    """Follow the plan. Raises LinkError if the connection is lost."""
    with contextlib.suppress(LinkCancelledError):
        requests, streams = (OperatorConnection(_connected(options, cancellation, stack)) for _ in range(2))
        print_event(f"connected to {address_name(options.host, options.port)}")
        ScriptedSimulatorClient(requests, streams, VEHICLE, options.plan, cancellation).run()
    return 0


def _connected(options: argparse.Namespace, cancellation: Cancellation, stack: contextlib.ExitStack) -> OneStream:
    link = TcpPeer(
        options.host,
        options.port,
        print_retry,
        options=StreamOptions(acknowledges_at_once=True),
        cancellation=cancellation,
    )
    stack.callback(link.close)
    stream = OneStream(link, cancellation)
    stream.open()
    return stream


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program. Return its exit status."""
    return run_program("simulator", operate, parse(arguments))


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line. Exits with a message on errors."""
    parser = OperatorParser("simulator", "Scripted client of the simulator.", sim.DEFAULT_PORT, "the simulator")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
