# SPDX-License-Identifier: Apache-2.0
"""Run nodes as a program, from their parameters to an orderly end."""

import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from typing import Final, Protocol

import rclpy
from rclpy.exceptions import ParameterException
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions

from drone_bridge.node.executor import FrugalExecutor
from drone_bridge.node.responses import resend_lost_responses

STOP_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


class Stoppable(Protocol):
    """The interface of a Node that can be run here."""

    def start(self) -> bool:
        """Start working; return whether that worked. Failures are logged."""

    def leave(self) -> None:
        """Stop working: send the neutral command, close connections. Thread-safe."""


class Work(Protocol):
    """What a program runs: one node, or many."""

    def start(self) -> bool:
        """Start working; return whether that worked. Failures are logged. Raises ValueError and ParameterException."""

    def prepare(self) -> None:
        """Create what `spin` needs."""

    def spin(self) -> None:
        """Serve callbacks until ROS is shut down."""

    def leave(self) -> None:
        """Send neutral commands and close connections. Thread-safe, and may be called twice."""

    def destroy(self) -> None:
        """Release all resources, after `leave`."""


def run(make_node: Callable[[], Stoppable]) -> int:
    """Run one node until SIGINT, SIGTERM or the end of the context, and return the exit status."""
    return run_work(lambda _: _NodeAtWork(make_node()))


def run_work(make_work: Callable[[threading.Event], Work]) -> int:
    """Initialize ROS and run until SIGINT, SIGTERM or the end of the context; return the exit status.

    Signals are handled in a thread of its own, so that neutral commands go out at once, while ROS still works, however
    busy the executors are. Then ROS is shut down properly: a process that just exits leaves its shared memory behind.
    Work that takes long to create or start checks the event that it is created with, which a signal sets.
    """
    _name_profile_for_humble()
    signalled = _signal_socket()
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    stopping = threading.Event()
    starting = threading.Lock()
    work: Work | None = None

    def stop_on_signal() -> None:
        signalled.recv(1)
        stopping.set()
        with starting:  # ROS can't be taken away from a node or an executor that is being made without complaints
            try:
                if work:
                    work.leave()
            finally:
                rclpy.try_shutdown()

    stopper = threading.Thread(target=stop_on_signal, name="signals", daemon=True)
    try:
        with starting:
            stopper.start()
            try:
                work = make_work(stopping)
                if not stopping.is_set() and not work.start():
                    return 1
            except (ParameterException, ValueError) as error:  # of whoever started it; later ones are our own
                print(error, file=sys.stderr)
                return 1
            work.prepare()
        work.spin()
        return 0
    except ExternalShutdownException:
        return 0
    except Exception:
        # Whatever was under way when ROS was shut down may complain about it.
        if not stopping.is_set():
            raise
        return 0
    finally:
        if stopping.is_set():
            stopper.join()
        if work:
            work.leave()
            try:
                work.destroy()
            except Exception:
                if not stopping.is_set():  # else ROS has been shut down, which takes with it what was to be destroyed
                    raise
            work = None  # or the thread, if it still waits for a signal, keeps it, and with it ROS's shared memory
        rclpy.try_shutdown()
        # The interpreter, on its way out, gives handled signals back their deadly default, but leaves ignored ones
        # alone: so the second Ctrl-C of an impatient user, or of ros2 launch, does not change the exit status.
        for number in STOP_SIGNALS:
            signal.signal(number, signal.SIG_IGN)


class _NodeAtWork:
    """One node, served by the main thread."""

    def __init__(self, node: Stoppable) -> None:
        self._node = node
        self._executor: SingleThreadedExecutor | None = None
        self.start, self.leave = node.start, node.leave

    def prepare(self) -> None:
        self._executor = executor_of(self._node)

    def spin(self) -> None:
        assert self._executor
        self._executor.spin()

    def destroy(self) -> None:
        assert isinstance(self._node, Node)
        try:
            if self._executor:
                # Or its finalizer does, with a traceback if the garbage collector has taken the executor's parts first.
                self._executor.shutdown()
        finally:
            self._node.destroy_node()


def executor_of(node: Stoppable) -> SingleThreadedExecutor:
    """Return a single-threaded executor for the node that loses no service responses."""
    assert isinstance(node, Node)
    resend_lost_responses(node)
    executor = FrugalExecutor()
    executor.add_node(node)
    return executor


def _signal_socket() -> socket.socket:
    """Return a socket that gets a byte per signal, without waiting for the main thread as Python's handlers do."""
    receiving, sending = socket.socketpair()
    sending.setblocking(False)
    signal.set_wakeup_fd(sending.detach(), warn_on_full_buffer=False)
    for number in STOP_SIGNALS:
        signal.signal(number, lambda *_: None)
    return receiving


def _name_profile_for_humble() -> None:
    """Humble's Fast DDS reads its profile from another variable; later ones complain about both.

    Not where topics are to stay on this machine: humble would add the profile's transports, which reach further.
    Without the profile, large images arrive slowly or get lost.
    """
    profile = os.environ.get("FASTDDS_DEFAULT_PROFILES_FILE")
    is_humble, is_kept_here = os.environ.get("ROS_DISTRO") == "humble", os.environ.get("ROS_LOCALHOST_ONLY") == "1"
    if profile and is_humble and not is_kept_here:
        os.environ.setdefault("FASTRTPS_DEFAULT_PROFILES_FILE", profile)
