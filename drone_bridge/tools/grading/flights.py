# SPDX-License-Identifier: Apache-2.0
"""One run of each kind of submission: flown until it is over, and what it was like."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from drone_bridge.kind import Side, load
from drone_bridge.tools.demo.composition import Composition, confinement, free_port, isolate_ros_graph, ports_of
from drone_bridge.tools.demo.way import read_rows
from drone_bridge.tools.grading.box import Box, waited_s
from drone_bridge.tools.grading.measures import Flown
from drone_bridge.tools.grading.pupil import HEADER, packed, receive
from drone_bridge.tools.grading.task import CLASS, NODE, PROGRAM, REAL, Task

_START_TIMEOUT_S = 60.0
_POLL_S = 0.05
#: After the submission has ended, for what it has set going, as a drone that has yet to stand.
_AFTERMATH_S = 2.0
#: A thread of a run that keeps wall time may wait for a processor for this share of it.
_WAITING = 0.1
#: For the nodes of the launch file to be found; and between the submission's first node and its vehicle, for topics.
_DISCOVERY_S = 1.0


@dataclass(slots=True)
class Run:
    """One run of a submission, before and after it was flown."""

    task: Task
    seed: int
    command: Sequence[str]
    folder: Path
    """For what the submission may not see: truth, logs, the bag"""
    box: Path
    """Its own folder"""
    is_confined: bool
    flown: Flown = field(default_factory=Flown)
    remarks: list[str] = field(default_factory=list)
    output: str = ""
    """The submission's, its end"""
    was_too_slow: bool = False
    """Whether the machine was, so that it can't be judged"""

    @property
    def bag(self) -> Path:
        return self.folder / "bag"

    @contextlib.contextmanager
    def submission(self, command: Sequence[str], port: int = 0, *descriptors: int) -> Iterator[Box]:
        """Run the submission beside a vehicle with this port, and note what it has said."""
        hidden = [self.folder.parent, self.task.file]
        box = Box(
            command,
            self.box,
            hidden,
            self.task.limits,
            port=port,
            descriptors=descriptors,
            is_confined=self.is_confined,
        )
        try:
            yield box
        finally:
            box.close()
            self.output = box.output
            if attempt := box.attempt():
                self.remarks.append(attempt)


def fly(run: Run) -> None:
    """Fly one run. Raises OSError, ValueError and RuntimeError where the grader itself fails."""
    {CLASS: _fly_class, PROGRAM: _fly_program, NODE: _fly_node}[run.task.submission](run)


# A class, in an environment of Gymnasium.


def _fly_class(run: Run) -> None:
    env = load(run.task.kind.environment)(**run.task.options)
    observation, _ = env.reset(seed=run.seed)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        pupil = [sys.executable, "-m", "drone_bridge.tools.grading.pupil", str(theirs.fileno()), *run.command]
        with run.submission(pupil, 0, theirs.fileno()) as box:
            rows = list(_answered(run, env, observation, ours, box))
    run.flown = Flown.by(run.task, rows, env.said)


def _answered(run: Run, env: Any, observation: Any, peer: socket.socket, box: Box) -> Iterator[Any]:
    """Step the environment by the answers; yield its truth at each step."""
    while True:
        row = env.row()
        yield row
        if float(row["time"]) >= run.task.time_limit:
            return
        try:
            asked = packed(observation)
            peer.settimeout(run.task.limits.silence)
            peer.sendall(HEADER.pack(len(asked)) + asked)
            answer = _patiently(run, peer, box, env.action_space.low.nbytes)
        except (OSError, EOFError, ValueError) as error:
            run.remarks.append(str(error) if isinstance(error, ValueError) else box.trouble() or box.end_of())
            return
        action = np.frombuffer(answer, np.float32)
        if action.shape != env.action_space.shape or not np.isfinite(action).all():
            count = env.action_space.shape[0]
            run.remarks.append(f"It answered with {action.tolist()}, and has to answer with {count} finite numbers.")
            return
        observation, _, is_over, _, _ = env.step(action)
        if is_over:
            yield env.row()
            return


def _patiently(run: Run, peer: socket.socket, box: Box, most: int) -> bytes:
    """Return an answer. Raises ValueError with a sentence, EOFError and OSError."""
    asked_s = time.monotonic()
    peer.settimeout(_POLL_S)
    while True:
        try:
            peer.recv(1, socket.MSG_PEEK)
        except TimeoutError:
            if problem := box.trouble():
                raise ValueError(problem) from None
            if box.has_ended:
                raise EOFError from None
            if time.monotonic() - asked_s > run.task.limits.silence:
                raise ValueError(f"It has not answered for {run.task.limits.silence:g} s.") from None
            continue
        peer.settimeout(run.task.limits.silence)  # the rest of an answer whose beginning is there
        try:
            return receive(peer, most)
        except ValueError as error:
            raise ValueError(f"It answered with what is no action: {error}.") from error


# A program that speaks the vehicle's protocol, with the emulator.


def _fly_program(run: Run) -> None:
    port = free_port()
    words = [word.replace("{port}", str(port)).replace("{host}", "127.0.0.1") for word in run.command]
    kind = run.task.kind
    listens = run.task.options.get("role") == "connect" or kind.ports[0].side is Side.OPERATOR
    transport = socket.SOCK_STREAM if kind.is_stream else socket.SOCK_DGRAM
    with contextlib.ExitStack() as stack:
        if listens:
            box = stack.enter_context(run.submission(words, port))
            _wait_until(lambda: box.has_ended or _is_taken(port, transport), run.task.limits.silence)
            emulator = stack.enter_context(_emulator(run, port))
        else:
            emulator = stack.enter_context(_emulator(run, port))
            box = stack.enter_context(run.submission(words, port))
        _watch(run, emulator, box)
    _read(run)


