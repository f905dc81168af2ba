# SPDX-License-Identifier: Apache-2.0
"""The runner's supervisor in virtual time, with played programs: signals in order, restarts, and its exit status."""

import asyncio
import os
import selectors
import signal
import subprocess
from dataclasses import dataclass
from functools import partial
from itertools import count
from types import SimpleNamespace

import pytest
from patience import wait_until

from drone_bridge.ros.hold.wish_file import WishFiles
from drone_bridge.tools.launch import processes
from drone_bridge.tools.launch.evaluate import evaluate

INT, TERM, KILL = signal.SIGINT, signal.SIGTERM, signal.SIGKILL
#: Time in which a program obeys a signal, s.
OBEYS_S = 0.1


@dataclass(frozen=True)
class Life:
    """Life of a program, with times since its start."""

    ends: tuple[float, int] | None = None
    """When it ends by itself, and its status, or minus the signal that ended it"""
    obeys: tuple[int, ...] = (INT, TERM)
    says: str = ""
    """Its last output on standard error"""
    leaves_child: bool = False
    """Whether a child stays in its group, which obeys the same signals"""
    wakes_s: float = 0.0
    """When it is continued, having been suspended"""
    error: OSError | None = None
    """Why it can't be started"""


STUBBORN = Life(obeys=())


class VirtualLoop(asyncio.SelectorEventLoop):
    """Event loop that waits in no time, and gets signals from the test."""

    def __init__(self):
        super().__init__(selectors.DefaultSelector())
        self.now_s, self.handlers, self._ready_now = 0.0, {}, self._selector.select
        self._selector.select = self._select

    def _select(self, timeout):
        ready = self._ready_now(0)
        self.now_s += 0.0 if ready else timeout  # without a timeout it would wait forever, which is an error
        return ready

    def time(self):
        return self.now_s

    def add_signal_handler(self, number, call, *arguments):
        self.handlers[number] = partial(call, *arguments)


class Run:
    """Run of a launch file."""

    def __init__(self, launched, lives):
        self.loop, self.launched, self._lives = VirtualLoop(), launched, lives
        self.sent, self.lines = [], []
        """Signals as (s, name, signal); lines on the screen"""
        self._running, self._left, self._groups, self._ended, self._pids = {}, {}, set(), [], count(1000)
        self.supervisor = processes._Supervisor(launched)

    def at(self, time_s, number):
        """Send a signal to the runner."""
        self.loop.call_later(time_s, self._receive, number)

    def _receive(self, number):
        self.loop.handlers[number]()

    def status(self):
        """Run to the end. Return the exit status."""
        try:
            return self.loop.run_until_complete(asyncio.wait_for(self.supervisor.run(), 600))
        finally:
            self.loop.close()

    def has_printed(self, text):
        return any(text in line for line in self.lines)

    def screen(self, _, on_failure):
        self._on_failure = on_failure
        return self

    def break_screen(self):
        self._on_failure(BrokenPipeError())

    def put(self, data):
        self.lines += data.decode().splitlines()

    def finish(self, patience_s):
        pass

    def start(self, command, **options):
        name = os.path.basename(command[0])
        life = self._lives[name].pop(0)
        if life.error:
            raise life.error
        pid = next(self._pids)
        pipes = os.pipe(), os.pipe()
        self._running[pid] = name, life, self.loop.now_s, [writer for _, writer in pipes]
        self._groups.add(pid)
        if life.ends:
            self.loop.call_later(life.ends[0], self._end, pid, life.ends[1])
        stdout, stderr = (os.fdopen(reader, "rb", 0) for reader, _ in pipes)
        return SimpleNamespace(pid=pid, stdout=stdout, stderr=stderr, returncode=None)

    def kill_group(self, pid, number):
        name, life, began_s, _ = self._running.get(pid) or ("child", self._left[pid], 0.0, None)
        self.sent.append((round(self.loop.now_s, 3), name, number))
        if number == KILL:
            self.loop.call_soon(self._end, pid, -KILL)
        elif number in life.obeys:
            self.loop.call_at(max(self.loop.now_s + OBEYS_S, began_s + life.wakes_s), self._end, pid, 0)

    def _end(self, pid, status):
        if pid in self._running:
            _, life, _, writers = self._running.pop(pid)
            os.write(writers[1], life.says.encode())
            for writer in writers:
                os.close(writer)
            self._ended.append((pid, status))
            self._left[pid] = life
            self._groups -= set() if life.leaves_child else {pid}
        else:
            self._groups.discard(pid)
        self.loop.handlers[signal.SIGCHLD]()

    def next_ended(self):
        return self._ended.pop(0) if self._ended else None

    def has_children(self, pid):
        return pid in self._groups


