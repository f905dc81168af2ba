# SPDX-License-Identifier: Apache-2.0
"""Relay between a bridge and its vehicle, which reads every command, and corrupts the vehicle's data on request.

A fault lasts until `heal`, which closes affected connections, since their streams are corrupt.
"""

import contextlib
import random
import select
import socket
import struct
import threading
import time
from abc import abstractmethod
from collections.abc import Callable, Iterable

#: Function from a bridge's data on one connection to one bool per command: whether it is neutral.
CommandReader = Callable[[bytes], Iterable[bool]]

GARBAGE = "garbage"
TRUNCATED = "truncated"
HALF_OPEN = "half-open"
FLOOD = "flood"
TRICKLE = "byte per second"
CUT = "cut"
UNREACHABLE = "unreachable"
STREAM_FAULTS = (GARBAGE, TRUNCATED, HALF_OPEN, FLOOD, TRICKLE, CUT, UNREACHABLE)
DATAGRAM_FAULTS = (GARBAGE, TRUNCATED, HALF_OPEN, FLOOD)
#: Maximum number of commands in a log.
MAX_COMMANDS = 3000
#: Timeout for reading sent data.
CATCHING_UP_S = 60.0
_PIECE_BYTES = 65536
_TICK_S = 0.1
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER: closes with a reset


class CommandLog:
    """Received commands of a bridge, each neutral or moving the vehicle."""

    def __init__(self, *, is_asked: bool = False) -> None:
        """`is_asked`: the vehicle requests each step of its motion, and does not move before its next request."""
        self.is_asked = is_asked
        self.malformed: list[str] = []
        self.is_closed = False  # nobody waits any more
        self._commands: list[tuple[float, bool]] = []
        self._changed = threading.Condition()

    def note(self, is_neutral: bool, when_s: float | None = None) -> None:
        """Record a command received at a time, by default now."""
        with self._changed:
            self._commands.append((time.monotonic() if when_s is None else when_s, is_neutral))
            del self._commands[:-MAX_COMMANDS]
            self._changed.notify_all()

    def wait(self, is_neutral: bool | None, since_s: float, timeout_s: float) -> float | None:
        """Return the time of the first such command after a time (any if `is_neutral` is None), or None."""

        def find() -> float | None:
            wanted = (True, False) if is_neutral is None else (is_neutral,)
            return next((when for when, neutral in self._commands if when >= since_s and neutral in wanted), None)

        with self._changed:
            self._changed.wait_for(lambda: self.is_closed or find() is not None, timeout_s)
            return find()

    def close(self) -> None:
        """Wake all waiting threads."""
        with self._changed:
            self.is_closed = True
            self._changed.notify_all()

    @property
    def is_moving(self) -> bool:
        """Whether the last command moves the vehicle."""
        with self._changed:
            return bool(self._commands) and not self._commands[-1][1]

    @property
    def is_neutral(self) -> bool:
        """Whether the last command is neutral."""
        with self._changed:
            return bool(self._commands) and self._commands[-1][1]

    def since(self, moment_s: float) -> list[tuple[float, bool]]:
        """Return the last commands since a time: the time of each, and whether it was neutral."""
        with self._changed:
            return [command for command in self._commands if command[0] >= moment_s]

    def becomes_neutral(self, since_s: float, within_s: float, patience_s: float) -> float | None:
        """Return for how long the vehicle was moved after a time. None if longer than allowed.

        A vehicle that was neutral before gets no command if its bridge sends only changes. Any other vehicle without a
        command meanwhile must get a neutral one next. So must a vehicle that requests each step, and could not request
        another.
        """
        limit_s = since_s + within_s
        time.sleep(max(0.0, limit_s - time.monotonic()))
        said = self.since(since_s)
        if not said and self.is_neutral:
            return 0.0
        if not said or (self.is_asked and not said[-1][1]):
            self.wait(None, limit_s, patience_s)
            said = self.since(since_s)
        if not said or not said[-1][1]:
            return None
        return max([when for when, is_neutral in said if not is_neutral], default=since_s) - since_s


