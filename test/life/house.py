# SPDX-License-Identifier: Apache-2.0
"""House: what the nodes of a life find in place of threads, DDS and files of the user's home."""

import contextlib
import math
import os
import tempfile
import threading
import types
from unittest import mock

from virtual_link import VirtualRunner
from virtual_ros import ActionServer
from virtual_time import Process

from drone_bridge.ardrone.vehicle.emulator import __main__ as ardrone_emulator
from drone_bridge.controllers.goals import server as goal_server
from drone_bridge.dronegui.vehicle.emulator import __main__ as dronegui_emulator
from drone_bridge.net import link_loop, wire_log
from drone_bridge.net.last_words import STALL_S
from drone_bridge.net.link_loop import LinkLoop
from drone_bridge.net.note_queue import NoteQueue
from drone_bridge.programs import emulation, program, session_output
from drone_bridge.robot.vehicle import emulator as robot_emulator
from drone_bridge.robot_class.vehicle import emulator as class_emulator
from drone_bridge.ros.hold import hold
from drone_bridge.ros.node import configured_node, protocol_node
from drone_bridge.ros.process import log_pipe
from drone_bridge.simulator.vehicle.emulator import server as simulator_server
from drone_bridge.telemetry.vehicle.emulator import __main__ as telemetry_emulator
from drone_bridge.tools.web import pilots

#: Turns of a loop per second above which it is busy without need.
MAX_TURNS_PER_S = 3000
#: Limit of a wire log's last minute: less than what is sent in one.
KEPT_BYTES = 32 << 10
#: Step of emulated vehicles, s.
STEP_S = 0.02


class VirtualTicker:
    """See ros.ticker."""

    def __init__(self, name, period_s, call, on_failure):
        self.period_s, self._call, self._has_ended = period_s, call, False
        Process.current.every(lambda: self.period_s, self._tick)

    def stop(self):
        self._has_ended = True

    def _tick(self):
        if not self._has_ended:
            self._call()
        return not self._has_ended


class VirtualFileWriter:
    """See ros.hold.file_writer: writes at once."""

    problem = ""

    def __init__(self, write, on_problem):
        self._write = write

    def keep(self, value):
        self._write(value)

    def wait(self, timeout_s):
        return True


@types.coroutine
def pause():
    """Wait for the next message of a page."""
    yield


def run_now(work):
    """See pilots._run_soon. Nothing waits: messages are sent at once, and the wish file is written at once."""
    try:
        work.send(None)
    except StopIteration:
        return
    raise AssertionError("it waits")


async def messages_from(connection):
    """See web.messages."""
    while not connection.has_ended:
        while connection.inbox:
            yield connection.inbox.popleft()
        await pause()


class SilentQueue(NoteQueue):
    """Note queue without its thread: notes are logged at once."""

    def start(self):
        pass


class VirtualKeeper:
    """See net.last_words: the child process that speaks for a bridge which is killed or stalls."""

    def __init__(self, process):
        self._process, self.command_timeout = process, lambda: 0.5
        self._words, self._outlet, self._deadline_s, self._spoken_at = None, None, math.inf, None
        process.on_stall, process.on_kill = self._stalled, self._killed

    @property
    def peer(self):
        return self._words.to if self._words else None

    def keep(self, words, outlet):
        was_armed, self._words, self._outlet = self._words is not None, words, outlet
        if not was_armed:
            self.moved_on()

    def disarm(self):
        self._words = None

    release = disarm

    def moved_on(self):
        self._deadline_s = self._process.life.now_s + self.command_timeout() + STALL_S

    def is_writing(self, rest):
        pass

    def was_written(self):
        self.moved_on()
        spoken_at, self._spoken_at = self._spoken_at, None
        return spoken_at

    def _stalled(self):
        self._process.life.at(self._deadline_s, self._speak)

    def _speak(self):
        """Say what is neutral, once per stall."""
        if self._words and self._process.is_alive and self._process.is_stalled and self._spoken_at is None:
            self._spoken_at = self._process.life.now_s if self._words.neutral else None
            self._send(self._words.neutral)

    def _killed(self):
        if self._words:
            self._send((*self._words.neutral, *self._words.leaves))

    def _send(self, packets):
        for data in packets:
            self._outlet.wire.send(self._outlet.side, data, self._words.to)


def runner_of(process, link, name):
    """Return the runner of a loop's turns in a process."""

    def busy(number):
        if number > MAX_TURNS_PER_S:
            process.life.fault("not busy", f"{name}: {number} turns in a second")

    runner = VirtualRunner(process, link, busy)
    process.life.at_end.append(runner.close)
    return runner


def run_emulation(process, vehicle, links, options, *, is_lazy=True):
    """Run the real loop of an emulated vehicle. What arrives on the first link wakes it. With `is_lazy`, its steps have
    any length: that of STEP_S, or longer in a drowsy life, which it does not catch up.
    """
    kind = type(vehicle)
    if is_lazy:
        emulation.LONGEST_CATCH_UP_S = STEP_S
        own = {"step_s": property(lambda _: process.life.lazy(STEP_S))}
        vehicle.__class__ = type(kind.__name__, (kind,), own)
    never = mock.Mock(is_set=False)
    runner_of(process, links[0], process.name).start(vehicle.turns(links, options, never, None))


def make_loop(name, link, session, stage, clock=None, *, intake=None, keeper=None):
    """Create the real loop of a session, with turns in virtual time."""
    runner = runner_of(Process.current, link, name)
    return LinkLoop(name, link, session, stage, clock, intake=intake, keeper=keeper, runner=runner)


@contextlib.contextmanager
def built(life):
    """Install the house for one life, with an empty ROS_HOME."""
    quiet = lambda *_, **__: None  # noqa: E731
    with contextlib.ExitStack() as stack:
        home = stack.enter_context(tempfile.TemporaryDirectory())
        stack.enter_context(mock.patch.dict(os.environ, {"ROS_HOME": home}))
        for owner, name, replacement in (
            (protocol_node, "LinkLoop", make_loop),
            (class_emulator, "LinkLoop", make_loop),
            *((each, "Ticker", VirtualTicker) for each in (configured_node, protocol_node)),
            (hold, "FileWriter", VirtualFileWriter),
            (link_loop, "NoteQueue", SilentQueue),
            (goal_server, "ActionServer", ActionServer),
            (wire_log, "MINUTE_BYTES", KEPT_BYTES),
            (wire_log.WireLog, "save", lambda *_: ""),
            (pilots, "messages_from", messages_from),
            (pilots, "_run_soon", run_now),
            (threading, "Timer", lambda *_: mock.Mock()),
            (log_pipe, "borrow_keeper", lambda: VirtualKeeper(Process.current)),
            (log_pipe, "return_keeper", quiet),
            *((each, "print_event", quiet) for each in (emulation, program, session_output)),
            *((each, "print_event", quiet) for each in (robot_emulator, class_emulator, telemetry_emulator)),
            *((each, "print_event", quiet) for each in (ardrone_emulator, dronegui_emulator, simulator_server)),
            (emulation, "print_status", quiet),
            (emulation, "LONGEST_CATCH_UP_S", emulation.LONGEST_CATCH_UP_S),
            (program, "_print", quiet),
        ):
            stack.enter_context(mock.patch.object(owner, name, replacement))
        stack.enter_context(life.installed())
        yield
        life.finish()
