# SPDX-License-Identifier: Apache-2.0
"""A simulated drone, a Flight, behind its control GUI: it listens for control packets over UDP and flies accordingly.

    python3 -m drone_bridge.dronegui.emulator --trajectory flight.csv

As in the original, no packet is answered, everybody may send, and the last command stays in force forever. Once reset
has been pressed, the drone's navdata goes to all senders of packets. The GUI's user has more actions: "Stream Navdata"
(SIGUSR1), "Land" (SIGUSR2), and to close the GUI and start it again while the drone flies (SIGURG).
The program reports on standard output: a line for each change and, once a second, where the drone is.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import Enum
from functools import partial
from typing import Any

import numpy as np

from drone_bridge.dronegui.codec import (
    AXES,
    BUTTONS,
    DEFAULT_NAVDATA_PORT,
    DEFAULT_NAVDATA_SOURCE_PORT,
    DEFAULT_PORT,
    MAJOR_STATE_SHIFT,
    PICTURE_UNITS,
    ControlPacket,
    Controls,
    Demo,
    Feature,
    FlightState,
    Navdata,
    OtherNavdata,
    VisionDetect,
)
from drone_bridge.dronegui.device import Dialect, Gui
from drone_bridge.dronegui.ports import PortWithOutlet
from drone_bridge.motion.matrices import Triple
from drone_bridge.motion.quaternions import inverse, quaternion_from_euler, rotated
from drone_bridge.motion.wind import Wind
from drone_bridge.net.blocking import receive
from drone_bridge.net.connector import Cancellation, LinkCancelledError, LinkError, LinkTimeoutError
from drone_bridge.net.link_loop import Received
from drone_bridge.programs.bad_network import BadNetwork
from drone_bridge.programs.lies import ALTITUDE, BATTERY, HEADING, LATE, VELOCITY, Lies, add_lies
from drone_bridge.programs.options import (
    ProgramParser,
    add_address,
    add_bad_network,
    add_number,
    add_run,
    not_negative,
    port,
    positive,
)
from drone_bridge.programs.program import LimitedReports, TrajectoryFile, print_event, print_status, run_program
from drone_bridge.wire.addresses import address_name, peer_name
from drone_bridge.wire.events import RemoteProtocolError

# How it flies. World and body have the axes of REP 103: x forward (at the start), y left, z up, yaw + to the left.


GRAVITY = 9.81  # m/s^2
# What the body does about a command: first-order lags, s.
TILT_LAG_S = 0.15
YAW_LAG_S = 0.1
CLIMB_LAG_S = 0.25
# How hover keeps its place: tilt as a spring and a damper would pull. Critical damping is 2 * sqrt(spring).
HOVER_SPRING = 1.0  # 1/s^2
HOVER_DAMPER = 2.0  # 1/s
HOVER_SLOW = 0.3  # m/s: slower than this, the place to keep is here; faster, hover only brakes
TAKE_OFF_HEIGHT = 1.0  # m
TAKE_OFF_SPEED = 0.5  # m/s
APPROACH = 2.0  # 1/s: climb per metre that is missing to the height wanted
LANDING_SPEED = 0.4  # m/s
LOWEST_FLIGHT = 0.1  # m: to come lower one has to land

COLUMNS = ("time", "phase", "x", "y", "z", "yaw", "pitch", "roll", "vx", "vy", "vz")


class Phase(str, Enum):
    """The phases of a flight."""

    LANDED = "landed"
    TAKING_OFF = "taking off"
    FLYING = "flying"
    LANDING = "landing"
    EMERGENCY = "emergency"  # motors off until reset is pressed again on the ground


#: Steps of the simulation per second.
STEP_RATE = 100.0
# The drone's configuration: the scale and limits of controls.
MAX_TILT = math.radians(12)  # rad
MAX_YAW_RATE = math.radians(100)  # rad/s
MAX_CLIMB = 0.7  # m/s
DRAG = 0.4  # 1/s: deceleration per unit of air speed, in any direction
CEILING = 3.0  # m


class Flight:
    """One drone, initially on the ground."""

    def __init__(self, gusts: float = 0.0, seed: int = 0) -> None:
        """`gusts` (m/s, standard deviation per axis) repeat with their seed."""
        self.time = 0.0  # s
        self.phase = Phase.LANDED
        self.position = np.zeros(3)  # m
        self.velocity = np.zeros(3)  # m/s
        self.roll = self.pitch = self.yaw = 0.0  # rad: + banks right, + lowers the nose, + turns left
        self.yaw_rate = 0.0  # rad/s
        self.flown_s = 0.0  # with motors on
        self._wind = Wind((0.0, 0.0, 0.0), gusts, seed=seed)
        self._controls = Controls()
        self._place: Triple | None = None  # that hover keeps, m

    @property
    def height(self) -> float:
        """Metres above the ground."""
        return float(self.position[2])

    @property
    def is_hovering(self) -> bool:
        """Whether the drone holds its position by itself."""
        return self.phase is Phase.FLYING and self._controls.hover

    @property
    def controls(self) -> Controls:
        return self._controls

    @property
    def is_flying(self) -> bool:
        """Whether the motors carry the drone, as they do until it has landed."""
        return self.phase in (Phase.TAKING_OFF, Phase.FLYING, Phase.LANDING)

    def steer(self, controls: Controls) -> None:
        self._controls = controls

    def take_off(self) -> None:
        """Take off; no effect in the air or in an emergency."""
        if self.phase in (Phase.LANDED, Phase.LANDING):
            self.phase, self._place = Phase.TAKING_OFF, None

    def land(self) -> None:
        if self.is_flying:
            self.phase, self._place = Phase.LANDING, None

    def reset(self) -> None:
        """Stop the motors in the air; on the ground, end an emergency."""
        if self.is_flying:
            self.phase = Phase.EMERGENCY
        elif self.phase is Phase.EMERGENCY and self.height <= 0:
            self.phase = Phase.LANDED

    def advance(self, step: float) -> None:
        """Fly for `step` seconds under the current controls."""
        if self.is_flying:
            self.flown_s += step
            self._steer(step)
        else:
            self.yaw_rate = 0.0
        self._move(step)
        self.time += step
        self._wind.advance(step)
        self._change_phase()

    def row(self) -> list[float | str]:
        """Return the values of COLUMNS, in s, m, degrees and m/s."""
        angles = [math.degrees(angle) for angle in (self.yaw, self.pitch, self.roll)]
        return [self.time, self.phase.value, *self.position.tolist(), *angles, *self.velocity.tolist()]

    def describe(self) -> str:
        x, y, z = self.position
        return (
            f"t={self.time:.1f} s, {self.phase.value}, x={x:.2f} y={y:.2f} z={z:.2f} m, "
            f"speed {np.linalg.norm(self.velocity):.2f} m/s, yaw {math.degrees(self.yaw):.0f} degrees"
        )

    def _steer(self, step: float) -> None:
        """Make attitude and climb follow their targets."""
        controls = self._controls
        climb = {Phase.TAKING_OFF: TAKE_OFF_SPEED, Phase.LANDING: -LANDING_SPEED}.get(self.phase, 0.0)
        yaw_rate = 0.0
        if self.phase is not Phase.FLYING or controls.hover:
            roll, pitch = self._tilt_of_hover()
        else:
            self._place = None
            roll, pitch = controls.roll * MAX_TILT, -controls.pitch * MAX_TILT
            yaw_rate = -controls.yaw * MAX_YAW_RATE
            climb = controls.gas * MAX_CLIMB
        if self.phase is Phase.FLYING:
            lowest, highest = (APPROACH * (limit - self.height) for limit in (LOWEST_FLIGHT, CEILING))
            climb = max(lowest, min(highest, climb))
        elif self.phase is Phase.TAKING_OFF:
            climb = min(climb, APPROACH * (TAKE_OFF_HEIGHT - self.height) + 0.1)
        self.roll += (roll - self.roll) * -math.expm1(-step / TILT_LAG_S)
        self.pitch += (pitch - self.pitch) * -math.expm1(-step / TILT_LAG_S)
        self.yaw_rate += (yaw_rate - self.yaw_rate) * -math.expm1(-step / YAW_LAG_S)
        self.velocity[2] += (climb - self.velocity[2]) * -math.expm1(-step / CLIMB_LAG_S)

    def _tilt_of_hover(self) -> tuple[float, float]:
        """Return the roll and pitch that brake, and then hold the position."""
        x, y, z = self.position.tolist()
        if self._place is None and np.linalg.norm(self.velocity[:2]) < HOVER_SLOW:
            self._place = (x, y, z)
        pull = -HOVER_DAMPER * self.velocity[:2]
        if self._place is not None:
            pull -= HOVER_SPRING * (self.position[:2] - self._place[:2])
        forward = math.cos(self.yaw) * pull[0] + math.sin(self.yaw) * pull[1]
        left = math.cos(self.yaw) * pull[1] - math.sin(self.yaw) * pull[0]
        roll, pitch = math.atan2(-left, GRAVITY), math.atan2(forward, GRAVITY)
        return max(-MAX_TILT, min(MAX_TILT, roll)), max(-MAX_TILT, min(MAX_TILT, pitch))

    def _move(self, step: float) -> None:
        if self.phase is Phase.LANDED:
            return
        wind = self._wind.velocity
        drag = -DRAG * (self.velocity - wind)
        if self.is_flying:
            # Thrust is what keeps the height, so tilting it pulls sideways by the tangent. Climbing is steered as such.
            forward, left = GRAVITY * math.tan(self.pitch), -GRAVITY * math.tan(self.roll)
            pull = (
                math.cos(self.yaw) * forward - math.sin(self.yaw) * left,
                math.sin(self.yaw) * forward + math.cos(self.yaw) * left,
                -drag[2],
            )
        else:
            pull = (0.0, 0.0, -GRAVITY)
        self.velocity += (drag + pull) * step
        self.position += self.velocity * step
        self.yaw = math.remainder(self.yaw + self.yaw_rate * step, 2 * math.pi)

    def _change_phase(self) -> None:
        if self.phase is Phase.TAKING_OFF and self.height >= TAKE_OFF_HEIGHT:
            self.phase, self._place = Phase.FLYING, None
        if self.height <= 0 and self.phase is not Phase.TAKING_OFF:
            self.position[2] = 0.0
            self.velocity[:] = 0.0
            self.roll = self.pitch = 0.0
            if self.phase is Phase.LANDING:
                self.phase = Phase.LANDED


# Its navdata, block by block.


FULL_BATTERY_FLIES_S = 720.0
#: A block comes with one `demo` in this many.
DETECTION_EVERY = 5
#: A tag that hangs ahead of where the drone starts, and the camera in the nose that sees it.
TAG_POSITION_M = (4.0, 0.0, 1.2)
TAG_SIZE_M = 0.2
FIELD_OF_VIEW = (math.radians(74), math.radians(58))  # across, down
FARTHEST_TAG_M = 8.0

_STATES = {
    Phase.LANDED: FlightState.LANDED,
    Phase.TAKING_OFF: FlightState.TAKING_OFF,
    Phase.FLYING: FlightState.FLYING,
    Phase.LANDING: FlightState.LANDING,
    Phase.EMERGENCY: FlightState.DEFAULT,
}


def blocks(flight: Flight, number: int, lies: Lies[list[Navdata]] | None = None) -> list[Navdata]:
    """Return the blocks that the drone sends together; `number` counts these sets."""
    result: list[Navdata] = [_demo(flight, number, lies or Lies())]
    if number % DETECTION_EVERY == 0:
        result += [_detection(flight), OtherNavdata("iphoneangles", {"enable": 1, "ax": 0.0, "ay": 0.0, "az": 1.0})]
    result.append(OtherNavdata("checksum", {"checksum": number}))
    return lies.delayed(result, flight.time) if lies else result


def _demo(flight: Flight, number: int, lies: Lies[list[Navdata]]) -> Demo:
    lies.count()
    state = _STATES[flight.phase]
    if state is FlightState.FLYING and flight.is_hovering:
        state = FlightState.HOVERING
    forward, left, _ = _in_body(flight, *flight.velocity.tolist())
    return Demo(
        ctrl_state=state << MAJOR_STATE_SHIFT,
        vbat_flying_percentage=math.floor(100 * lies.charge(max(0.0, 1 - flight.flown_s / FULL_BATTERY_FLIES_S))),
        theta=-1000 * math.degrees(flight.pitch),
        phi=1000 * math.degrees(flight.roll),
        psi=-1000 * (math.degrees(flight.yaw) + lies.heading_degrees),
        altitude=round(1000 * lies.height(flight.height)),
        vx=1000 * lies.of_velocity * forward,
        vy=-1000 * lies.of_velocity * left,
        vz=0.0,  # the drone does not measure it
        num_frames=number,
    )


def _detection(flight: Flight) -> VisionDetect:
    """Return the tag, if it is entirely in the image."""
    x, y, z = (tag - own for tag, own in zip(TAG_POSITION_M, flight.position.tolist(), strict=True))
    ahead, left, up = _in_body(flight, x, y, z)
    if not TAG_SIZE_M < ahead < FARTHEST_TAG_M:
        return VisionDetect()
    half_width, half_height = (ahead * math.tan(angle / 2) for angle in FIELD_OF_VIEW)
    across, down = -left / half_width, -up / half_height
    width, height = (TAG_SIZE_M / (2 * half) for half in (half_width, half_height))
    if abs(across) + width > 1 or abs(down) + height > 1:
        return VisionDetect()
    middle = PICTURE_UNITS / 2
    feature = Feature(
        xc=round(middle * (1 + across)),
        yc=round(middle * (1 + down)),
        width=round(PICTURE_UNITS * width),
        height=round(PICTURE_UNITS * height),
        dist=round(100 * math.hypot(x, y, z)),
    )
    return VisionDetect((feature,))


def _in_body(flight: Flight, x: float, y: float, z: float) -> tuple[float, float, float]:
    """Return a vector of the world along the body's axes: forward, left, up."""
    return rotated(inverse(quaternion_from_euler(flight.roll, flight.pitch, flight.yaw)), x, y, z)