@pytest.fixture
def play(tmp_path, monkeypatch):
    """Return a function that prepares a run of programs, by name and with their lives, one after the other."""

    def prepare(*, attributes=(), words=(), **lives):
        elements = ""
        for name in lives:
            (tmp_path / name).touch(0o755)
            command = f"{tmp_path / name} {dict(words).get(name, '')}"
            elements += f'<executable cmd="{command}" {dict(attributes).get(name, "")}/>'
        (tmp_path / "some.launch.xml").write_text(f"<launch>{elements}</launch>")
        listed = {name: [*each] if isinstance(each, list) else [each] for name, each in lives.items()}
        run = Run(evaluate(tmp_path / "some.launch.xml", {}, tmp_path), listed)
        monkeypatch.setattr(processes, "_LIBC", SimpleNamespace(prctl=lambda *_: None))
        monkeypatch.setattr(processes, "Sink", run.screen)
        monkeypatch.setattr(processes, "_next_ended_child", run.next_ended)
        monkeypatch.setattr(processes, "_has_children", run.has_children)
        monkeypatch.setattr(processes.os, "killpg", run.kill_group)
        played = SimpleNamespace(Popen=run.start, PIPE=subprocess.PIPE, DEVNULL=subprocess.DEVNULL)
        monkeypatch.setattr(processes, "subprocess", played)
        return run

    return prepare


RESPAWNS = "respawn='true' respawn_delay='0.5'"
ENDS_LAUNCH = "--ends-launch"


def test_all_are_stopped_in_reverse_order_also_restarted_ones_and_observers_last(play):
    run = play(
        attributes={"some_bridge": RESPAWNS},
        **{"emulator": Life(), "some_bridge": [Life((1.0, 1)), Life()], "web_bridge": Life(), "controller": Life()},
    )
    run.at(9.0, INT)
    assert run.status() == 130
    order = ("controller", "some_bridge", "emulator", "web_bridge")
    assert run.sent == [(pytest.approx(9.0 + n * OBEYS_S), name, INT) for n, name in enumerate(order)]
    assert run.lines.count("[launch] SIGINT received: stopping everything") == 1


@pytest.mark.parametrize(
    ("status", "how"),
    [(0, "ended"), (3, "failed with exit status 3"), (-11, "was ended by SIGSEGV"), (-36, "was ended by signal 36")],
)
def test_a_failure_is_reported_and_the_others_continue(play, status, how):
    run = play(controller=Life((1.0, status)), other=Life((5.0, 0)))
    assert run.status() == int(status != 0)
    assert run.sent == []
    assert [line for line in run.lines if "ended" in line or "failed" in line] == [
        f"[launch] controller-1 {how} (pid 1000)",
        "[launch] other-2 ended (pid 1001)",
    ]


def test_a_controller_that_cannot_start_ends_everything(play):
    says = "no cv2\n[log] No log file\n"  # the latter is not why
    run = play(waits=Life(), some_controller=Life((1.0, 2), says=says))
    assert run.status() == 2
    assert run.has_printed("some_controller-2 can't start: stopping everything")
    assert run.sent == [(1.0, "waits", INT)]
    assert run.lines[-1] == "[launch] some_controller-2 failed with exit status 2: no cv2"


@pytest.mark.parametrize(("ends", "status"), [(0, 0), (7, 7), (-9, 137)])
def test_end_of_a_required_process_ends_everything(play, ends, status):
    run = play(words={"last": ENDS_LAUNCH}, waits=Life(), last=Life((1.0, ends)))
    assert run.status() == status
    assert run.has_printed("last-2 is required: stopping everything")
    assert run.sent == [(1.0, "waits", INT)]


def test_failed_processes_are_listed_again_at_the_end(play):
    run = play(waits=Life(), told=Life((2.01, 130), obeys=()), fails=Life((1.0, 2), says="port taken\n"))
    run.at(2.0, INT)
    assert run.status() == 130
    assert run.lines[-1] == "[launch] fails-3 failed with exit status 2: port taken"


