# SPDX-License-Identifier: Apache-2.0
"""An emulated testbed: a drone in a seeded world, which one autopilot session after the other flies over TCP.

    python3 -m drone_bridge.testbed.emulator --seed 3 --until-reached

Strict lockstep, as the protocol has it: nothing moves until the autopilot has answered. It reports on standard
output, a line for each event: where it listens, who has connected, when the target is reached, how a flight ended.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import sys
import time
from collections.abc import Sequence
from dataclasses import replace

from drone_bridge.motion.wind import NO_ROTATION, WindRotation
from drone_bridge.net.connector import Cancellation, LinkCancelledError, LinkError
from drone_bridge.net.tcp_connection import StreamOptions
from drone_bridge.programs.lies import Lies, add_lies
from drone_bridge.programs.one_stream import OneStream, make_link
from drone_bridge.programs.options import (
    ProgramParser,
    add_address,
    add_choice,
    add_number,
    add_run,
    count,
    not_negative,
    read_by,
    triple,
)
from drone_bridge.programs.program import TrajectoryFile, print_event, run_program
from drone_bridge.testbed.codec import (
    NEED_DATA,
    AttitudeLayout,
    Constants,
    Limits,
    MotionParameters,
    SensorFrame,
    TestbedConnection,
)
from drone_bridge.testbed.device.drone_state import Airframe
from drone_bridge.testbed.emulator.world import COLUMNS, SimulatedDrone, StereoCamera, World
from drone_bridge.wire.events import ProtocolError

#: What the testbeds that one meets announce: between the pinholes, m; N, and degrees/s about each axis, not enforced.
SEPARATION, MAX_THRUST, MAX_RATE = 0.25, 25.0, 720.0


#: Lies of time: it is in milliseconds, stands still from so many seconds on, or has run for so many hours before.
TIME_IN_MS, TIME_STANDS, TIME_HOURS = "time-ms", "time-stands", "time-hours"
#: Of positions: one in ten is wrong by 50 m; they are all 0.
POSITION_JUMPS, POSITION_ZERO = "position-jumps", "position-zero"
JUMP_M = 50.0


def lying(frame: SensorFrame, lies: Lies[SensorFrame]) -> SensorFrame:
    """Return what is reported instead of a true frame."""
    lies.count()
    kinds, time_s, position = lies.kinds, frame.time, frame.position
    time_s = min(time_s, kinds.get(TIME_STANDS, math.inf)) + 3600.0 * kinds.get(TIME_HOURS, 0.0)
    time_s *= 1000.0 if TIME_IN_MS in kinds else 1.0
    if position is not None and POSITION_ZERO in kinds:
        position = (0.0, 0.0, 0.0)
    elif position is not None and POSITION_JUMPS in kinds and lies.is_jump:
        position = (position[0] + JUMP_M, *position[1:])
    return replace(frame, time=time_s, position=position)


def converse(options: argparse.Namespace, drone: SimulatedDrone, stream: OneStream, cancellation: Cancellation) -> bool:
    """Fly until the flight is over (True), or the autopilot or the drone has left (False).

    Raises ProtocolError and LinkError, LinkCancelledError among them.
    """
    connection = TestbedConnection(options.layout)
    most_steps = math.inf if options.duration is None else round(options.duration * options.rate)
    stream.send(connection.send(drone.constants))
    lies = Lies[SensorFrame](dict(options.lie))
    due_s = time.monotonic()
    while drone.steps < most_steps and not (options.until_reached and drone.flight.reached_at is not None):
        pieces = connection.send_in_pieces(lying(drone.sense(), lies))
        stream.send(*(pieces if options.default_sockets else [b"".join(pieces)]))
        while (event := connection.next_event()) is NEED_DATA:
            if data := stream.receive():
                connection.receive_data(data)
            else:
                connection.receive_eof()
        if not isinstance(event, MotionParameters):
            print_event("the autopilot has left")
            return False
        drone.fly(event)
        if drone.flight.has_left_the_world:
            print_event("the drone has left the world")
            return False
        if options.realtime:
            now_s = time.monotonic()
            due_s = max(due_s + drone.step, now_s - drone.step)  # after a delay without a burst to catch up
            if cancellation.wait(max(0.0, due_s - now_s)):
                raise LinkCancelledError("Pacing was cancelled.")
    return True


def stream_options(options: argparse.Namespace) -> StreamOptions:
    """Return how autopilots are read and sent to."""
    return StreamOptions(
        acknowledges_at_once=not options.default_sockets,  # for answers in pieces, with Nagle's algorithm on
        waits_for_acknowledgements=options.default_sockets,
        max_unread_bytes=2 * Limits().frame_bytes,  # more than is ever sent: one frame, and the constants
    )


def serve(options: argparse.Namespace, drone: SimulatedDrone, stream: OneStream, cancellation: Cancellation) -> bool:
    """Fly with one autopilot after the other until a flight is over; return whether its target was reached."""
    while True:
        try:
            stream.open()
        except LinkCancelledError:
            return False
        print_event(f"connected to {stream.peer}")
        started, over = time.monotonic(), False
        drone.begin()
        try:
            over = converse(options, drone, stream, cancellation)
        except LinkCancelledError:
            over = True
        except (ProtocolError, LinkError) as error:
            print_event(str(error))
        stream.leave()
        flight = drone.flight
        print_event(
            f"ended: {drone.steps} steps, {flight.state.time:.2f} simulated s, "
            f"{time.monotonic() - started:.2f} wall s, smallest distance {flight.smallest_distance:.2f} m"
        )
        if over or options.once:
            return flight.reached_at is not None
        if drone.steps:
            stream.has_served()


def fly(options: argparse.Namespace, cancellation: Cancellation, stack: contextlib.ExitStack) -> int:
    """Fly until the end; return the exit code. Raises ValueError, OSError, ProtocolError and LinkError."""
    drone = make_drone(options)
    drone.trajectory = TrajectoryFile.wanted(options.trajectory, COLUMNS, stack)
    link = make_link(options, cancellation, stream_options(options))
    stack.callback(link.close)
    reached = serve(options, drone, OneStream(link, cancellation), cancellation)
    return int(options.until_reached and not reached)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit code."""
    return run_program("testbed", fly, parse(arguments))


