# SPDX-License-Identifier: Apache-2.0
"""Supervisor of processes: starts, monitors and stops them in order, without leftovers. For Linux.

Each process leads its own session. A Ctrl-C at the terminal therefore reaches the runner only, and a signal to a
process reaches its children, too. Processes are stopped by SIGINT in the reverse order of the launch file, also if they
were restarted meanwhile, and observers (the page and the recorder) after all others, wherever they are in the file.
Each gets the signal when the previous one has ended, or when the time of that one and those before it has passed. A
vehicle or its emulator, started first, thus still runs when the bridge sends its last, neutral command, the bridge
still runs for its controllers, and the page shows the end of both. Remaining processes get SIGTERM, and finally
SIGKILL. A second Ctrl-C escalates to SIGTERM at once, a third one to SIGKILL, except for bridges and servers: these get
SIGKILL only _DRIVERS_LIMIT after their SIGINT, since a bridge that is suspended meanwhile stops its vehicle when it is
continued. The shutdown takes less than 7 s, and with more than a dozen processes 0.15 s more for each. If the runner
itself is killed, its processes get SIGTERM. Ctrl-Z suspends nothing: it holds the vehicles (`shared.suspend_key`).

The exit status is 0 if all processes succeeded, by themselves or after a required process had succeeded. It is that of
a failed required process (128 + signal number if a signal ended it), and 2 if a controller or emulator can't start. It
is 130 after Ctrl-C, 143 after SIGTERM, and likewise after the other stop signals. Otherwise it is 1 if any process
failed or had to be killed.
"""

import asyncio
import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

from drone_bridge.ros.process.environment import domain_of
from drone_bridge.ros.process.log_writer import Sink
from drone_bridge.stop_signals import stop_signals
from drone_bridge.tools.cli import REFUSED
from drone_bridge.tools.launch.evaluate import Process
from drone_bridge.tools.launch.process_output import ProcessOutput
from drone_bridge.tools.shared.suspend_key import hold_briefly

_IN_TURN = 2.0  # s, time to stop all processes one after the other, unless _EACH per process is more
_EACH = 0.15  # s per process: a node takes more on a busy core, and fifty ending at once take longer than one by one
_AFTER_SIGINT = 1.0  # s more until SIGTERM
_AFTER_SIGTERM = 1.0  # s more until SIGKILL
_DRIVERS_LIMIT = 4.0  # s from SIGINT to SIGKILL of a bridge or server, also after further requests to stop
_AFTER_SIGKILL = 0.5  # s, time of the kernel to clean up
_TAIL = 1.0  # s, timeout of the last lines of an ended process, which its log writer may still hold
_PATIENCE = 1.0  # s, timeout of a blocked screen at the end
_CANNOT_START = 126  # exit status, as in a shell
_START_PERIOD = 1.0  # s at least between attempts to restart a process that can't be started, as without memory
_INTERRUPTED_STATUSES = (128 + signal.SIGINT, 128 + signal.SIGTERM)  # of many programs after an interrupt

# From <linux/prctl.h>
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_LIBC = ctypes.CDLL(None)


def supervise(processes: Iterable[Process]) -> int:
    """Run the processes until all have ended. Return the exit status of the runner."""
    return asyncio.run(_Supervisor(processes).run())


class _Job:
    """Started process, and the process group that it leads."""

    def __init__(self, process: Process, leader: subprocess.Popen[bytes], outputs: tuple[ProcessOutput, ...]) -> None:
        self.process = process
        self.leader = leader
        self.has_ended = False
        self.is_gone = False  # it has ended, with its whole group
        self.was_told = False  # whether a signal to end was sent
        self.kill_at = 0.0  # earliest SIGKILL of a bridge or server in a shutdown
        self._outputs = outputs

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the whole group. Its ID can't be reused before `is_gone`."""
        self.was_told = True
        if not self.is_gone:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.leader.pid, number)

    @property
    def last_lines(self) -> str:
        """Last line on standard error, or else on standard output."""
        out, err = (output.last.decode(errors="replace").strip() for output in self._outputs)
        return err or out

    def end(self, status: int) -> None:
        """Record the end of the leader. `status`: exit status, or minus the signal that ended it."""
        self.has_ended = True
        self.leader.returncode = status
        for output in self._outputs:
            output.drain()

    def check_gone(self) -> bool:
        """Check whether the whole group has ended."""
        if self.has_ended and not self.is_gone and not _has_children(self.leader.pid):
            self.is_gone = True
            for output in self._outputs:
                output.close_after(_TAIL)
        return self.is_gone