# The GUI, on sockets.


class GuiProgram:
    """A GUI without its window: it counts packets, and reports who controls it."""

    def __init__(self, flight: Flight, dialect: Dialect, link: PortWithOutlet, lies: Lies[list[Navdata]]) -> None:
        self.packets = self.late = self.refused = 0
        self._flight = flight
        self._dialect = dialect
        self._link = link
        self._gui = self._started()
        self._navdata_number, self._lies = 0, lies
        self._sender = ""
        self._reports = LimitedReports()
        self._was_hearing = self._was_reset = False

    def _started(self) -> Gui:
        return Gui(self._flight, self._dialect, self._link.loopback_host)

    def restart(self, *_: object) -> None:
        """Do what the GUI's user does by closing its window and starting it again: it knows nothing then."""
        print_event("the GUI is started again")
        self._flight.steer(Controls())  # as a drone does that hears nothing
        self._dialect = replace(self._dialect, is_bootstrapped=False)
        self._gui, self._was_hearing, self._was_reset = self._started(), False, False

    def receive(self, datagram: bytes, source: Any) -> None:
        """Handle a datagram. `source` is a socket address."""
        sender = peer_name(source)
        try:
            event = self._gui.receive(datagram, source, self._flight.time)
        except RemoteProtocolError as error:
            self.refused += 1
            self._reports.print(f"refused a packet of {sender}: {error}")
            return
        if not isinstance(event, ControlPacket):
            self.late += 1
            return
        if sender != self._sender:
            self._reports.print(f"controlled by {sender}")
            self._sender = sender
        self.packets += 1
        if event.controls.reset and not self._was_reset:
            print_event("reset: the GUI asks the drone for navdata")
        self._was_reset = event.controls.reset

    def start_navdata(self, *_: object) -> None:
        """Do what the GUI's user does by this name."""
        self._gui.start_navdata(self._flight.time)
        print_event("Stream Navdata: the GUI asks the drone for navdata")

    def land(self, *_: object) -> None:
        """Do what the GUI's user does by this name."""
        print_event("Land: the GUI commands the drone to land")
        self._flight.land()

    def send_navdata(self) -> None:
        """Send navdata that is due to all controllers."""
        is_hearing = self._gui.hears_drone(self._flight.time)
        if self._was_hearing and not is_hearing:
            print_event("the drone takes the GUI for gone, and sends no more navdata")
        self._was_hearing = is_hearing
        if not self._gui.navdata_is_due(self._flight.time):
            return
        datagrams = [self._gui.navdata(block) for block in blocks(self._flight, self._navdata_number, self._lies)]
        self._navdata_number += 1
        for datagram in datagrams:
            for address in self._gui.receivers(self._flight.time):
                with contextlib.suppress(LinkError):  # perhaps it is there again for the next one
                    self._link.send(datagram, address)


