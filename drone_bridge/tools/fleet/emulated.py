# SPDX-License-Identifier: Apache-2.0
"""The emulated vehicles of a fleet, each in a process of its own."""

import ctypes
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable

from drone_bridge.tools.fleet.plan import Vehicle

COMMAND = "drone_bridge.tools.cli"
_STOP_TIMEOUT_S = 2.0
_PR_SET_PDEATHSIG = 1  # <linux/prctl.h>
_LIBC = ctypes.CDLL(None)


class EmulatedVehicle:
    """An emulator, whose output is prefixed with the vehicle's name."""

    def __init__(self, vehicle: Vehicle) -> None:
        assert vehicle.emulate is not None
        self.name = vehicle.name
        self._is_stopping = False
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                COMMAND,
                "emulate",
                vehicle.kind.emulator.name,
                *vehicle.emulator_options,
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,  # Ctrl-C goes to the bridges, whose last commands it still takes
            preexec_fn=_end_with_us,  # noqa: PLW1509 -- it takes no lock
        )
        self._reader = threading.Thread(target=self._read, name=f"{self.name} emulator", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, number: signal.Signals) -> None:
        """Send a signal that ends it."""
        self._is_stopping = True
        self._process.send_signal(number)

    def wait(self, timeout_s: float) -> bool:
        """Return whether it ends within a time."""
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return False
        self._reader.join(timeout_s)
        return True

    def _read(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            print(f"[{self.name} emulator] {line.rstrip()}", flush=True)
        status = self._process.wait()
        if not self._is_stopping:
            print(f"[{self.name} emulator] has exited with status {status}.", flush=True)


def stop_all(emulators: Iterable[EmulatedVehicle]) -> None:
    """Stop them all at the same time."""
    running = list(emulators)
    for number in (signal.SIGTERM, signal.SIGKILL):
        for emulator in running:
            emulator.send(number)
        deadline_s = time.monotonic() + _STOP_TIMEOUT_S
        running = [emulator for emulator in running if not emulator.wait(max(0.0, deadline_s - time.monotonic()))]


def _end_with_us() -> None:
    """Ask, in a process that is about to start, for SIGTERM when this one dies."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
