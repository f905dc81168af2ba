# SPDX-License-Identifier: Apache-2.0
"""Each bridge with its emulated vehicle and a relay in between, as processes for a campaign to disturb."""

import contextlib
import os
import signal
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ament_index_python.packages import get_package_prefix
from children import ChildError
from relay import DATAGRAM_FAULTS, STREAM_FAULTS, DatagramRelay, Ear, StreamRelay, Words

from drone_bridge.protocols import NEED_DATA, dronegui, robot, simulator, telemetry

COMMAND_TIMEOUT_S: Final = 0.5
START_TIMEOUT_S: Final = 60.0
END_TIMEOUT_S: Final = 20.0
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
_MOTION_PARAMETERS: Final = struct.Struct(">4f")
#: Largest yaw rate of a neutral command, degrees/s. A hovering drone uses the other axes to stay in place.
_HOVERING_RATE: Final = 0.5


def testbed_ear() -> Ear:
    """Read answers to frames; those without a yaw rate are neutral, as a hovering drone leans against the wind."""
    heard = bytearray()

    def hear(data: bytes) -> Iterable[bool]:
        heard.extend(data)
        while len(heard) >= _MOTION_PARAMETERS.size:
            _, _, yaw_rate, _ = _MOTION_PARAMETERS.unpack_from(heard)
            del heard[: _MOTION_PARAMETERS.size]
            yield abs(yaw_rate) <= _HOVERING_RATE

    return hear


def dronegui_ear() -> Ear:
    """Read packets of a controller: hover is neutral, and so is a button without tilt."""

    def hear(data: bytes) -> Iterable[bool]:
        connection = dronegui.ReceiverConnection(complete_states_only=True)  # each: a new bridge counts from 1 again
        connection.receive_data(data)
        if isinstance(packet := connection.next_event(), dronegui.ControlPacket):
            controls = packet.controls
            yield controls.hover or not any((controls.roll, controls.pitch, controls.yaw, controls.gas))

    return hear


def robot_ear() -> Ear:
    """Read speeds of the tracks."""
    connection = robot.RobotConnection((robot.SubsystemType.SKID_STEER, robot.SubsystemType.LIGHTS))

    def hear(data: bytes) -> Iterable[bool]:
        connection.receive_data(data)
        while (packet := connection.next_event()) is not NEED_DATA:
            if isinstance(packet, robot.SkidSteerUpdate):
                yield packet.left == packet.right == 0

    return hear


def simulator_ear() -> Ear:
    """Read velocities of the vehicle."""
    connection = simulator.ServerConnection()

    def hear(data: bytes) -> Iterable[bool]:
        connection.receive_data(data)
        while (request := connection.next_event()) is not NEED_DATA:
            if isinstance(request, simulator.SetEntity) and request.attribute == simulator.Attribute.VELOCITY:
                assert isinstance(request.value, tuple)
                yield not any(request.value)

    return hear


def telemetry_ear() -> Ear:
    """Read commands to a drone."""
    connection = telemetry.DroneConnection()

    def hear(data: bytes) -> Iterable[bool]:
        connection.receive_data(data)
        while isinstance(command := connection.next_event(), telemetry.DroneCommand):
            yield not any((command.thrust, command.pitch, command.roll, command.yaw))

    return hear


@dataclass(frozen=True)
class Kind:
    """How the two programs of a protocol are started; texts may name {near}, {far} and {extra}, which are ports."""

    name: str
    make_ear: Callable[[], Ear]
    emulator: tuple[str, ...]
    bridge: tuple[str, ...]
    is_stream: bool = True
    vehicle_begins: bool = False
    vehicle_asks: bool = False  # for each step of its motion, so that nothing moves it until it has asked again


KINDS: Final = (
    Kind(
        "testbed",
        testbed_ear,
        (
            "testbed_emulator",
            "--port",
            "{far}",
            "--realtime",
            "--rate",
            "20",
            "--width",
            "64",
            "--height",
            "48",
            "--layout",
            "pose",
        ),
        ("port:={near}", "attitude_layout:=pose"),
        vehicle_asks=True,
    ),
    Kind(
        "dronegui",
        dronegui_ear,
        (
            "dronegui_emulator",
            "--port",
            "{far}",
            "--navdata-port",
            "{extra}",
            "--navdata-source-port",
            "0",
            "--bootstrapped",
        ),
        ("port:={near}", "navdata_port:={extra}"),
        is_stream=False,
    ),
    Kind(
        "simulator",
        simulator_ear,
        ("simulator_emulator", "--port", "{far}", "--rate", "20", "--running", "--scene", "buoys"),
        ("port:={near}", "body_to_model:=[1.0, 0.0, 0.0, 0.0]"),
    ),
    Kind(
        "robot",
        robot_ear,
        ("robot_emulator", "--port", "{far}", "--no-discovery", "--sensor-period", "0.1"),
        ("port:={near}",),
    ),
    Kind(
        "telemetry",
        telemetry_ear,
        ("landing_emulator", "--port", "{near}"),
        ("port:={far}", "transport:=udp"),
        is_stream=False,
        vehicle_begins=True,
    ),
)


