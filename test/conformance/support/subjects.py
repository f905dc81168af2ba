# SPDX-License-Identifier: Apache-2.0
"""Subjects of tests and measurements: each bridge and server in operation, with its environment, as processes.

Commands are judged on the wire, by the relay before a vehicle. A server's vehicle is in ROS, so `cmd_vel` is judged.
"""

import json
import signal
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from commander import Commander
from ports import free_port
from processes import executable
from programs import Program
from relay import DATAGRAM_FAULTS, STREAM_FAULTS, CommandLog, DatagramRelay, StreamRelay

from drone_bridge.kind import ProtocolKind, Side, Value, load
from drone_bridge.ros.process.shared_memory import make_room

COMMAND_TIMEOUT_S = 0.5
START_TIMEOUT_S = 60.0
LOOPBACK = "127.0.0.1"
#: Settings that make an emulated vehicle cheap, or responsive at once, by protocol: emulator options, and parameters
#: of the bridge.
LIGHT: Mapping[str, tuple[Mapping[str, Value], Mapping[str, Value]]] = {
    "testbed": ({"rate": 20, "width": 64, "height": 48}, {"attitude_layout": "pose"}),
    "simulator": (
        {"rate": 20, "running": True, "scene": "buoys"},
        {"run_on_connect": False, "body_to_model": [1.0, 0.0, 0.0, 0.0]},
    ),
    "robot": ({"sensor-period": 0.1}, {}),
    "dronegui": ({"no-video": True}, {}),
}
#: Protocols whose vehicles request each step of their motion, and do not move before the next request.
ASKING = ("testbed",)
COMMAND_TOPICS = ("cmd_vel", "cmd_vel_stamped", "cmd_rates", "cmd_axes")
PLAN = "600s forward 0.3 turn 0.3"
_BLOCKED = Path(__file__).with_name("blocked_output.py")


#: Kinds whose bridge sends nothing during a stall: their vehicles wait for it, or would send unexpected answers.
SILENT_IN_STALLS = ("testbed", "simulator")


class NotRecoveredError(Exception):
    """Defect after a disturbance, as a sentence."""


class MovedError(NotRecoveredError):
    """A vehicle moved against expectation, or did not stop."""


def with_roles(kind: ProtocolKind) -> list[ProtocolKind]:
    """Return a kind and, if either end may send the first datagram, the kind with exchanged roles."""
    roles = kind.bridge.declarations["role"].choices
    if kind.is_stream or len(roles) == 1:
        return [kind]
    port, *others = kind.ports
    role = "listen" if port.side is Side.VEHICLE else "connect"
    emulated = {**kind.emulated, "role": role}
    return [kind, replace(kind, ports=(replace(port, side=port.side.other), *others), emulated=emulated, represents=())]


class Vehicle:
    """Emulated vehicle, and its relay to a bridge with these `parameters`."""

    def __init__(self, kind: ProtocolKind) -> None:
        self.kind = kind
        self.commands = CommandLog(is_asked=kind.name in ASKING)
        port, *others = kind.ports
        far = free_port()
        self.parameters: dict[str, Value] = {each.parameter: free_port() for each in others}
        vehicle_begins = port.side is Side.OPERATOR
        make_reader = load(kind.commands)
        self.relay: StreamRelay | DatagramRelay
        if kind.is_stream:
            self.relay = StreamRelay(far, make_reader, self.commands)
        else:
            self.relay = DatagramRelay(far, make_reader, self.commands, vehicle_begins)
            heard = [int(str(self.parameters[each.parameter])) for each in others if each.side is Side.OPERATOR]
            if heard and not vehicle_begins:
                self.relay.flooded_port = heard[0]
        options, parameters = LIGHT.get(kind.name, ({}, {}))
        self.parameters |= {"host": LOOPBACK, "command_timeout": COMMAND_TIMEOUT_S, **kind.emulated, **parameters}
        ends = (self.relay.port, far) if vehicle_begins else (far, self.relay.port)
        assert kind.emulator, f"{kind.name} has no emulator, so its bridge has nothing to command."
        self._emulator = kind.emulator
        beside = kind.emulator.beside(kind.bridge, {**self.parameters, port.parameter: ends[0]})
        self._options = {**kind.emulator.at_once, **beside, **options}
        self.parameters[port.parameter] = ends[1]
        self.relay.start()

    @property
    def faults(self) -> tuple[str, ...]:
        """Faults that its relay supports."""
        return STREAM_FAULTS if self.kind.is_stream else DATAGRAM_FAULTS

    @property
    def emulate(self) -> list[str]:
        """Command line that starts it."""
        emulator = self._emulator
        return [executable("drone-bridge"), "emulate", emulator.name, *emulator.words(self._options)]