class _Supervisor:
    def __init__(self, processes: Iterable[Process]) -> None:
        self._processes = tuple(processes)
        self._jobs: list[_Job] = []  # until `is_gone`
        self._outputs: list[ProcessOutput] = []  # until they have ended
        self._respawns = 0  # number of pending restarts
        self._clearing: set[asyncio.Task[None]] = set()
        self._stopping: asyncio.Task[None] | None = None
        self._status = 0  # of the runner, set by the reason for the stop
        self._has_failed = False
        self._failures: dict[str, str] = {}  # by label
        self._requests = 0  # number of requests to stop

    async def run(self) -> int:
        """Start all processes, wait for their end, and return the exit status."""
        self._loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()
        self._open_screens()
        _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # the runner adopts orphans, and so is notified of their end
        self._handle_signals()
        for process in self._processes:
            if not self._stopping:
                self._start(process)
        await self._wait(lambda: self._stopping is not None or not (self._jobs or self._respawns))
        if self._stopping:
            await self._stopping
        await self._wait(self._all_shown, _TAIL)
        for output in self._outputs:
            output.close()
        if self._stopping:  # repeated, since other output may have hidden them
            for failure in self._failures.values():
                self._print(failure)
        for screen in {self._stdout, self._stderr}:
            screen.finish(_PATIENCE)
        return self._status or int(self._has_failed)

    def _handle_signals(self) -> None:
        self._loop.add_signal_handler(signal.SIGCHLD, self._reap)
        for number in stop_signals():
            self._loop.add_signal_handler(number, self._stop_requested, number)
        self._loop.add_signal_handler(signal.SIGTSTP, self._hold_vehicles)

    def _open_screens(self) -> None:
        def is_broken(_: OSError) -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._stop, "the output is closed", 128 + signal.SIGPIPE)

        out, err = sys.stdout.fileno(), sys.stderr.fileno()
        self._stdout = Sink(lambda: out, is_broken)
        self._stderr = self._stdout if os.path.sameopenfile(out, err) else Sink(lambda: err, is_broken)

    def _print(self, text: str) -> None:
        self._stderr.put(f"[launch] {text}\n".encode())

    def _start(self, process: Process) -> None:
        try:
            leader = subprocess.Popen(
                process.command,
                env=process.environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
                preexec_fn=_before(process),  # noqa: PLW1509 - safe, since the other threads only write
            )
        except OSError as error:
            self._print(f"{process.label} cannot be started: {error}")
            if process.respawn_delay is None:
                self._count(process, _CANNOT_START)
            else:
                self._respawn_after(max(process.respawn_delay, _START_PERIOD), process)
            return
        assert leader.stdout
        assert leader.stderr
        ended = self._changed.set
        outputs = (
            ProcessOutput(leader.stdout, self._stdout, process.label, self._loop, ended),
            ProcessOutput(leader.stderr, self._stderr, process.label, self._loop, ended),
        )
        self._outputs = [*(each for each in self._outputs if not each.has_ended), *outputs]
        self._jobs.append(_Job(process, leader, outputs))
        self._print(f"{process.label} started (pid {leader.pid})")

    def _reap(self) -> None:
        """Collect the exit statuses of ended children, including adopted ones."""
        while (ended := _next_ended_child()) is not None:
            pid, status = ended
            for job in self._jobs:
                if job.leader.pid == pid:
                    job.end(status)
                    self._report(job, status)
        for job in self._jobs:
            delay_s = _restart_delay_s(job.process, job.leader.returncode)
            if job.check_gone() and not self._stopping and delay_s is not None:
                self._respawn_after(delay_s, job.process)
        self._jobs = [job for job in self._jobs if not job.is_gone]
        self._changed.set()

    def _report(self, job: _Job, status: int) -> None:
        if status < 0:
            how = f"was ended by {_name(-status)}"
        else:
            how = f"failed with exit status {status}" if status else "ended"
        self._print(f"{job.process.label} {how} (pid {job.leader.pid})")
        if status > 0 and not (job.was_told and status in _INTERRUPTED_STATUSES):
            self._failures[job.process.label] = f"{job.process.label} {how}: {job.last_lines}"
        self._count(job.process, status)
        if not self._stopping and not job.check_gone():
            task = self._loop.create_task(self._clear_up(job))
            self._clearing.add(task)
            task.add_done_callback(self._clearing.discard)

    def _count(self, process: Process, status: int) -> None:
        """Stop the launch, or count a failure, if the end of a process requires that."""
        if self._stopping:
            return
        if process.is_required:
            self._stop(f"{process.label} is required", status if status >= 0 else 128 - status)
        elif status == REFUSED and process.must_start:
            self._stop(f"{process.label} can't start", status)
        elif status and _restart_delay_s(process, status) is None:
            self._has_failed = True

    def _respawn_after(self, delay_s: float, process: Process) -> None:
        self._respawns += 1
        self._loop.call_later(delay_s, self._respawn, process)

    def _respawn(self, process: Process) -> None:
        self._respawns -= 1
        if not self._stopping:
            self._start(process)
        self._changed.set()

    async def _clear_up(self, job: _Job) -> None:
        """Stop the processes that remain in the group of an ended process."""
        self._print(f"{job.process.label} has left processes behind, which are stopped now")
        job.send(signal.SIGTERM)
        await self._wait(lambda: job.is_gone, seconds=_AFTER_SIGTERM)
        job.send(signal.SIGKILL)

    def _hold_vehicles(self) -> None:
        """Hold the vehicles of this launch at Ctrl-Z, unless they are being stopped."""
        if not self._stopping:
            drivers = [each for each in self._processes if each.is_driver]
            hold_briefly([(domain_of(each.environment), _node(each.command)) for each in drivers], self._print)

    def _stop_requested(self, number: signal.Signals) -> None:
        self._requests += 1
        self._stop(f"{number.name} received", 128 + number)
        self._changed.set()

    def _stop(self, reason: str, status: int) -> None:
        if not self._stopping:
            self._status = status
            self._stopping = self._loop.create_task(self._stop_in_order())
            self._print(f"{reason}: stopping everything")
            self._changed.set()

    async def _stop_in_order(self) -> None:
        began, count = self._loop.time(), len(self._jobs)
        in_turn = max(_IN_TURN, _EACH * count)
        for number, job in enumerate(sorted(self._jobs, key=self._turn_to_stop), 1):
            job.send(signal.SIGINT)
            if job.process.is_driver:
                job.kill_at = self._loop.time() + _DRIVERS_LIMIT
            turn_ends = began + in_turn * number / count  # includes the unused time of those before
            await self._wait(partial(getattr, job, "is_gone"), turn_ends - self._loop.time(), requests=1)
        await self._wait(self._all_gone, began + in_turn + _AFTER_SIGINT - self._loop.time(), requests=1)
        for job in self._jobs:
            self._escalate(job, signal.SIGTERM)
        await self._wait(self._all_gone, _AFTER_SIGTERM, requests=2)
        for job in sorted(self._jobs, key=lambda job: job.kill_at):
            await self._wait(partial(getattr, job, "is_gone"), job.kill_at - self._loop.time())
            if not job.is_gone:
                self._escalate(job, signal.SIGKILL)
                self._has_failed = True
        await self._wait(self._all_gone, _AFTER_SIGKILL)

    def _turn_to_stop(self, job: _Job) -> tuple[bool, int]:
        return job.process.is_observer, -self._processes.index(job.process)

    def _all_shown(self) -> bool:
        return all(output.has_ended for output in self._outputs)

    def _all_gone(self) -> bool:
        return not self._jobs

    def _escalate(self, job: _Job, number: signal.Signals) -> None:
        self._print(f"{job.process.label} has not stopped, and gets {number.name}")
        job.send(number)

    async def _wait(self, done: Callable[[], bool], seconds: float | None = None, requests: int | None = None) -> None:
        """Wait until `done()`, a timeout, or more than `requests` requests to stop."""
        end = None if seconds is None else self._loop.time() + seconds
        while not done() and (requests is None or self._requests <= requests):
            self._changed.clear()
            try:
                await asyncio.wait_for(self._changed.wait(), None if end is None else end - self._loop.time())
            except asyncio.TimeoutError:
                return


