# SPDX-License-Identifier: Apache-2.0
"""ScriptedClient: operator of any Robot, which follows a plan: `drone-bridge operate <name> --plan '4s forward 0.5'`.

There are two threads. The thread of a LinkLoop runs the session of the bridge, with the plan's velocity in place of the
arbiter's. The main thread prints the legs and waits.
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.motion.limits import LimitParameters, Limits
from drone_bridge.motion.observed_motion import ObservedMotion
from drone_bridge.net.clock import elapsed_s
from drone_bridge.net.connector import Cancellation, LinkCancelledError, LinkError
from drone_bridge.net.link_loop import Link, LinkLoop
from drone_bridge.programs.operator import Operator
from drone_bridge.programs.operator_options import OperatorParser
from drone_bridge.programs.options import port
from drone_bridge.programs.plan import Leg
from drone_bridge.programs.program import print_event, print_retry, run_program
from drone_bridge.robot_class.client_session import ClientSession
from drone_bridge.robot_class.connection import Told
from drone_bridge.robot_class.links import client_link
from drone_bridge.robot_class.robot import Robot, Telemetry
from drone_bridge.robot_class.session_output import SessionOutput
from drone_bridge.session.arbiter import Decision, Rank
from drone_bridge.session.feedback import Feedback
from drone_bridge.session.session import Outcome
from drone_bridge.session.tilt_pilot import TiltPilot
from drone_bridge.wire.addresses import address_name

LOOK_S = 0.05
#: Timeout of the first telemetry before the plan starts: some robots report nothing.
TELEMETRY_S = 3.0
#: See the bridge's parameter.
COMMAND_TIMEOUT_S = 0.5


@dataclass(slots=True)
class _Request:
    """Request with its outcome."""

    name: str
    asked_s: float


class _Wish(SessionOutput):
    """Arbiter of the session with the plan's velocity, and receiver of its events."""

    def __init__(self) -> None:
        self.velocity = BodyVelocity()
        self.newest: Telemetry | None = None
        self.outcome: Outcome | None = None

    def decide(self, now_s: float) -> Decision[Any]:
        return Decision(Rank.COMMAND, self.velocity)

    def rank(self, now_s: float) -> Rank:
        return Rank.COMMAND

    def start(self, now_s: float) -> None:
        """Do nothing: the plan continues."""

    def forget(self) -> None:
        """Do nothing, likewise."""

    def publish_event(self, message: Told) -> None:
        self.newest = message.meaning

    def resolve(self, outcome: Outcome) -> None:
        self.outcome = outcome


class ScriptedClient(Operator):
    """Operator that follows a plan by a client's session."""

    def __init__(self, robot: type[Robot], link: Link, options: argparse.Namespace, cancellation: Cancellation) -> None:
        """Start to greet the robot."""
        super().__init__(options.plan, cancellation)
        self._wish = _Wish()
        parameters = {"rate": robot.rate, "link_timeout": robot.silence_s, "command_timeout": COMMAND_TIMEOUT_S}
        peer = address_name(options.host, options.port)
        is_stream = robot.transport == "tcp"
        arbiter: Any = self._wish
        pilot = TiltPilot(arbiter, robot.drone, hovers=robot.hovers) if robot.drone else None
        observed = ObservedMotion(elapsed_s)
        feedback = Feedback(observed, Limits(LimitParameters(), observed), pilot)
        self._session = ClientSession(
            robot, arbiter, parameters.__getitem__, peer, feedback, pilot=pilot, is_stream=is_stream
        )
        self._loop = LinkLoop(f"{robot.name} operator", link, self._session, self._wish)
        self._loop.start()
        self._flies = "takeoff" in robot.requests and not getattr(options, "in_the_air", False)
        self._requests = robot.requests

    def prepare(self) -> None:
        """Wait for the end of the greeting, and take off if supported. Raises LinkError on a refusal."""
        while not self._session.is_open:
            self.listen(LOOK_S)
        self.wait(TELEMETRY_S, until=lambda: self._wish.newest is not None)
        print_event(f"connected to {self._session.peer}")
        if self._flies:
            self._ask("takeoff")

    def steer(self, leg: Leg) -> str:
        self._wish.velocity = BodyVelocity(leg.forward, leg.left, leg.up, turn=leg.turn)
        return described(self._wish.newest)

    def finish(self) -> None:
        self._wish.velocity = BodyVelocity()
        if self._flies and "land" in self._requests:
            self._ask("land")

    def leave(self) -> None:
        self._loop.stop()
        print_event(f"ended: {described(self._wish.newest)}")

    def listen(self, timeout_s: float) -> None:
        if self.cancellation.wait(min(timeout_s, LOOK_S)):
            raise LinkCancelledError("Waiting was cancelled.")

    def _ask(self, name: str) -> None:
        """Send a request and wait for its outcome. Raises LinkError."""
        self._wish.outcome = None
        self._loop.post(partial(self._session.ask, _Request(name, elapsed_s())), is_kept=True)
        while (outcome := self._wish.outcome) is None:
            self.listen(LOOK_S)
        print_event(f"{name}: {outcome.sentence}")
        if not outcome.is_success:
            raise LinkError(f"{name} was refused: {outcome.sentence}")


def described(telemetry: Telemetry | None) -> str:
    """Return telemetry as text, in m, rad and V."""
    if telemetry is None:
        return "no telemetry"
    parts = []
    if telemetry.position:
        parts.append("at {:.2f} {:.2f} {:.2f} m".format(*telemetry.position))
    for name, value, unit in (("yaw", telemetry.yaw, "rad"), ("height", telemetry.height, "m")):
        if value is not None:
            parts.append(f"{name} {value:.2f} {unit}")
    return ", ".join(parts) or "telemetry"


def operate(
    robot: type[Robot], options: argparse.Namespace, cancellation: Cancellation, stack: contextlib.ExitStack
) -> int:
    """Follow the plan. Raises LinkError and ValueError."""
    link = client_link(
        robot,
        options.host,
        options.port,
        print_retry,
        state_port=options.state_port if robot.state_port else 0,
        serial=options.serial if robot.transport == "tcp" else "",
    )
    ScriptedClient(robot, link, options, cancellation).run()
    return 0


def main(robot: type[Robot], arguments: Sequence[str] | None = None) -> int:
    """Run the program. Return its exit status."""
    parser = OperatorParser(robot.name, f"Client of {robot.summary} that follows a plan.", robot.port, "the robot")
    if robot.state_port:
        parser.link.add_argument("--state-port", type=port, default=robot.state_port, help="ours (%(default)s)")
    if robot.transport == "tcp":
        parser.link.add_argument("--serial", default="", help="serial line to the robot, instead of host and port")
    if "takeoff" in robot.requests:
        parser.add_argument("--in-the-air", action="store_true", help="steer from the start, without takeoff or land")
    return run_program(f"{robot.name} operator", partial(operate, robot), parser.parse_args(arguments))