class Subject:
    """Program under test, in its own ROS domain and namespace."""

    family = ""
    role = ""  # index of the program among the started ones
    speaks_itself = True  # to the vehicle
    #: Whether the program's output is blocked, as in a terminal after Ctrl-S.
    is_output_blocked = False

    def __init__(self, name: str, domain: int, scratch: Path, vehicles: Sequence[Vehicle] = ()) -> None:
        self.name, self.vehicles = name, list(vehicles)
        self.program: Any = None
        self.emulators: dict[Vehicle, Any] = {}
        self.logs = [vehicle.commands for vehicle in vehicles]
        self.port = 0  # reachable by other peers
        self._domain, self._scratch = domain, scratch
        self._commander: Commander | None = None
        self._started: list[Any] = []
        self._is_closed = False
        self._starting = threading.Lock()  # close() may come while another thread starts programs

    @property
    def faults(self) -> tuple[str, ...]:
        """Faults that all its relays support. None without relays."""
        known = [set(each.faults) for each in self.vehicles]
        return tuple(sorted(set.intersection(*known))) if known else ()

    @property
    def counts(self) -> Mapping[str, int]:
        """Counters in diagnostics by name, summed over all nodes."""
        return self._commander.counts if self._commander else {}

    def start(self) -> None:
        """Start all programs."""
        self._commander = self._make_commander()
        for vehicle in self.vehicles:
            self.start_emulator(vehicle)
        self.start_surroundings()
        self.start_program()

    def start_emulator(self, vehicle: Vehicle | None = None) -> None:
        vehicle = vehicle or self.vehicles[0]
        self.emulators[vehicle] = self._start(f"{vehicle.kind.name}.emulator", vehicle.emulate)

    def start_surroundings(self) -> None:
        """Start the program's environment besides emulators."""

    def start_program(self, arguments: Sequence[str] = ()) -> Any:
        """Start the program under test."""
        raise NotImplementedError

    def kill(self) -> int:
        """Kill it. Return the time, ns."""
        killed_ns = time.time_ns()
        self.program.send(signal.SIGKILL)
        self.program.wait()
        make_room()  # it leaves its shared memory
        return killed_ns

    def command(self) -> None:
        """Command its vehicles to move, or continue to."""
        if self._commander:
            self._commander.is_commanding = True

    def let_go(self) -> float:
        """Stop commanding its vehicles. Return the time."""
        if self._commander:
            self._commander.is_commanding = False
        return time.monotonic()

    def works_after(self, since_s: float, timeout_s: float = START_TIMEOUT_S) -> float:
        """Return the time until all vehicles move. Raises NotRecoveredError."""
        limit_s = time.monotonic() + timeout_s
        moved_s = [log.wait(False, since_s, limit_s - time.monotonic()) for log in self.logs]
        if None in moved_s:
            output = self.program.output if self.program else ""
            state = "runs" if self.program and self.program.is_running else "has ended"
            raise NotRecoveredError(f"not driven within {timeout_s:g} s by a program that {state}: {output[-500:]}")
        return max(when - since_s for when in moved_s if when)

    def work(self) -> float:
        """Return the time until it works. Raises NotRecoveredError."""
        self.command()
        return self.works_after(time.monotonic())

    def first_word_after(self, since_s: float) -> float:
        """Return the time until a started program has sent its first command to all vehicles, or could have."""
        return time.monotonic() - since_s

    def becomes_neutral(self, since_s: float, within_s: float) -> float | None:
        """Return for how long vehicles were moved after a time. None if longer than allowed."""
        moved_s = [log.becomes_neutral(since_s, within_s, START_TIMEOUT_S) for log in self.logs]
        return None if None in moved_s else max((each for each in moved_s if each is not None), default=0.0)

    def moved_after(self, since_s: float) -> list[float]:
        """Return the delays after a time at which commands moved vehicles."""
        return [when - since_s for log in self.logs for when, is_neutral in log.since(since_s) if not is_neutral]

    def check_left(self, ended_ns: int, was_killed: bool) -> None:
        """Check the leftovers of an ended program. Raises NotRecoveredError."""

    def close(self) -> None:
        """Stop all programs."""
        with self._starting:
            if self._is_closed:
                return
            self._is_closed = True
        for log in (*self.logs, *(vehicle.commands for vehicle in self.vehicles)):
            log.close()
        self.let_go()
        for program in reversed(self._started):
            if program.is_running:
                program.end()
        if self._commander:
            self._commander.close()
        for vehicle in self.vehicles:
            vehicle.relay.close()

    def _make_commander(self) -> Commander:
        return Commander(self._domain, [f"/{self.name}/cmd_vel"])

    def _start(self, role: str, command: list[str]) -> Any:
        with self._starting:
            if self._is_closed:
                raise NotRecoveredError(f"{self.name} is closed, and starts nothing any more.")
            self._started = [each for each in self._started if each.is_running]
            if self.is_output_blocked and role == self.role:
                command = [sys.executable, str(_BLOCKED), *command]
            self._started.append(self._run(role, command))
            return self._started[-1]

    def _run(self, role: str, command: list[str]) -> Any:
        return Program(f"{self.name}.{role}", command, self._scratch, self._domain)

    def _start_side(
        self, kind: ProtocolKind, side: str, parameters: Mapping[str, Value], arguments: Sequence[str] = ()
    ) -> Any:
        """Start the bridge or the server of a kind."""
        node = kind.server if side == "server" else kind.bridge
        assert node, f"{kind.name} has no {side}."
        program = executable(node.executable or f"{kind.name}_{side}")
        return self._start_node(side, [program, *node.arguments], parameters, arguments)

    def _start_node(
        self, role: str, command: Sequence[str], parameters: Mapping[str, Value], arguments: Sequence[str] = ()
    ) -> Any:
        ros = ["--ros-args", "-r", f"__ns:=/{self.name}", *arguments]
        ros += [word for key, value in parameters.items() for word in ("-p", f"{key}:={json.dumps(value)}")]
        return self._start(role, [*command, *ros])


