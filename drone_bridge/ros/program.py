# SPDX-License-Identifier: Apache-2.0
"""Runs a node as a program, from ROS's start to an orderly end: `run`, and `run_work`, whose `Work` may be many nodes.

The main thread serves the node's callbacks. Signals are handled by a thread of its own, which sends the neutral command
and shuts ROS down, so that neither waits for a callback. A process that stands still is ended by the kernel
(`watchdog`), once its node is active and while it shuts down.
"""

import os
import re
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from typing import Protocol

import rclpy
from rclpy.clock import Clock, ClockType  # type: ignore[attr-defined] # where humble has it, too
from rclpy.exceptions import NameValidationException, ParameterException
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.logging import get_logger
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions

from drone_bridge.ros import watchdog
from drone_bridge.ros.environment import complete_environment, undiscovered
from drone_bridge.ros.service_responses import resend_lost_responses
from drone_bridge.ros.shared_memory import make_room

# A Fast DDS discovery server: seeing all topics behind it, and noticing that it is gone.


#: How long a node waits for others before it says that there are none.
_ALONE_S = 5.0


def ask_for_all_topics() -> None:
    """Have the discovery server, if there is one, announce every topic to this process. Call it before rclpy.init.

    A server announces to a client only the topics that the client itself uses, and to a super client all of them. This
    process becomes one unless ROS_SUPER_CLIENT says otherwise.
    """
    if os.environ.get("ROS_DISCOVERY_SERVER"):
        os.environ.setdefault("ROS_SUPER_CLIENT", "TRUE")


def tell_if_alone(node: Node) -> None:
    """Have a node say so, once, if its discovery server has told it of no other. Call it before the node spins.

    Fast DDS itself says nothing about a server that does not answer.
    """
    server = os.environ.get("ROS_DISCOVERY_SERVER")
    if not server:
        return

    def look() -> None:
        timer.cancel()
        if len(node.get_node_names()) <= 1:
            node.get_logger().warning(
                f"The discovery server {server} (ROS_DISCOVERY_SERVER) has told of no other node in {_ALONE_S:g} s. "
                "If there are any with the same variable, it does not run or can't be reached: nodes that start now "
                "find nobody, and nobody finds them."
            )

    timer = node.create_timer(_ALONE_S, look, clock=Clock(clock_type=ClockType.STEADY_TIME))


# From a node's parameters to the end of its process.


STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)
#: A program that can't start ends no sooner than this after it began, as a launch file starts it again at once.
REFUSED_S = 10.0
_BEGAN_S = time.monotonic()
#: What may be wrong with what a program was given: parameters and their files, names, a log level.
START_ERRORS = (ParameterException, NameValidationException, ValueError, rclpy_implementation.RCLError)


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
    Work that takes long to create or start checks the event that it is created with, which a signal sets. A process
    that stands still while the work is active, or takes long to shut down after it, is ended (`watchdog`).
    """
    signalled = _signal_socket()
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
                watchdog.limit_shutdown()
                rclpy.try_shutdown()

    stopper = threading.Thread(target=stop_on_signal, name="signals", daemon=True)
    try:
        with starting:
            stopper.start()
            try:
                initialize_ros()
                work = make_work(stopping)
                has_started = stopping.is_set() or work.start()
            except START_ERRORS as error:  # of what it was given; later ones are our own
                print(f"{sys.argv[0].rpartition('/')[2]}: {_sentence(error)}", file=sys.stderr, flush=True)
                has_started = False
            if work and has_started:
                work.prepare()
                watchdog.start()
        return _serve(work) if work and has_started else _refuse(stopping)
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
            watchdog.limit_shutdown()
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


def initialize_ros(args: list[str] | None = None) -> None:
    """Call rclpy.init, without its signal handlers; complete the environment before, and say what DDS is going to lack.

    `args` are the command line, sys.argv by default.
    """
    complete_environment()
    shortage = make_room()
    rclpy.init(args=args, signal_handler_options=SignalHandlerOptions.NO)
    if shortage:
        get_logger("drone_bridge").warning(shortage)


class _NodeAtWork:
    """One node, served by the main thread."""

    def __init__(self, node: Stoppable) -> None:
        self._node = node
        self._executor: SingleThreadedExecutor | None = None
        self.start, self.leave = node.start, node.leave

    def prepare(self) -> None:
        assert isinstance(self._node, Node)
        tell_if_alone(self._node)
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
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    return executor


def _serve(work: Work) -> int:
    if problem := undiscovered():
        get_logger("drone_bridge").warning(problem)
    work.spin()
    return 0


def _refuse(stopping: threading.Event) -> int:
    stopping.wait(max(0.0, REFUSED_S - (time.monotonic() - _BEGAN_S)))
    return 1


def _sentence(error: Exception) -> str:
    """Return what an error says, without the places in rcl's sources that it names."""
    text = re.sub(r", at /\S+?:\d+", "", str(error)).removeprefix("failed to initialize rcl: ")
    return f"{text}: debug, info, warn, error or fatal." if "severity level" in text else text


def _signal_socket() -> socket.socket:
    """Return a socket that gets a byte per signal, without waiting for the main thread as Python's handlers do."""
    receiving, sending = socket.socketpair()
    sending.setblocking(False)
    signal.set_wakeup_fd(sending.detach(), warn_on_full_buffer=False)
    for number in STOP_SIGNALS:
        signal.signal(number, lambda *_: None)
    return receiving