# The program.

REPORT_PERIOD_S = 1.0
CSV_COLUMNS = (*COLUMNS, *(f"control_{key}" for key in (*BUTTONS, *AXES)))
#: After the process was held up for longer than this, flight goes on from there instead of catching up.
LONGEST_CATCH_UP_S = 0.25


def fly(
    flight: Flight,
    gui: GuiProgram,
    hear: Callable[[float], Received],
    options: argparse.Namespace,
    trajectory: TrajectoryFile | None,
) -> None:
    """Fly in real time until the duration is over; `hear` waits for a packet for so many seconds.

    Raises LinkError and LinkCancelledError.
    """
    network: BadNetwork[Received] = BadNetwork(options.loss, options.reorder, options.seed)
    duration = math.inf if options.duration is None else options.duration
    step = 1 / STEP_RATE
    due = time.monotonic()
    report_due = REPORT_PERIOD_S
    while flight.time < duration:
        phase = flight.phase
        flight.advance(step)
        if trajectory:
            trajectory.write([*flight.row(), *(float(getattr(flight.controls, key)) for key in (*BUTTONS, *AXES))])
        gui.send_navdata()
        due = max(due + step, time.monotonic() - LONGEST_CATCH_UP_S)
        with contextlib.suppress(LinkTimeoutError):
            while (left_s := due - time.monotonic()) > 0:
                for datagram in network.carry(hear(left_s)):
                    gui.receive(datagram.data, datagram.source)
        if flight.phase is not phase:
            print_event(f"{phase.value} -> {flight.phase.value}: {flight.describe()}")
        if flight.time >= report_due:
            report_due += REPORT_PERIOD_S
            print_status(flight.describe())