class BridgeSubject(Subject):
    """Bridge, its vehicle, and the relay between them."""

    family = "bridges"
    role = "bridge"

    def __init__(self, kind: ProtocolKind, domain: int, scratch: Path) -> None:
        self.kind = kind
        super().__init__(f"{kind.name}_bridge", domain, scratch, [Vehicle(kind)])

    def start_program(self, arguments: Sequence[str] = ()) -> Any:
        self.program = self._start_side(self.kind, self.role, self.vehicles[0].parameters, arguments)
        return self.program

    def first_word_after(self, since_s: float) -> float:
        return _first_words(self.vehicles, self.program, since_s)


class ServerSubject(Subject):
    """Server, its operator, and a ROS vehicle."""

    family = "servers"
    role = "server"

    def __init__(self, kind: ProtocolKind, domain: int, scratch: Path) -> None:
        self.kind = kind
        super().__init__(f"{kind.name}_server", domain, scratch, [Vehicle(kind)])
        self.logs = [CommandLog()]
        own = {each.parameter: free_port() for each in kind.ports}
        self.parameters: dict[str, Value] = {"host": LOOPBACK, "command_timeout": COMMAND_TIMEOUT_S, **own}
        if "role" in kind.emulated:  # role of the bridge
            self.parameters["role"] = "listen" if kind.emulated["role"] == "connect" else "connect"
        if kind.ports[0].side is Side.VEHICLE:  # otherwise, the server connects
            self.port = own[kind.ports[0].parameter]
        self.operator: Any = None
        self._is_commanded = False

    @property
    def faults(self) -> tuple[str, ...]:
        return ()  # the relay is not in front of the program under test

    def start_surroundings(self) -> None:
        elsewhere = [word for name in COMMAND_TOPICS for word in ("-r", f"{name}:=of_others/{name}")]
        self._start_side(self.kind, "bridge", self.vehicles[0].parameters, elsewhere)

    def start_program(self, arguments: Sequence[str] = ()) -> Any:
        self.program = self._start_side(self.kind, self.role, self.parameters, arguments)
        return self.program

    def command(self) -> None:
        self._is_commanded = True
        if self.operator is None or not self.operator.is_running:
            operator = self.kind.operator
            assert operator, f"{self.kind.name} has no operator, so its server has nobody to follow."
            assert self.kind.server
            options = {**operator.beside(self.kind.server, self.parameters), **operator.at_once, "plan": PLAN}
            command = [executable("drone-bridge"), "operate", operator.name, *operator.words(options)]
            self.operator = self._start("operator", command)

    def let_go(self) -> float:
        """Kill the operator."""
        self._is_commanded = False
        if self.operator and self.operator.is_running:
            self.operator.send(signal.SIGKILL)
            self.operator.wait()
        return time.monotonic()

    def works_after(self, since_s: float, timeout_s: float = START_TIMEOUT_S) -> float:
        limit_s = time.monotonic() + timeout_s
        while time.monotonic() < limit_s and not self._is_closed:
            if self._is_commanded:
                self.command()  # an operator that was refused may have ended
            if self.logs[0].wait(False, since_s, COMMAND_TIMEOUT_S):
                break
        return super().works_after(since_s, 0.0)

    def _make_commander(self) -> Commander:
        return Commander(self._domain, [], {f"/{self.name}/cmd_vel": self.logs[0]})


def _first_words(vehicles: Sequence[Vehicle], program: Any, since_s: float) -> float:
    """Wait for neutral commands. Return their delay."""
    for vehicle in vehicles:
        limit_s = since_s + START_TIMEOUT_S
        while not vehicle.commands.wait(True, since_s, 0.05):
            if vehicle.commands.is_closed or time.monotonic() > limit_s:
                raise MovedError(f"the next one sent no neutral command: {program.output[-500:]}")
    return time.monotonic() - since_s
