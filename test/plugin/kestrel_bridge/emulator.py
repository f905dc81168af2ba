# SPDX-License-Identifier: Apache-2.0
"""Emulator of a kestrel, which follows the last `rc` forever, since the document has no timeout.

drone-bridge emulate kestrel --loss 0.1
"""

import math

from drone_bridge.net.datagram_link import DatagramPort
from drone_bridge.programs.bad_network import BadNetwork
from drone_bridge.programs.emulation import Emulation
from drone_bridge.programs.options import ProgramParser, add_address, add_bad_network, add_run
from drone_bridge.programs.program import LimitedReports, TrajectoryFile, print_event, run_program
from drone_bridge.wire import RemoteProtocolError
from kestrel_bridge.codec import DEFAULT_PORT, FULL, State, Steer
from kestrel_bridge.device import DroneSide

STEP_S = 0.02
STATE_EVERY = 5  # steps
TOP_SPEED, TOP_TURN = 2.0, 1.5  # at full deflection, m/s and rad/s
RESPONSE_S = 0.3  # time constant of the velocity
HOVER_HEIGHT, CLIMB = 1.0, 0.8  # m, m/s
LEAN = 0.15  # rad per m/s^2
BATTERY_S = 900.0
COLUMNS = ("time", "x", "y", "z", "heading", "phase")


class Body:
    """Position and motion: x east, y north, z up, heading from east to the left, velocities along the level body."""

    def __init__(self) -> None:
        self.time = self.x = self.y = self.z = self.heading = 0.0
        self.forward = self.left = self.up = self.turn = 0.0
        self.pitch = self.roll = 0.0  # REP 103
        self.phase = "standing"
        self._steer = Steer()
        self._finish = None

    def ask(self, name, finish) -> None:
        """Start to take off or to land."""
        wanted, during = ("standing", "rising") if name == "takeoff" else ("flying", "landing")
        if self.phase != wanted:
            finish(False, f"it is {self.phase}")
            return
        self.phase, self._finish = during, finish

    def follow(self, steer: Steer) -> None:
        """Follow the axes from now on."""
        self._steer = steer

    def step(self) -> None:
        """Advance by STEP_S."""
        self.time += STEP_S
        if self.phase == "standing":
            return
        steer = self._steer if self.phase == "flying" else Steer()
        climb = {"rising": CLIMB, "landing": -CLIMB}.get(self.phase, steer.up / FULL * TOP_SPEED)
        share = STEP_S / RESPONSE_S
        before = self.forward, self.left
        self.forward += share * (steer.forward / FULL * TOP_SPEED - self.forward)
        self.left += share * (steer.left / FULL * TOP_SPEED - self.left)
        self.up += share * (climb - self.up)
        self.turn = steer.turn / FULL * TOP_TURN
        self.pitch = LEAN * (self.forward - before[0]) / STEP_S
        self.roll = -LEAN * (self.left - before[1]) / STEP_S
        self.heading = math.remainder(self.heading + STEP_S * self.turn, math.tau)
        cos, sin = math.cos(self.heading), math.sin(self.heading)
        self.x += STEP_S * (cos * self.forward - sin * self.left)
        self.y += STEP_S * (sin * self.forward + cos * self.left)
        self.z = max(0.0, self.z + STEP_S * self.up)
        if self.phase == "rising" and self.z >= HOVER_HEIGHT:
            self._arrive("flying")
        elif self.phase == "landing" and self.z <= 0.0:
            self.forward = self.left = self.up = self.turn = self.pitch = self.roll = 0.0
            self._arrive("standing")

    def _arrive(self, phase: str) -> None:
        self.phase, finish, self._finish = phase, self._finish, None
        print_event(f"{phase} at {self.x:.2f} {self.y:.2f} {self.z:.2f} m")
        finish(True, "")

    def state(self) -> State:
        """Return the state in the units of the wire."""
        charge = max(0.0, 100.0 * (1.0 - self.time / BATTERY_S))
        angles = (-self.pitch, self.roll, -self.heading)
        numbers = (*map(math.degrees, angles), 100 * self.forward, -100 * self.left, -100 * self.up, 100 * self.z)
        return State(*map(round, (*numbers, charge)))


class Kestrel(Emulation):
    """Drone on the network."""

    step_s = STEP_S

    def __init__(self, listener, options) -> None:
        self.body, self._listener, self._reports = Body(), listener, LimitedReports()
        self._network = BadNetwork(options.loss, options.reorder, options.seed)
        self._side = DroneSide(self.body, self._send)

    @property
    def time_s(self) -> float:
        return self.body.time

    def receive(self, link, event, now_s) -> None:
        try:
            self._side.receive(event.data, event.source)
        except RemoteProtocolError as error:
            self._reports.print(f"refused: {error}")

    def step(self, now_s) -> None:
        self.body.step()
        if self._side.client and round(self.time_s / STEP_S) % STATE_EVERY == 0:
            self._send(self._side.state(self.body.state()), self._side.client)

    def row(self):
        return self.body.time, self.body.x, self.body.y, self.body.z, self.body.heading, self.body.phase

    def _send(self, data, address) -> None:
        for each in self._network.carry((data, address)):
            self._listener.send(*each)


def fly(options, cancellation, stack) -> int:
    """Fly until cancelled, or for the given duration. Raises LinkError and OSError."""
    trajectory = TrajectoryFile.wanted(options.trajectory, COLUMNS, stack)
    listener = DatagramPort(options.host, options.port)
    stack.callback(listener.close)
    print_event(f"listening on {options.host}:{listener.port}")
    kestrel = Kestrel(listener, options)
    kestrel.run([listener], options, cancellation, trajectory)
    body = kestrel.body
    print_event(f"ended: {body.phase} at {body.x:.2f} {body.y:.2f} {body.z:.2f} m")
    return 0


def parse(arguments):
    """Parse the command line. Exits with a message if it is invalid."""
    parser = ProgramParser("emulate", "kestrel", "A simulated kestrel.", "after --duration")
    link = parser.add_argument_group("link")
    add_address(link, DEFAULT_PORT)
    add_bad_network(link)
    add_run(parser, seed_of="the losses", duration="seconds")
    return parser.parse_args(arguments)


def main(arguments=None) -> int:
    """Run the program; return its exit code."""
    return run_program("kestrel", fly, parse(arguments))