class Relay:
    """Base class for relays from `port` to `far_port`. `vehicle_begins`: the vehicle sends first."""

    def __init__(
        self, far_port: int, make_reader: Callable[[], CommandReader], commands: CommandLog, vehicle_begins: bool
    ) -> None:
        self.port = 0
        self.fault = ""
        #: Set once the fault has had an effect.
        self.has_spoiled = threading.Event()
        self._far = ("127.0.0.1", far_port)
        self._make_reader = make_reader
        self._commands = commands
        self._vehicle_begins = vehicle_begins
        self._random = random.Random(1)
        self._closing = threading.Event()
        # Threads that read from the bridge, with the last call of catch_up for which they had no data left.
        self._read: dict[object, int] = {}
        self._calls = 0
        self._has_read = threading.Condition()

    @abstractmethod
    def _serve(self) -> None: ...

    def start(self) -> None:
        self._thread = threading.Thread(target=self._serve, name="relay")
        self._thread.start()

    def catch_up(self) -> None:
        """Wait until all data sent by the bridge so far have been read."""
        with self._has_read:
            self._calls += 1
            call = self._calls
            has_read = self._has_read.wait_for(lambda: min(self._read.values(), default=call) >= call, CATCHING_UP_S)
        assert has_read, f"the relay is behind after {CATCHING_UP_S:g} s"

    def spoil(self, fault: str) -> None:
        self.has_spoiled.clear()
        self.fault = fault

    def heal(self) -> None:
        self.fault = ""

    def close(self) -> None:
        self._closing.set()
        self._thread.join()

    def _patience_s(self, reader: object) -> float:
        """Return the timeout of a thread for reading, which is 0 while catch_up waits for it."""
        return 0.0 if self._read[reader] < self._calls else _TICK_S

    def _read_all(self, reader: object, call: int) -> None:
        """Record that a thread has found no data since that call of catch_up."""
        with self._has_read:
            self._read[reader] = call
            self._has_read.notify_all()

    def _ends_reading(self, reader: object) -> None:
        with self._has_read:
            self._read.pop(reader, None)
            self._has_read.notify_all()

    def _spoiled(self, data: bytes) -> bytes:
        """Return the vehicle's data with the fault applied."""
        if self.fault:
            self.has_spoiled.set()
        if self.fault == GARBAGE:
            return self._random.randbytes(len(data))
        if self.fault == TRUNCATED:
            return data[: len(data) // 2]
        return b"" if self.fault in (HALF_OPEN, TRICKLE) else data

    def _record(self, reader: CommandReader, data: bytes) -> None:
        try:
            for is_neutral in reader(data):
                self._commands.note(is_neutral)
        except Exception as error:  # undecodable commands are the faults under test
            self._commands.malformed.append(f"{type(error).__name__}: {error}")


class StreamRelay(Relay):
    """TCP relay for any number of connections, all opened by the bridge."""

    def __init__(self, far_port: int, make_reader: Callable[[], CommandReader], commands: CommandLog) -> None:
        super().__init__(far_port, make_reader, commands, vehicle_begins=False)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._conversations: list[threading.Thread] = []

    def _serve(self) -> None:
        self._read_all(self, 0)
        with self._listener:
            while not self._closing.is_set():
                call = self._calls
                if not select.select([self._listener], [], [], self._patience_s(self))[0]:
                    self._read_all(self, call)
                    continue
                near, _ = self._listener.accept()
                self._read_all(near, 0)
                self._conversations = [thread for thread in self._conversations if thread.is_alive()]
                self._conversations.append(threading.Thread(target=self._converse, args=(near,)))
                self._conversations[-1].start()
        self._ends_reading(self)
        for conversation in self._conversations:
            conversation.join()

    def _converse(self, near: socket.socket) -> None:
        with near, contextlib.ExitStack() as stack:
            stack.callback(self._ends_reading, near)
            near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            if self.fault == UNREACHABLE:
                self.has_spoiled.set()
                return
            with contextlib.suppress(OSError), socket.create_connection(self._far, 5.0) as far:
                for end in (near, far):
                    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    end.settimeout(5.0)
                self._pass_on(near, far)

    def _pass_on(self, near: socket.socket, far: socket.socket) -> None:
        reader, was_spoiled = self._make_reader(), False
        while not self._closing.is_set():
            call = self._calls
            readable, _, _ = select.select([near, far], [], [], self._patience_s(near))
            # Checked afterwards, since a fault may end meanwhile: then nothing more is forwarded.
            if self.fault in (CUT, UNREACHABLE):
                self.has_spoiled.set()
                return
            if was_spoiled and not self.fault:
                return
            was_spoiled = was_spoiled or bool(self.fault)
            if near in readable:
                data = near.recv(_PIECE_BYTES)
                if not data:
                    near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 0, 0))
                    return
                self._record(reader, data)
                if self.fault == HALF_OPEN:  # a vehicle that waits for this command sends no more
                    self.has_spoiled.set()
                else:
                    far.sendall(data)
            else:
                self._read_all(near, call)
            if far in readable:
                data = far.recv(_PIECE_BYTES)
                if not data:
                    return
                near.sendall(self._spoiled(data))
                if self.fault == TRUNCATED:
                    return
            if self.fault == TRICKLE:
                self.has_spoiled.set()
                near.sendall(self._random.randbytes(1))
                self._closing.wait(1.0)
            elif self.fault == FLOOD:
                self.has_spoiled.set()
                near.sendall(self._random.randbytes(_PIECE_BYTES))


