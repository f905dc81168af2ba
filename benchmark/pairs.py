# SPDX-License-Identifier: Apache-2.0
"""Each bridge with its emulated vehicle and a relay in between, as processes for a campaign to disturb."""

import os
import threading
import time
from pathlib import Path
from typing import Final

from ament_index_python.packages import get_package_prefix
from children import ChildError
from kinds import Kind
from programs import Program
from relay import DATAGRAM_FAULTS, STREAM_FAULTS, CommandLog, DatagramRelay, StreamRelay
from system import free_port

COMMAND_TIMEOUT_S: Final = 0.5
START_TIMEOUT_S: Final = 60.0


class Pair:
    """One bridge, its vehicle, and the relay between them."""

    def __init__(self, kind: Kind, namespace: str, domain: int, scratch: Path) -> None:
        self.kind, self.namespace = kind, namespace
        self.commands = CommandLog()
        self.is_commanded = True
        self.takes_rates = kind.takes_rates
        self._domain, self._scratch = domain, scratch
        far, extra = free_port(is_stream=kind.is_stream), free_port(is_stream=False)
        self.relay: StreamRelay | DatagramRelay
        if kind.is_stream:
            self.relay = StreamRelay(far, kind.make_reader, self.commands)
        else:
            self.relay = DatagramRelay(far, kind.make_reader, self.commands, kind.vehicle_begins)
            self.relay.flooded_port = far if kind.vehicle_begins else extra
        self._ports = {"near": self.relay.port, "far": far, "extra": extra}
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
        name, *arguments = self.kind.emulator.format(**self._ports).split()
        with self._starting:
            self.emulator = self._start("emulator", [_executable(name), *arguments])
        return self.emulator

    def start_bridge(self) -> Program:
        """Start the bridge."""
        command = [_executable(f"{self.kind.name}_bridge"), "--ros-args", "-r", f"__ns:=/{self.namespace}"]
        parameters = (*self.kind.bridge, f"command_timeout:={COMMAND_TIMEOUT_S}")
        for parameter in parameters:
            command += ["-p", parameter.format(**self._ports)]
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
        if not said or (self.kind.vehicle_asks and not said[-1][1]):
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
