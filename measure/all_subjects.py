# SPDX-License-Identifier: Apache-2.0
"""all_subjects: subjects of measurements: bridges and servers, the page's server, and the recorder."""

import contextlib
import json
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from mcap.reader import make_reader
from ports import free_port
from processes import executable
from subjects import LOOPBACK, START_TIMEOUT_S, BridgeSubject, NotRecoveredError, ServerSubject, Subject, Vehicle

from drone_bridge.kind import ROBOTS, kinds
from drone_bridge.tools.recover.command import recover

MAX_LOST_S = 1.0  # of a recording whose recorder was killed
PILOT_PAUSE_S = 0.2


class WebSubject(Subject):
    """`web_bridge` with the pilot of a vehicle, and a stranger who also commands it: only the pilot may move it.

    The stranger starts once the pilot has driven. From then on the vehicle is steered by a pilot, or on hold.
    """

    family = "web_bridge"
    role = "web"
    speaks_itself = False

    def __init__(self, domain: int, scratch: Path) -> None:
        self._kind = kinds()["robot"]  # commanded speeds, so that a zero of the helm is no motion on its wire
        super().__init__("web_bridge", domain, scratch, [Vehicle(self._kind)])
        self.port = free_port()
        self._pilot: Pilot | None = None

    @property
    def faults(self) -> tuple[str, ...]:
        return ()

    def start_surroundings(self) -> None:
        self._start_side(self._kind, "bridge", self.vehicles[0].parameters)

    def start_program(self, arguments: Sequence[str] = ()) -> Any:
        self.program = self._start_node(self.role, [executable("web_bridge")], {"port": self.port}, arguments)
        return self.program

    def command(self) -> None:
        self._pilot = self._pilot or Pilot(self.port)

    def let_go(self) -> float:
        """Drop the pilot's connection."""
        if self._pilot:
            self._pilot.close()
        self._pilot = None
        return time.monotonic()

    def works_after(self, since_s: float, timeout_s: float = START_TIMEOUT_S) -> float:
        took_s = super().works_after(since_s, timeout_s)
        if self._commander:
            self._commander.is_commanding = True
        return took_s


class RecorderSubject(Subject):
    """Recorder of unused commands. It works if its bag grows."""

    family = "recorder"
    role = "recorder"

    def __init__(self, domain: int, scratch: Path) -> None:
        super().__init__("recorder", domain, scratch)
        self._bags = (scratch / f"bag{number}" for number in range(1 << 30))
        self._bag = scratch
        self._recorded_ns = 0  # for the first time in this bag

    def start_program(self, arguments: Sequence[str] = ()) -> Any:
        self._bag, self._recorded_ns = next(self._bags), 0
        self.program = self._start_node(self.role, [executable("recorder")], {"bag": str(self._bag)}, arguments)
        return self.program

    def works_after(self, since_s: float, timeout_s: float = START_TIMEOUT_S) -> float:
        before = self._size()
        while time.monotonic() < since_s + timeout_s and not self._is_closed:
            if self._size() > before:
                self._recorded_ns = self._recorded_ns or time.time_ns()
                return time.monotonic() - since_s
            time.sleep(0.02)
        raise NotRecoveredError(f"nothing was recorded within {timeout_s:g} s: {self.program.output[-500:]}")

    def check_left(self, ended_ns: int, was_killed: bool) -> None:
        for file in self._files():
            if was_killed:
                saved = self._scratch / "saved.mcap"
                # ValueError: killed before a message was written
                with file.open("rb") as damaged, saved.open("wb") as complete, contextlib.suppress(ValueError):
                    recover(damaged, complete)
                with saved.open("rb") as whole:
                    end_ns = max((message.log_time for _, _, message in make_reader(whole).iter_messages()), default=0)
            else:
                with file.open("rb") as whole:
                    summary = make_reader(whole).get_summary()
                if not (summary and summary.statistics):
                    raise NotRecoveredError("the bag has no summary")
                end_ns = summary.statistics.message_end_time
            lost_ns = ended_ns - max(end_ns, self._recorded_ns)
            if lost_ns > MAX_LOST_S * 1e9:
                raise NotRecoveredError(f"{lost_ns / 1e9:.1f} s of the recording are lost")

    def _files(self) -> Iterator[Path]:
        return self._bag.glob("*.mcap")

    def _size(self) -> int:
        return sum(file.stat().st_size for file in self._files())


class Pilot:
    """Pilot at the helm of the page's only vehicle, who takes it again whenever it is lost."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._closing = threading.Event()
        self._connection: Any = None
        self._thread = threading.Thread(target=self._run, name="pilot")
        self._thread.start()

    def close(self) -> None:
        """Disconnect abruptly, like a page whose browser was killed."""
        self._closing.set()
        if self._connection:
            with contextlib.suppress(OSError):
                self._connection.socket.shutdown(socket.SHUT_RDWR)  # closing alone would not wake a blocked reader
        self._thread.join()

    def _run(self) -> None:
        from websockets.exceptions import WebSocketException
        from websockets.sync.client import connect
        from websockets.typing import Subprotocol

        open_helm = partial(
            connect,
            f"ws://{LOOPBACK}:{self._port}",
            subprotocols=[Subprotocol("drone_bridge.helm.v1")],
            close_timeout=1,
            proxy=None,
        )
        while not self._closing.wait(PILOT_PAUSE_S):
            try:
                with open_helm() as self._connection:
                    self._steer(self._connection)
            except (OSError, WebSocketException):
                continue

    def _steer(self, connection: Any) -> None:
        motion: dict[str, float] = {}
        request: dict[str, Any] | None = None
        for text in connection:
            if self._closing.is_set():
                return
            heard = json.loads(text)
            if heard["op"] == "vehicles" and (vehicle := next(iter(heard["vehicles"]), None)):
                is_ours = vehicle["pilot"] == "you"
                request = {"op": "steer"} if is_ours else {"op": "take", "vehicle": vehicle["topic"]}
            elif heard["op"] == "token" and request:
                connection.send(json.dumps({**request, "token": heard["token"], "motion": motion}))
                motion = {"x": 0.5, "yaw": 0.5}
            elif heard["op"] == "refused":
                motion = {}  # after a delay, the stick must be released


def all_subjects() -> dict[str, Any]:
    """Return the constructor of each subject, from a ROS domain and a folder, by name."""
    judged = [kind for kind in kinds().values() if kind.commands and kind.name not in ROBOTS]
    return {
        **{f"{kind.name}_bridge": partial(BridgeSubject, kind) for kind in judged},
        **{f"{kind.name}_server": partial(ServerSubject, kind) for kind in judged if kind.server},
        **{each.family: each for each in (WebSubject, RecorderSubject)},
    }
