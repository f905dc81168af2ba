# SPDX-License-Identifier: Apache-2.0
"""Testbed emulator: a drone in a seeded world, flown over TCP by one autopilot at a time.

    python3 -m drone_bridge.testbed.vehicle.emulator --seed 3 --until-reached

It runs in strict lockstep: simulated time advances only when the autopilot has replied. It is therefore no `Emulation`,
which steps in real time. It prints one line per event: its address, connections, the target reached, and the result of
each flight.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import sys
import time
from collections.abc import Sequence
from dataclasses import replace

from drone_bridge.net.connector import Cancellation, LinkCancelledError, LinkError
from drone_bridge.net.tcp_connection import StreamOptions
from drone_bridge.programs.one_stream import OneStream, make_link
from drone_bridge.programs.options import (
    ProgramParser,
    add_address,
    add_choice,
    add_flag,
    add_number,
    add_run,
    count,
    not_negative,
    triple,
)
from drone_bridge.programs.program import TrajectoryFile, print_event, run_program
from drone_bridge.testbed.codec import (
    NEED_DATA,
    AttitudeLayout,
    Constants,
    MotionParameters,
    SensorFrame,
    SizeLimits,
    TestbedConnection,
)
from drone_bridge.testbed.vehicle.device.drone_state import Airframe
from drone_bridge.testbed.vehicle.emulator.world import COLUMNS, SimulatedDrone, SphereWorld, StereoCamera
from drone_bridge.wire.events import ProtocolError

#: Typical constants of real testbeds: camera separation, m; thrust, N; rates about each axis, degrees/s, not enforced.
SEPARATION, MAX_THRUST, MAX_RATE = 0.25, 25.0, 720.0


#: Fault of positions: one in so many is wrong, by so much, m.
POSITION_JUMPS, JUMP_EVERY, JUMP_M = "position-jumps", 10, 50.0


def sensed(drone: SimulatedDrone, lie: str | None) -> SensorFrame:
    """Return the next frame, perhaps with a fault."""
    frame = drone.sense()
    if not lie or frame.position is None or drone.steps % JUMP_EVERY:
        return frame
    return replace(frame, position=(frame.position[0] + JUMP_M, *frame.position[1:]))


def converse(options: argparse.Namespace, drone: SimulatedDrone, stream: OneStream, cancellation: Cancellation) -> bool:
    """Fly until the flight ends (True), or until the autopilot disconnects or the drone leaves the world (False).

    Raises ProtocolError and LinkError, including LinkCancelledError.
    """
    connection = TestbedConnection(options.layout)
    most_steps = math.inf if options.duration is None else round(options.duration * options.rate)
    stream.send(connection.send(drone.constants))
    due_s = time.monotonic()
    while drone.steps < most_steps and not (options.until_reached and drone.flight.reached_at is not None):
        pieces = connection.send_in_pieces(sensed(drone, options.lie))
        stream.send(*(pieces if options.default_sockets else [b"".join(pieces)]))
        while (event := connection.next_event()) is NEED_DATA:
            if data := stream.receive():
                connection.receive_data(data)
            else:
                connection.receive_eof()
        if not isinstance(event, MotionParameters):
            print_event("the autopilot disconnected")
            return False
        drone.fly(event)
        if drone.flight.has_left_the_world:
            print_event("the drone has left the world")
            return False
        if options.realtime:
            now_s = time.monotonic()
            due_s = max(due_s + drone.step, now_s - drone.step)  # no burst to catch up after a delay
            if cancellation.wait(max(0.0, due_s - now_s)):
                raise LinkCancelledError("Pacing was cancelled.")
    return True


def stream_options(options: argparse.Namespace) -> StreamOptions:
    """Return the socket options for autopilots."""
    return StreamOptions(
        acknowledges_at_once=not options.default_sockets,  # for replies in pieces, with Nagle's algorithm
        waits_for_acknowledgements=options.default_sockets,
        max_unread_bytes=2 * SizeLimits().frame_bytes,  # more than is ever sent: one frame and the constants
    )


def serve(options: argparse.Namespace, drone: SimulatedDrone, stream: OneStream, cancellation: Cancellation) -> bool:
    """Fly with one autopilot at a time until a flight ends; return whether its target was reached."""
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
        x, y, z = flight.state.position
        print_event(
            f"ended: {drone.steps} steps, {flight.state.time:.2f} simulated s, "
            f"{time.monotonic() - started:.2f} wall s, smallest distance {flight.smallest_distance:.2f} m, "
            f"at {x:.2f} {y:.2f} {z:.2f} m"
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
    """Return the drone in its world. Raises ValueError and ProtocolError for impossible options."""
    airframe = Airframe()
    constants = Constants(
        horizontal_angle_of_view=options.hfov,
        vertical_angle_of_view=options.vfov,
        width=options.width,
        height=options.height,
        camera_separation=SEPARATION,
        weight=airframe.mass,
        gravity=airframe.gravity,
        drag=airframe.drag,
        max_thrust=MAX_THRUST,
        max_pitch_rate=MAX_RATE,
        max_roll_rate=MAX_RATE,
        max_yaw_rate=MAX_RATE,
    )
    TestbedConnection(options.layout).send(constants)  # report an error now, not to each autopilot
    return SimulatedDrone(
        SphereWorld.random(
            options.seed,
            options.obstacles,
            target=options.target,
            wind=options.wind,
            ground=options.ground,
        ),
        StereoCamera(options.width, options.height, options.hfov, options.vfov, SEPARATION),
        constants,
        step=1 / options.rate,
        gusts=options.gusts,
        seed=options.seed,
    )


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line. Exits with a message when it is wrong."""
    parser = ProgramParser(
        "emulate",
        "testbed",
        "An emulated testbed. Serves one autopilot at a time, each from the start of the same world.",
        ends="when a flight is over",
    )
    link = parser.add_argument_group("link")
    link.add_argument("--role", choices=("listen", "connect"), default="listen")
    add_address(link, 8000, "address to listen on or to connect to")
    add_choice(link, "--layout", AttitudeLayout.PITCH_YAW, "floats after the images")
    add_flag(link, "--default-sockets", "send each frame in pieces with Nagle's algorithm enabled, as many programs do")
    add_flag(link, "--once", "end after one conversation")
    _add_camera(parser)
    _add_world(parser)
    run = add_run(
        parser,
        seed_of="target, obstacles, wind and gusts",
        rate=(60.0, "steps per simulated second"),
        duration="simulated seconds",
    )
    pace = run.add_mutually_exclusive_group()
    add_flag(pace, "--realtime", "limit the simulation to real time")
    pace.add_argument("--fast", dest="realtime", action="store_false", help="run as fast as replies arrive (default)")
    add_flag(run, "--until-reached", "exit with 0 when the target is reached, else with 1")
    return parser.parse_args(arguments)