class Program:
    """A process with its output in a file."""

    def __init__(self, name: str, command: list[str], scratch: Path, domain: int) -> None:
        self.output_file = scratch / f"{name}.{time.monotonic_ns()}.txt"
        environment = {**os.environ, "ROS_DOMAIN_ID": str(domain), "ROS_LOG_DIR": str(scratch), "PYTHONUNBUFFERED": "1"}
        with self.output_file.open("wb") as output:
            # In a session of its own, so that Ctrl-C does not reach it.
            self._process = subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.pid = self._process.pid
        self.started_s = time.monotonic()

    @property
    def output(self) -> str:
        """What it has printed."""
        return self.output_file.read_text(errors="replace")

    @property
    def is_running(self) -> bool:
        """Whether it is running."""
        return self._process.poll() is None

    def send(self, number: signal.Signals) -> None:
        """Send a signal."""
        self._process.send_signal(number)

    def wait(self, timeout_s: float = END_TIMEOUT_S) -> int | None:
        """Return its exit status; None if it does not end."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(timeout_s)
        return None

    def end(self) -> int | None:
        """Stop it with SIGINT, then SIGKILL; return its exit status, or None if it had to be killed."""
        self.send(signal.SIGTERM)
        status = self.wait()
        if status is None:
            self.send(signal.SIGKILL)
            self._process.wait()
        return status

    def anonymous_kib(self) -> int:
        """Return how much resident memory it has allocated: without files, such as libraries, that are mapped."""
        _, resident, shared, *_ = map(int, self._proc("statm").read_text().split())
        return (resident - shared) * _PAGE_BYTES // 1024

    def descriptors(self) -> int:
        """Return how many descriptors are open."""
        return len(os.listdir(self._proc("fd")))

    def threads(self) -> int:
        """Return how many threads it has."""
        return len(os.listdir(self._proc("task")))

    def shared_memory(self) -> set[str]:
        """Return the files in /dev/shm that it has mapped."""
        with contextlib.suppress(OSError):
            lines = self._proc("maps").read_text().splitlines()
            return {line.split()[5] for line in lines if "/dev/shm/" in line and len(line.split()) == 6}
        return set()

    def signals(self) -> str:
        """Return which signals are pending, blocked, ignored and caught, as the kernel shows it."""
        lines = self._proc("status").read_text().splitlines()
        return ", ".join(line.replace("\t", " ") for line in lines if line.startswith(("Sig", "Shd")))

    def _proc(self, name: str) -> Path:
        return Path(f"/proc/{self.pid}") / name


class Pair:
    """One bridge, its vehicle, and the relay between them."""

    def __init__(self, kind: Kind, namespace: str, domain: int, scratch: Path) -> None:
        self.kind, self.namespace = kind, namespace
        self.words = Words()
        self.is_commanded = True
        self._domain, self._scratch = domain, scratch
        far, extra = _free_port(kind.is_stream), _free_port(is_stream=False)
        self.relay: StreamRelay | DatagramRelay
        if kind.is_stream:
            self.relay = StreamRelay(far, kind.make_ear, self.words)
        else:
            self.relay = DatagramRelay(far, kind.make_ear, self.words, kind.vehicle_begins)
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
        name, *arguments = [part.format(**self._ports) for part in self.kind.emulator]
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
        return self.words.wait(False, since_s, timeout_s)

    def becomes_neutral(self, since_s: float, within_s: float) -> float | None:
        """Return for how long after a moment the vehicle was moved; None if that goes on for longer than allowed.

        A vehicle that is told nothing meanwhile, as one that is only just starting, has to be told something neutral
        next. So has one that asks for each step, and has not been able to ask again.
        """
        limit_s = since_s + within_s
        time.sleep(max(0.0, limit_s - time.monotonic()))
        said = self.words.since(since_s)
        if not said or (self.kind.vehicle_asks and not said[-1][1]):
            self.words.wait(None, limit_s, START_TIMEOUT_S)
            said = self.words.since(since_s)
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


def left_behind(files: set[str]) -> list[str]:
    """Return the files in /dev/shm that no process uses any more."""
    mapped = set()
    for maps in Path("/proc").glob("[0-9]*/maps"):
        with contextlib.suppress(OSError):
            mapped |= {line.split()[-1] for line in maps.read_text().splitlines() if "/dev/shm/" in line}
    return sorted(name for name in files - mapped if os.path.exists(name))


def is_port(file: str) -> bool:
    """Return whether it is the queue of a DDS port, which Fast DDS leaves for the port's next user."""
    return "_port" in file


def _executable(name: str) -> str:
    return os.path.join(get_package_prefix("drone_bridge"), "lib", "drone_bridge", name)


def _free_port(is_stream: bool) -> int:
    kind = socket.SOCK_STREAM if is_stream else socket.SOCK_DGRAM
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
