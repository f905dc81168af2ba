# SPDX-License-Identifier: Apache-2.0
"""Each bridge with its emulated vehicle and a relay in between, as processes for a campaign to disturb."""

import os
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from ament_index_python.packages import get_package_prefix
from children import ChildError
from programs import Program
from relay import DATAGRAM_FAULTS, STREAM_FAULTS, CommandLog, DatagramRelay, StreamRelay
from system import free_port

from drone_bridge.kind import ProtocolKind, Side, Value, load

COMMAND_TIMEOUT_S = 0.5
START_TIMEOUT_S = 60.0
#: What makes an emulated vehicle light, or answer from the start, by protocol: options of its emulator, and parameters
#: of the bridge.
LIGHT: Mapping[str, tuple[Mapping[str, Value], Mapping[str, Value]]] = {
    "testbed": ({"rate": 20, "width": 64, "height": 48}, {"attitude_layout": "pose"}),
    "simulator": (
        {"rate": 20, "running": True, "scene": "buoys"},
        {"run_on_connect": False, "body_to_model": [1.0, 0.0, 0.0, 0.0]},
    ),
    "robot": ({"sensor-period": 0.1}, {}),
}
#: Whose vehicles ask for each step of their motion, so that nothing moves them until they have asked again.
ASKING = ("testbed",)


class Pair:
    """One bridge, its vehicle, and the relay between them."""

    def __init__(self, kind: ProtocolKind, namespace: str, domain: int, scratch: Path) -> None:
        self.kind, self.namespace = kind, namespace
        self.commands = CommandLog()
        self.is_commanded = True
        self.vehicle_asks = kind.name in ASKING
        self._domain, self._scratch = domain, scratch
        port, *others = kind.ports
        far = free_port(is_stream=kind.is_stream)
        self.parameters: dict[str, Value] = {each.parameter: free_port(is_stream=False) for each in others}
        vehicle_begins = port.side is Side.OPERATOR
        make_reader = load(kind.commands)
        self.relay: StreamRelay | DatagramRelay
        if kind.is_stream:
            self.relay = StreamRelay(far, make_reader, self.commands)
        else:
            self.relay = DatagramRelay(far, make_reader, self.commands, vehicle_begins)
            heard = [int(str(self.parameters[each.parameter])) for each in others if each.side is Side.OPERATOR]
            self.relay.flooded_port = far if vehicle_begins else heard[0]
        options, parameters = LIGHT.get(kind.name, ({}, {}))
        self.parameters |= {"host": "127.0.0.1", "command_timeout": COMMAND_TIMEOUT_S, **kind.emulated, **parameters}
        ends = (self.relay.port, far) if vehicle_begins else (far, self.relay.port)
        self._options = {**kind.emulator.beside(kind.bridge, {**self.parameters, port.parameter: ends[0]}), **options}
        self.parameters[port.parameter] = ends[1]
        self.relay.start()
        self.emulator: Program | None = None
        self.bridge: Program | None = None
        self._is_closed = False
        self._starting = threading.Lock()  # close() may come while another thread starts programs

    @property
    def faults(self) -> tuple[str, ...]:
        """The faults that its relay knows."""
        return STREAM_FAULTS if self.kind.is_stream else DATAGRAM_FAULTS

    def start_emulator(self) -> Program:
        """Start the vehicle."""
        command = [
            _executable("drone-bridge"),
            "emulate",
            self.kind.emulator.name,
            *self.kind.emulator.words(self._options),
        ]
        with self._starting:
            self.emulator = self._start("emulator", command)
        return self.emulator

    def start_bridge(self, arguments: Sequence[str] = ()) -> Program:
        """Start the bridge."""
        command = [_executable(f"{self.kind.name}_bridge"), "--ros-args", "-r", f"__ns:=/{self.namespace}", *arguments]
        for name, value in self.parameters.items():
            command += ["-p", f"{name}:={str(value).lower() if isinstance(value, bool) else value}"]
        with self._starting:
            self.bridge = self._start("bridge", command)
        return self.bridge

    def _start(self, role: str, command: list[str]) -> Program:
        if self._is_closed:
            raise ChildError(f"The {self.kind.name} pair is closed, and starts nothing any more.")
        return Program(f"{self.namespace}.{role}", command, self._scratch, self._domain)

    def is_driven(self, since_s: float, timeout_s: float = START_TIMEOUT_S) -> float | None:
        """Return when the first command that moves the vehicle came after a moment; None if none does."""
        return self.commands.wait(False, since_s, timeout_s)

    def becomes_neutral(self, since_s: float, within_s: float) -> float | None:
        """Return for how long after a moment the vehicle was moved; None if for longer than allowed.

        A vehicle that gets no command meanwhile, such as one that is just starting, has to get a neutral one next. So
        has one that asks for each step, and could not ask again.
        """
        limit_s = since_s + within_s
        time.sleep(max(0.0, limit_s - time.monotonic()))
        said = self.commands.since(since_s)
        if not said or (self.vehicle_asks and not said[-1][1]):
            self.commands.wait(None, limit_s, START_TIMEOUT_S)
            said = self.commands.since(since_s)
        if not said or not said[-1][1]:
            return None
        return max([when for when, is_neutral in said if not is_neutral], default=since_s) - since_s

    def close(self) -> None:
        """Stop everything, for good."""
        with self._starting:
            self._is_closed = True
        for program in (self.bridge, self.emulator):
            if program and program.is_running:
                program.end()
        self.relay.close()


def _executable(name: str) -> str:
    return os.path.join(get_package_prefix("drone_bridge"), "lib", "drone_bridge", name)