@contextlib.contextmanager
def _emulator(run: Run, port: int) -> Iterator[subprocess.Popen[bytes]]:
    """Run the emulator, that of which it is to be seen by the submission in the network only."""
    words = run.task.emulator_words(run.seed, port, run.folder / "truth.csv")
    command = [sys.executable, "-m", "drone_bridge.tools.cli", "emulate", run.task.kind.emulator.name, *words]
    with (run.folder / "emulator.txt").open("wb") as log:
        emulator = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
    try:
        _wait_until(lambda: (run.folder / "truth.csv").exists() or emulator.poll() is not None, _START_TIMEOUT_S)
        yield emulator
    finally:
        emulator.terminate()
        try:
            emulator.wait(5.0)
        except subprocess.TimeoutExpired:
            emulator.kill()
            emulator.wait()


def _watch(run: Run, emulator: subprocess.Popen[bytes], box: Box) -> None:
    """Wait until the emulator has ended, the submission has, or it breaks a rule."""
    truth = run.folder / "truth.csv"
    size, moved_s = -1, time.monotonic()
    ended_s: float | None = None
    waiting = _Waiting()
    while emulator.poll() is None:
        now_s = time.monotonic()
        if truth.exists() and truth.stat().st_size != size:
            size, moved_s = truth.stat().st_size, now_s
            waiting.look()
        if problem := box.trouble():
            run.remarks.append(problem)
            return
        if box.has_ended:
            ended_s = now_s if ended_s is None else ended_s
            if now_s - ended_s > _AFTERMATH_S:
                break
        elif now_s - moved_s > run.task.limits.silence:
            silent = f"The vehicle's clock has stood still for {run.task.limits.silence:g} s"
            run.remarks.append(f"{silent}: it waits for what the submission does not send.")
            return
        time.sleep(_POLL_S)
    if (emulator.poll() or 0) > 1:
        raise RuntimeError(f"the emulator has failed: {(run.folder / 'emulator.txt').read_text()[-500:]}")
    if box.has_ended and (end := box.end_of()):
        run.remarks.append(end)
    if run.task.clock == REAL and waiting.share > _WAITING:
        run.was_too_slow = True
        run.remarks.append(
            f"The machine was too slow: a thread waited for a processor for {waiting.share:.0%} of the time."
        )


class _Waiting:
    """How long threads of a run wait for a processor, from when its vehicle first moves."""

    def __init__(self) -> None:
        self._began_s = 0.0
        self._before: dict[str, float] = {}
        self._newest: dict[str, float] = {}

    def look(self) -> None:
        self._newest |= waited_s(os.getpid())
        if not self._before:
            self._began_s, self._before = time.monotonic(), dict(self._newest)

    @property
    def share(self) -> float:
        """The greatest share of the time for which one thread has waited."""
        passed_s = max(1.0, time.monotonic() - self._began_s)
        return (
            max((now - self._before.get(thread, 0.0) for thread, now in self._newest.items()), default=0.0) / passed_s
        )


def _read(run: Run) -> None:
    with contextlib.suppress(ValueError, OSError):  # it never came to a flight
        said = (run.folder / "emulator.txt").read_text(errors="replace")
        run.flown = Flown.by(run.task, read_rows(run.folder / "truth.csv"), said)


def _is_taken(port: int, transport: socket.SocketKind) -> bool:
    with socket.socket(type=transport) as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return True
    return False


def _wait_until(is_so: Callable[[], bool], patience_s: float) -> bool:
    until_s = time.monotonic() + patience_s
    while not is_so():
        if time.monotonic() > until_s:
            return False
        time.sleep(_POLL_S)
    return True


# A node of ROS, with the bridge, the recorder and whatever else the launch file starts.


def _fly_node(run: Run) -> None:
    if run.is_confined:
        os.environ |= confinement()  # nobody else is in this network
    else:
        isolate_ros_graph()
    port = free_port()
    ports = {argument: free_port() for argument in ports_of(run.task.launch)[1:]}
    given = {ports_of(run.task.launch)[0]: port, **ports, "flights": False, "record": True, "bag": run.bag}
    composition = Composition(run.task.launch, run.folder / "launch.txt", **{**given, **run.task.arguments})
    try:
        if not composition.wait_for(r"_bridge\]: ", _START_TIMEOUT_S):
            raise RuntimeError(f"the launch file did not start a bridge: {composition.tail()}")
        with _graph() as nodes:
            time.sleep(_DISCOVERY_S)
            before = nodes()
            with run.submission(run.command) as box:
                if not _wait_until(lambda: box.has_ended or nodes() - before != set(), run.task.limits.silence):
                    run.remarks.append(f"No node of it has appeared for {run.task.limits.silence:g} s.")
                    return
                time.sleep(_DISCOVERY_S)
                with _emulator(run, port) as emulator:
                    _watch(run, emulator, box)
    finally:
        composition.stop()
        _read(run)


@contextlib.contextmanager
def _graph() -> Iterator[Callable[[], set[Any]]]:
    """Yield what returns the nodes that there are."""
    import rclpy

    context = rclpy.Context()
    rclpy.init(context=context)
    node = rclpy.create_node("grader", context=context)
    try:
        yield lambda: set(node.get_node_names_and_namespaces())
    finally:
        node.destroy_node()
        rclpy.shutdown(context=context)
