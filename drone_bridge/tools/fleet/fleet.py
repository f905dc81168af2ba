# SPDX-License-Identifier: Apache-2.0
"""All vehicles of a fleet in one process."""

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

import rclpy
from rclpy.logging import get_logger

from drone_bridge.kind import NodeKind
from drone_bridge.tools.fleet.member import Member
from drone_bridge.tools.fleet.plan import Vehicle
from drone_bridge.tools.launch.processes import LONGEST_STOP_S, end_with_parent

MODEL = NodeKind("drone_bridge.tools.vehicle_model:VehicleModel")


class Fleet:
    """Bridges, controllers, models and emulators. Run by `program.run_work`."""

    def __init__(
        self, vehicles: Iterable[Vehicle], stopping: threading.Event | None = None, *, models: bool = False
    ) -> None:
        """Make all nodes, and start emulators, unless stopped. Raises ValueError for parameters that a node refuses."""
        self._stopping = stopping or threading.Event()
        self._has_models = models
        self.members: dict[str, Member] = {}
        self._emulators: subprocess.Popen[str] | None = None
        self._leaving = threading.Lock()
        self._has_left = False
        self._destroying = threading.Lock()
        try:
            made = []
            for vehicle in vehicles:
                if self._stopping.is_set():
                    return
                self._add(vehicle)
                made.append(vehicle)
            self._emulators = start_emulators(made)
        except BaseException:
            self.destroy()
            raise

    def _add(self, vehicle: Vehicle) -> None:
        self.members[vehicle.name] = Member(vehicle.name, vehicle.kind.bridge, vehicle.namespace, vehicle.parameters)
        if vehicle.control is not None:
            name = f"{vehicle.name} controller"
            self.members[name] = Member(name, vehicle.kind.controller, vehicle.namespace, vehicle.control)
        if self._has_models:
            name = f"{vehicle.name} model"
            look = {"model": vehicle.kind.model, "frame_prefix": vehicle.frame_prefix}
            self.members[name] = Member(name, MODEL, vehicle.namespace, look)

    def start(self) -> bool:
        """Start all nodes; return whether any started. Those that did not have logged why."""
        started = []
        for member in self.members.values():
            if self._stopping.is_set():
                return True
            if member.start():
                started.append(member.name)
        if absent := self.members.keys() - set(started):
            get_logger("fleet").error(f"{', '.join(sorted(absent))} could not start; the others continue.")
        return bool(started)

    def prepare(self) -> None:
        """Give each node its thread."""
        if self._stopping.is_set():
            return
        for member in self.members.values():
            member.prepare()
        get_logger("fleet").info(f"{len(self.members)} nodes are running.")

    def spin(self) -> None:
        """Wait until ROS is shut down."""
        shut_down = threading.Event()
        rclpy.get_default_context().on_shutdown(shut_down.set)
        if rclpy.ok():
            shut_down.wait()

    def leave(self) -> None:
        """Leave all vehicles with neutral commands at the same time, so that a slow one delays no other."""
        with self._leaving:
            if self.members and not self._has_left:
                with ThreadPoolExecutor(len(self.members)) as pool:
                    list(pool.map(Member.leave, self.members.values()))
                self._has_left = True

    def destroy(self) -> None:
        """Stop the emulators, which have had their last commands, and destroy the nodes."""
        with self._destroying:
            if self._emulators:
                stop_emulators(self._emulators)
                self._emulators = None
            # Threads first: until they have ended they hold locks that destroying a node waits for.
            for step in (Member.end_thread, Member.destroy):
                for member in self.members.values():
                    step(member)
            self.members = {}


# The emulated vehicles, each in a process of its own, which the launch runner starts and stops.


COMMAND = "drone_bridge.tools.cli"


def start_emulators(vehicles: Sequence[Vehicle]) -> "subprocess.Popen[str] | None":
    """Start the emulators of those vehicles that have one; return the runner that they are children of."""
    commands = {
        f"{vehicle.name} emulator": [
            *(sys.executable, "-m", COMMAND, "emulate", vehicle.kind.emulator.name),
            *vehicle.emulator_options,
        ]
        for vehicle in vehicles
        if vehicle.emulate is not None
    }
    if not commands:
        return None
    runner = subprocess.Popen(
        [sys.executable, "-m", "drone_bridge.tools.launch.processes"],
        stdin=subprocess.PIPE,
        text=True,
        start_new_session=True,  # Ctrl-C goes to the bridges, whose last commands the emulators still take
        preexec_fn=end_with_parent,  # noqa: PLW1509 -- it takes no lock
    )
    assert runner.stdin
    with runner.stdin:
        json.dump(commands, runner.stdin)
    return runner


def stop_emulators(runner: "subprocess.Popen[str]") -> None:
    """Stop them, and the runner."""
    runner.send_signal(signal.SIGTERM)
    try:
        runner.wait(2 * LONGEST_STOP_S)
    except subprocess.TimeoutExpired:
        runner.kill()
