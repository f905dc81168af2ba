# SPDX-License-Identifier: Apache-2.0
"""Runs nodes as a program, from ROS's start to an orderly end, and says what DDS lacks."""

import contextlib
import functools
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Protocol

import rclpy
from rclpy.clock import Clock, ClockType  # type: ignore[attr-defined] # where humble has it, too
from rclpy.exceptions import ParameterException
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.logging import get_logger
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions

from drone_bridge.ros.environment import complete_environment, own_segments, shared_memory_shortage, undiscovered
from drone_bridge.ros.rclpy_hooks import resend_lost_responses

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
#: How long the middleware has to shut down after the last word to the vehicle, until the process ends without that, and
#: until it is killed.
ENDING_S = 3.0
KILLED_S = 4.0


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
    Work that takes long to create or start checks the event that it is created with, which a signal sets. Once it has
    been left, the process has to end, and does so within KILLED_S, however long the middleware takes.
    """
    signalled = _signal_socket()
    initialize_ros()
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
                end_in_time(0)
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
        if problem := undiscovered():
            get_logger("drone_bridge").warning(problem)
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
            end_in_time(0 if stopping.is_set() else 1)
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
    shortage = shared_memory_shortage()
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


@functools.cache  # once for each process
def end_in_time(status: int) -> "subprocess.Popen[bytes]":
    """Have this process end without the middleware's shutdown if that takes long, with an exit status, or killed.

    To destroy the nodes of a hundred vehicles takes up to half a minute. And Fast DDS may hang (seen in
    unregister_timer, one process in 30 that were interrupted at once) while rclpy holds Python's lock, so that no
    thread of this process could end it. Return what would.
    """
    ending = threading.Timer(ENDING_S, _end_now, [status])
    ending.daemon = True
    ending.start()
    # The input ends with this process. If it has not by then, timeout(1) exits with 124.
    script = f"""timeout {KILLED_S} cat
        [ $? = 124 ] && echo "$1" >&2 && kill -KILL {os.getpid()} && shift && rm -f "$@"
    """
    sentence = f"The middleware did not shut down within {KILLED_S:g} s. The process is killed."
    return subprocess.Popen(
        ["sh", "-c", script, "sh", sentence, *map(str, own_segments())],
        stdin=subprocess.PIPE,
        start_new_session=True,  # a Ctrl-C is not for it
    )


def _end_now(status: int) -> None:
    for file in own_segments():
        file.unlink(missing_ok=True)
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
    os._exit(status)


def _signal_socket() -> socket.socket:
    """Return a socket that gets a byte per signal, without waiting for the main thread as Python's handlers do."""
    receiving, sending = socket.socketpair()
    sending.setblocking(False)
    signal.set_wakeup_fd(sending.detach(), warn_on_full_buffer=False)
    for number in STOP_SIGNALS:
        signal.signal(number, lambda *_: None)
    return receiving