def serve(options: argparse.Namespace, cancellation: Cancellation, stack: contextlib.ExitStack) -> int:
    """Listen and fly until the end. Raises LinkError and OSError."""
    flight = Flight(options.gusts, options.seed)
    dialect = Dialect(
        complete_states_only=options.strict_real,
        is_bootstrapped=options.bootstrapped,
        navdata_port=options.navdata_port,
        drone_patience_s=options.drone_patience,
    )
    trajectory = TrajectoryFile.wanted(options.trajectory, CSV_COLUMNS, stack)
    link = PortWithOutlet(options.host, options.port, options.navdata_source_port)
    stack.callback(link.close)
    if link.problem:
        print_event(link.problem)
    gui = GuiProgram(flight, dialect, link, Lies(dict(options.lie)))
    signal.signal(signal.SIGUSR1, gui.start_navdata)
    signal.signal(signal.SIGUSR2, gui.land)
    signal.signal(signal.SIGURG, gui.restart)
    print_event(f"listening on {address_name(options.host, link.port)}")
    with contextlib.suppress(LinkCancelledError):
        fly(flight, gui, partial(receive, link, cancellation), options, trajectory)
    print_event(f"ended: {flight.describe()}; {gui.packets} packets, {gui.late} late, {gui.refused} refused")
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit code."""
    return run_program("dronegui", serve, parse(arguments))


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line. Exits with a message when it is wrong."""
    parser = ProgramParser("emulate", "dronegui", "A simulated drone behind its control GUI.", "after --duration")
    link = parser.add_argument_group("link")
    add_address(link, DEFAULT_PORT)
    link.add_argument(
        "--strict-real",
        action="store_true",
        help="refuse incomplete states, as the real receiver does",
    )
    add_bad_network(link)
    navdata = parser.add_argument_group("navdata: what the GUI sends to its controllers")
    navdata.add_argument(
        "--navdata-port", type=port, default=DEFAULT_NAVDATA_PORT, help="of the controllers' hosts (%(default)s)"
    )
    navdata.add_argument(
        "--navdata-source-port",
        type=port,
        default=DEFAULT_NAVDATA_SOURCE_PORT,
        help="where it is sent from, if that is free; 0 takes any (%(default)s)",
    )
    navdata.add_argument(
        "--bootstrapped", action="store_true", help="ask the drone for navdata at the start, before reset is pressed"
    )
    navdata.add_argument(
        "--drone-patience",
        type=positive,
        default=math.inf,
        help="without packets for this long the drone takes the GUI for gone, and sends it no more navdata until reset "
        'or "Stream Navdata"; about 2 s with an AR.Drone (%(default)s)',
    )
    drone = parser.add_argument_group("drone")
    add_lies(drone, (*VELOCITY, *ALTITUDE, *HEADING, *BATTERY), (LATE,))
    add_number(drone, "--gusts", 0.0, "standard deviation, m/s", not_negative)
    add_run(parser, seed_of="gusts, losses and reordering", duration="seconds")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