def _restart_delay_s(process: Process, status: int | None) -> float | None:
    """Return the delay until an ended process is restarted, s, or None: not after refused settings."""
    return None if status == REFUSED else process.respawn_delay


def _node(command: Sequence[str]) -> str:
    """Return the full name of the node that a command starts. Of several remappings, the first one counts."""
    rules = dict(reversed([(name, value) for name, _, value in (word.partition(":=") for word in command)]))
    return f"{rules.get('__ns', '').rstrip('/')}/{rules.get('__node', os.path.basename(command[0]))}"


def _name(number: int) -> str:
    """Return the name of a signal. Real-time signals have only a number."""
    return signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"


def _before(process: Process) -> Callable[[], None]:
    """Return what a child does before exec.

    It requests SIGTERM on the death of its parent, also for programs of others. Our nodes block SIGINT until Python has
    started, which would show a traceback of its own; `cmake/write_executables.py` unblocks it.
    """
    is_own = Path(process.command[0]).parts[-3:-1] == ("lib", "drone_bridge")

    def prepare() -> None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if is_own:
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])

    return prepare


def _next_ended_child() -> tuple[int, int] | None:
    """Return pid and status of an ended child, or None. A negative status is minus the signal that ended it."""
    try:
        ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG)
    except ChildProcessError:
        return None
    if ended is None:
        return None
    return ended.si_pid, ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status


def _has_children(group: int) -> bool:
    """Return whether a process group still has children of ours, running or not."""
    try:
        os.waitid(os.P_PGID, group, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True