def test_stubborn_ones_are_killed_in_the_end(play):
    run = play(emulator=STUBBORN, some_bridge=STUBBORN)
    run.at(1.0, INT)
    assert run.status() == 130
    assert run.sent == [
        *((1.0, "some_bridge", INT), (2.0, "emulator", INT)),
        *((4.0, "emulator", TERM), (4.0, "some_bridge", TERM)),
        *((5.0, "emulator", KILL), (5.0, "some_bridge", KILL)),
    ]
    assert run.loop.now_s < 8.0
    assert run.has_printed("some_bridge-2 has not stopped, and gets SIGKILL")


def test_many_get_more_time(play):
    run = play(**{f"program_{number}": STUBBORN for number in range(20)})
    run.at(1.0, TERM)
    assert run.status() == 143
    assert [time_s for time_s, _, number in run.sent if number == INT] == pytest.approx(
        [1.0 + 0.15 * number for number in range(20)]
    )
    assert {time_s for time_s, _, number in run.sent if number == TERM} == {5.0}


def test_further_signals_kill_at_once_but_a_suspended_bridge_may_stop_first(play):
    run = play(some_bridge=Life(wakes_s=4.5), controller=STUBBORN)
    for time_s in (1.0, 1.5, 1.8):
        run.at(time_s, INT)
    assert run.status() == 130
    assert run.sent == [
        (1.0, "controller", INT),
        *((1.5, "some_bridge", INT), (1.5, "some_bridge", TERM), (1.5, "controller", TERM)),
        (1.8, "controller", KILL),
    ]
    run = play(some_bridge=STUBBORN)
    for time_s in (1.0, 1.5, 1.8):
        run.at(time_s, INT)
    assert run.status() == 130
    assert run.sent[-1] == (5.0, "some_bridge", KILL)


def test_a_process_that_ends_is_restarted_but_not_if_it_refuses_its_settings(play):
    run = play(attributes={"again": RESPAWNS}, again=[Life((1.0, 0)), Life((1.0, -9)), Life((1.0, 2)), Life()])
    assert run.status() == 1
    assert run.loop.now_s == pytest.approx(4.0)
    assert sum("started" in line for line in run.lines) == 3


def test_a_process_that_cannot_be_started(play):
    failure = OSError(8, "Exec format error")
    run = play(words={"no_program": ENDS_LAUNCH}, no_program=Life(error=failure), later=Life())
    assert run.status() == 126
    assert run.has_printed("no_program-1 cannot be started: [Errno 8] Exec format error")
    assert not run.has_printed("later-2 started")
    run = play(attributes={"again": RESPAWNS}, again=[Life((1.0, 0)), Life(error=failure), Life((1.0, 2))])
    assert run.status() == 1
    assert run.loop.now_s == pytest.approx(1.0 + 0.5 + processes._START_PERIOD + 1.0)


@pytest.mark.parametrize(
    ("obeys", "sent"), [((TERM,), [(1.0, "child", TERM)]), ((), [(1.0, "child", TERM), (2.0, "child", KILL)])]
)
def test_what_a_process_leaves_behind_is_stopped(play, obeys, sent):
    run = play(leaves=Life((1.0, 0), obeys, leaves_child=True), waits=Life((5.0, 0)))
    assert run.status() == 0
    assert run.has_printed("leaves-1 has left processes behind")
    assert run.sent == sent


def test_a_closed_screen_ends_the_run(play):
    run = play(waits=Life())
    run.loop.call_later(1.0, run.break_screen)
    assert run.status() == 128 + signal.SIGPIPE
    assert run.sent == [(1.0, "waits", INT)]


def test_ctrl_z_holds_the_bridges_of_a_launch(play, monkeypatch, tmp_path):
    monkeypatch.setenv("ROS_HOME", str(tmp_path))
    monkeypatch.setenv("ROS_DOMAIN_ID", "7")
    names = "--ros-args -r __node:=hawk -r __ns:=/a --params-file x -r __ns:=/b"
    run = play(words={"other_bridge": names}, web_bridge=Life(), some_bridge=Life(), other_bridge=Life(), c=Life())
    held = []

    def look():
        run.loop.handlers[signal.SIGTSTP]()
        wait_until(lambda: WishFiles(7).read(), "the wish")
        held.extend(wish.name for wish in WishFiles(7).read())

    run.loop.call_later(1.0, look)
    run.at(2.0, INT)
    run.at(2.05, signal.SIGTSTP)
    assert run.status() == 130
    assert sorted(held) == ["/a/hawk", "/some_bridge"]
    assert sum("Ctrl-Z suspends nothing, and holds" in line for line in run.lines) == 1
