# SPDX-License-Identifier: Apache-2.0
"""Simulated Robot behind its own description: `drone-bridge emulate <name>`.

There are two threads. The thread of a LinkLoop runs the session, and sets the body's wanted velocity. The main thread
advances the body.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import sys
from collections.abc import Sequence
from functools import partial
from typing import Any

from drone_bridge.kind import kinds, load, unloadable
from drone_bridge.net.clock import Clock, elapsed_s
from drone_bridge.net.connector import Cancellation
from drone_bridge.net.link_loop import INTERNAL_ERRORS, Link, LinkLoop
from drone_bridge.net.serial_line import PseudoTerminal
from drone_bridge.programs.options import ProgramParser, add_ports, add_run, add_sizes, port
from drone_bridge.programs.program import CANNOT_START, TrajectoryFile, print_event, run_program
from drone_bridge.programs.session_output import SessionOutput
from drone_bridge.robot_class.links import robots_link
from drone_bridge.robot_class.robot import (
    Command,
    Robot,
    Telemetry,
    created,
    first_link,
    further_links,
    port_parameters,
    sized,
)
from drone_bridge.robot_class.vehicle.body import EmulatedBody
from drone_bridge.robot_class.vehicle.robot_session import CLASS_ERRORS, RobotClassVehicleSession
from drone_bridge.session.node_parameters import NodeParameters
from drone_bridge.session.session import Note
from drone_bridge.session.stall_detector import StallDetector
from drone_bridge.wire.addresses import address_name

STEP_S = 0.02
COLUMNS = ("time", "x", "y", "z", "heading", "forward")
#: Silence after which a client may lose its place to the next one.
SILENCE_S = 5.0


class BodyClock(Clock):
    """Clock of a body, which stands still while this process is stalled: nothing sent to a real one is dropped then."""

    def __init__(self) -> None:
        self._steady_s = super().now_s()
        #: The newest time, s, for other threads.
        self.latest_s = 0.0

    def now_s(self) -> float:
        """See Clock. For one thread."""
        before_s, self._steady_s = self._steady_s, super().now_s()
        self.latest_s += min(self._steady_s - before_s, StallDetector.STALL_S / 2)
        return self.latest_s


class _World(SessionOutput):
    """Body as used by its session. An error in a method of its class ends the emulator."""

    failure = ""

    def __init__(self, robot: type[Robot], cancellation: Cancellation) -> None:
        self._cancellation = cancellation
        self.body, self._robot = EmulatedBody(robot), robot
        self.loop: LinkLoop | None = None
        self.clock, self._received_s = BodyClock(), 0.0
        self.parameters = NodeParameters(robot.robot_stops_after_s or math.inf, SILENCE_S)
        self.session: RobotClassVehicleSession
        self._called: list[tuple[str, Any, str]] = []  # requests that are not answered yet, and why if refused

    def telemetry(self) -> Telemetry:
        return self.body.telemetry()

    def step(self, seconds: float) -> None:
        """Advance the body, and answer the requests that are done.

        A robot that `lands_itself` lands after the time of its watchdog without a packet.
        """
        self._received_s = max(self._received_s, self.session.received_s or 0.0)
        if self._robot.lands_itself and self.clock.latest_s - self._received_s > self.parameters.command_timeout:
            self.body.request("land")
        self.body.step(seconds)
        for called in [*self._called]:
            name, tag, refusal = called
            if (reason := refusal or self.body.outcome(name)) is not None:
                self._called.remove(called)
                print_event(f"{name}: {reason or 'ok'}")
                if self.loop:
                    self.loop.post(partial(self.session.answered, tag, not reason, reason), is_kept=True)

    def publish_event(self, message: Command) -> None:
        self.body.wanted = message

    def note(self, note: Note) -> None:
        if note.counter not in (INTERNAL_ERRORS, CLASS_ERRORS):
            super().note(note)
        elif not self.failure:
            self.failure = note.sentence
            self._cancellation.cancel()

    def call_service(self, name: str, tag: Any) -> None:
        self._called.append((name, tag, self.body.request(name)))


def emulate(
    robot: type[Robot], options: argparse.Namespace, cancellation: Cancellation, stack: contextlib.ExitStack
) -> int:
    """Run until cancelled, or for --duration. Raises LinkError and OSError."""
    trajectory = TrajectoryFile.wanted(options.trajectory, COLUMNS, stack)
    robot = sized(robot, partial(getattr, options))
    if isinstance(reason := created(robot), str):
        raise ValueError(reason)
    path: str | None = getattr(options, "pty", None)
    baud = getattr(first_link(robot), "baud", 0)
    link: Link = PseudoTerminal(path, baud) if path else robots_link(robot, options.host, options.port)
    print_event(f"listening on {path or address_name(options.host, link.port)}")
    world = _World(robot, cancellation)
    body = world.body
    body.has_walls = getattr(options, "walls", False)
    if getattr(options, "in_the_air", False):
        body.begin_in_the_air()
    port = next((getattr(options, f"{name}_port") for name in further_links(robot)), 0)
    world.session = RobotClassVehicleSession(
        robot, world.parameters, world.telemetry, report_port=port, is_body=True, is_line=bool(path)
    )
    if robot.camera and robot.camera.link:
        try:
            from drone_bridge.robot_class.vehicle.emulated_video import EmulatedVideo

            viewer = partial(getattr, world.session, "viewer")
            video = EmulatedVideo(robot.camera, body, options.host, options.camera_port, viewer)
            stack.callback(video.close)
            world.session.has_video = True
        except ImportError as error:
            print_event(f"no video: {error}")
    world.loop = LinkLoop(f"{robot.name} emulator", link, world.session, world, world.clock)
    world.loop.start()
    stack.callback(world.loop.stop)
    steps, due_s, was_moving = 0, elapsed_s(), False
    while not cancellation.wait(max(0.0, due_s - elapsed_s())):
        if options.duration is not None and steps * STEP_S >= options.duration:
            break
        world.step(STEP_S)
        steps, due_s = steps + 1, max(due_s + STEP_S, elapsed_s() - STEP_S)
        if body.is_moving is not was_moving:
            was_moving = body.is_moving
            print_event(f"{'moves' if was_moving else 'stands'} at {body.x:.2f} {body.y:.2f} {body.z:.2f} m")
        if trajectory:
            trajectory.write((body.time_s, body.x, body.y, body.z, body.heading, body.velocity.forward))
    print_event(f"ended: at {body.x:.2f} {body.y:.2f} {body.z:.2f} m, heading {body.heading:.2f} rad")
    if world.failure:
        print(f"{robot.name}: {world.failure.strip()}", file=sys.stderr)  # of the launch, the reason
    return int(bool(world.failure))


def main(robot: type[Robot], arguments: Sequence[str] | None = None) -> int:
    """Run the program. Return its exit status."""
    parser = ProgramParser("emulate", robot.name, f"Simulation of {robot.summary}.", "after --duration")
    link = parser.add_argument_group("link")
    link.add_argument("--host", default="127.0.0.1", help="address to listen on (%(default)s)")
    link.add_argument("--port", type=port, default=first_link(robot).port, help="0: a free one (%(default)s)")
    add_ports(link, port_parameters(robot), "of the client")
    add_sizes(link, robot.sizes)
    if robot.KIND.is_stream and not further_links(robot):
        link.add_argument("--pty", metavar="PATH", help="instead, a pseudo-terminal with this link, as a serial line")
    if "takeoff" in robot.requests:
        parser.add_argument("--in-the-air", action="store_true", help="start in the air")
    if robot.bumpers:
        parser.add_argument("--walls", action="store_true", help="walls that press its bumpers, the first 3 m ahead")
    add_run(parser, duration="seconds")
    return run_program(robot.name, partial(emulate, robot), parser.parse_args(arguments))


def named() -> int:
    """Run the emulator of the robot that the first argument names, as the executable of launch files.

    An option with an empty value gets its default: launch files pass on arguments that the user left out.
    """
    name, *words = sys.argv[1:] or [""]
    if name in ("-h", "--help"):
        print("usage: robot_class_emulator <robot> [options]\n\nexample: robot_class_emulator tello --duration 60")
        return 0
    kind = kinds().get(name)
    if kind is None or kind.emulator is None:
        reason = unloadable().get(name)
        problem = f"Robot {name!r} can't be loaded: {reason}" if reason else f"Robot {name!r} has no emulator installed"
        print(f"{problem.rstrip('.')}.", file=sys.stderr)
        return CANNOT_START
    return int(load(kind.emulator.main)([word for word in words if not word.endswith("=")]))