class DatagramRelay(Relay):
    """UDP relay: the end that sends first sends to `port`, and receives replies from there."""

    def __init__(
        self, far_port: int, make_reader: Callable[[], CommandReader], commands: CommandLog, vehicle_begins: bool
    ) -> None:
        super().__init__(far_port, make_reader, commands, vehicle_begins)
        self._near = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._near.bind(("127.0.0.1", 0))
        self.port = self._near.getsockname()[1]
        #: The bridge's port for unsolicited data. None: only its sending port.
        self.flooded_port: int | None = far_port if vehicle_begins else None
        self._far_socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._far_socket.bind(("127.0.0.1", 0))

    def _serve(self) -> None:
        reader, beginner = self._make_reader(), None
        bridge_end = self._far_socket if self._vehicle_begins else self._near
        self._read_all(self, 0)
        with self._near, self._far_socket, contextlib.ExitStack() as stack:
            stack.callback(self._ends_reading, self)
            while not self._closing.is_set():
                call = self._calls
                readable = select.select([self._near, self._far_socket], [], [], self._patience_s(self))[0]
                if bridge_end not in readable:
                    self._read_all(self, call)
                for end in readable:
                    with contextlib.suppress(ConnectionRefusedError):
                        data, source = end.recvfrom(_PIECE_BYTES)
                        if end is self._near:
                            beginner = source
                        if (end is self._near) is self._vehicle_begins:
                            data = self._spoiled(data)
                        else:
                            self._record(reader, data)
                        target = self._far if end is self._near else beginner
                        if target and data and self.fault != HALF_OPEN:
                            (self._far_socket if end is self._near else self._near).sendto(data, target)
                if self.fault == HALF_OPEN:  # delays the bridge's data as well
                    self.has_spoiled.set()
                flooded = beginner if self.flooded_port is None else ("127.0.0.1", self.flooded_port)
                if flooded and self.fault in (FLOOD, GARBAGE):
                    self.has_spoiled.set()
                    for _ in range(100 if self.fault == FLOOD else 1):
                        size = self._random.choice((0, 1, 40, 1400, 9000))
                        with contextlib.suppress(OSError):
                            self._near.sendto(self._random.randbytes(size), flooded)