def _add_camera(parser: ProgramParser) -> None:
    camera = parser.add_argument_group("camera")
    add_number(camera, "--width", 200, "pixels", int)
    add_number(camera, "--height", 200, "pixels", int)
    add_number(camera, "--hfov", 120.0, "horizontal angle of view, degrees", float)
    add_number(camera, "--vfov", 120.0, "vertical angle of view, degrees", float)


def _add_world(parser: ProgramParser) -> None:
    world = parser.add_argument_group("world")
    world.add_argument("--lie", choices=(POSITION_JUMPS,), help="report a wrong measurement (none)")
    add_number(world, "--obstacles", 0, "number of grey spheres that may hide the target", count)
    for flag, meaning in (("--target", "centre of the target, m"), ("--wind", "m/s")):
        world.add_argument(flag, type=triple, metavar="'X Y Z'", help=f"{meaning}, instead of a random one")
    world.add_argument(
        "--ground",
        type=_height,
        metavar="Y",
        help="height of a checkerboard ground, m, where a descent ends; none: no ground, all is white (default)",
    )
    add_number(world, "--gusts", 0.0, "standard deviation, m/s", not_negative)


def _height(text: str) -> float | None:
    """Parse the height of the ground; None for "none"."""
    if text == "none":
        return None
    height = float(text)
    if not math.isfinite(height):
        raise argparse.ArgumentTypeError(f"must be finite, not {text!r}")
    return height


if __name__ == "__main__":
    sys.exit(main())