def make_drone(options: argparse.Namespace) -> SimulatedDrone:
    """Return the drone in its world. Raises ValueError and ProtocolError for what can't be."""
    airframe = Airframe()
    constants = Constants(
        horizontal_angle_of_view=options.hfov,
        vertical_angle_of_view=options.vfov,
        width=options.width,
        height=options.height,
        camera_separation=SEPARATION,
        weight=airframe.mass,
        gravity=-airframe.gravity if options.negative_gravity else airframe.gravity,
        drag=airframe.drag,
        max_thrust=MAX_THRUST,
        max_pitch_rate=MAX_RATE,
        max_roll_rate=MAX_RATE,
        max_yaw_rate=MAX_RATE,
    )
    TestbedConnection(options.layout).send(constants)  # complain now, not to each autopilot
    turned = options.wind_rotation
    return SimulatedDrone(
        World.random(options.seed, options.obstacles, target=options.target, wind=options.wind, wind_rotation=turned),
        StereoCamera(options.width, options.height, options.hfov, options.vfov, SEPARATION),
        constants,
        step=1 / options.rate,
        gusts=options.gusts,
        seed=options.seed,
        restart_every=options.restart_every,
    )


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line. Exits with a message when it is wrong."""
    parser = ProgramParser(
        "emulate",
        "testbed",
        "An emulated testbed. Serves one autopilot after the other, each from the start of the same world.",
        ends="when a flight is over",
    )
    link = parser.add_argument_group("link")
    link.add_argument("--role", choices=("listen", "connect"), default="listen")
    add_address(link, 8000, "to listen on or to connect to")
    add_choice(link, "--layout", AttitudeLayout.PITCH_YAW, "what follows the images")
    link.add_argument(
        "--negative-gravity", action="store_true", help="announce an upward acceleration, as some testbeds do"
    )
    link.add_argument(
        "--default-sockets",
        action="store_true",
        help="send a frame in pieces and leave Nagle's algorithm on, as many programs do",
    )
    link.add_argument("--once", action="store_true", help="end after one conversation")
    _add_camera(parser)
    _add_world(parser)
    run = add_run(
        parser,
        seed_of="target, obstacles, wind and gusts",
        rate=(60.0, "steps per simulated second"),
        duration="simulated seconds",
    )
    run.add_argument(
        "--restart-every",
        type=count,
        metavar="STEPS",
        help="restart the simulation, at time 0, on the same connection after so many",
    )
    pace = run.add_mutually_exclusive_group()
    pace.add_argument("--realtime", action="store_true", help="no faster than real time")
    pace.add_argument("--fast", dest="realtime", action="store_false", help="as fast as answers arrive (default)")
    run.add_argument(
        "--until-reached", action="store_true", help="exit with 0 as soon as the target is reached, with 1 if it is not"
    )
    return parser.parse_args(arguments)


def _add_camera(parser: ProgramParser) -> None:
    camera = parser.add_argument_group("camera")
    camera.add_argument("--width", type=int, default=200, help="pixels (%(default)s)")
    camera.add_argument("--height", type=int, default=200, help="pixels (%(default)s)")
    add_number(camera, "--hfov", 120.0, "horizontal angle of view, degrees", float)
    add_number(camera, "--vfov", 120.0, "vertical angle of view, degrees", float)


def _add_world(parser: ProgramParser) -> None:
    lies = parser.add_argument_group("lies")
    add_lies(lies, (TIME_IN_MS, POSITION_JUMPS, POSITION_ZERO), (TIME_STANDS, TIME_HOURS))
    world = parser.add_argument_group("world")
    world.add_argument(
        "--obstacles", type=count, default=0, help="number of grey spheres that may hide the target (%(default)s)"
    )
    world.add_argument(
        "--target", type=triple, metavar="'X Y Z'", help="centre of the target, m, instead of a random one"
    )
    world.add_argument("--wind", type=triple, metavar="'X Y Z'", help="m/s, instead of a random one")
    world.add_argument(
        "--wind-rotation",
        type=read_by(WindRotation.parse, "X Y Z or T X Y Z, ..."),
        default=NO_ROTATION,
        metavar="'X Y Z'|'T X Y Z, ...'",
        help="how the wind turns the drone about the world's axes, degrees/s; linear between points in time, s (none)",
    )
    add_number(world, "--gusts", 0.0, "standard deviation, m/s", not_negative)


if __name__ == "__main__":
    sys.exit(main())
