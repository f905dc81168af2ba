# SPDX-License-Identifier: Apache-2.0
"""Runs a node as a program, from ROS's start to an orderly end: `run`.

The main thread serves the node's callbacks. Signals are handled by a thread of its own, which sends the neutral command
and shuts ROS down, so that neither waits for a callback. Output goes through a pipe that never blocks (`log_pipe`).
A process that hangs is ended by the kernel (`watchdog`), as is one that starts or shuts down for too long.
"""

import re
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from typing import Protocol

import rclpy
from rclpy.exceptions import NameValidationException, ParameterException
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.logging import get_logger
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions

from drone_bridge.ros import log_pipe, watchdog
from drone_bridge.ros.discovery_server import warn_if_alone
from drone_bridge.ros.environment import complete_environment
from drone_bridge.ros.service_responses import resend_lost_responses
from drone_bridge.ros.shared_memory import make_room
from drone_bridge.ros.stall_watch import PROCESS
from drone_bridge.standard_files import open_closed_files


class Stoppable(Protocol):
    """The interface of a Node that can be run here."""

    def start(self) -> bool:
        """Start working; return whether that worked. Failures are logged."""

    def leave(self) -> None:
        """Stop working: send the neutral command, close connections. Thread-safe."""


STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)
#: A program that can't start ends no sooner than this after it began, as a launch file starts it again at once.
REFUSED_S = 10.0
#: Exit statuses: of what may work later, and of settings that can't, as argparse has it. See `tools.launch.processes`.
FAILED, REFUSED = 1, 2
_BEGAN_S = time.monotonic()
#: What may be wrong with what a program was given: parameters and their files, names, a log level.
START_ERRORS = (ParameterException, NameValidationException, ValueError, rclpy_implementation.RCLError)


def run(make_node: Callable[[], Stoppable]) -> int:
    """Initialize ROS and run one node until SIGINT, SIGTERM or the end of the context; return the exit status.

    Signals are handled in a thread of its own, so that neutral commands go out at once, while ROS still works, however
    busy the executor is. Then ROS is shut down properly: a process that just exits leaves its shared memory behind. A
    process that stands still while the node is active, or takes long to start or to shut down, is ended (`watchdog`).
    """
    open_closed_files()
    log_pipe.start()
    running = _Run(make_node)
    try:
        return running.serve() if running.has_started() else running.refuse()
    except ExternalShutdownException:
        return 0
    except Exception:
        # Whatever was under way when ROS was shut down may complain about it.
        if not running.stopping.is_set():
            raise
        return 0
    finally:
        running.end()
        # The interpreter, on its way out, gives handled signals back their deadly default, but leaves ignored ones
        # alone: so the second Ctrl-C of an impatient user, or of ros2 launch, does not change the exit status.
        for number in STOP_SIGNALS:
            signal.signal(number, signal.SIG_IGN)


class _Run:
    """A node with its executor, for the main thread, and the thread that waits for a signal."""

    def __init__(self, make_node: Callable[[], Stoppable]) -> None:
        self._make_node = make_node
        self._signalled = _signal_socket()
        #: Set once there was a signal.
        self.stopping = threading.Event()
        self._starting = threading.Lock()
        self._status = FAILED  # of a program that can't start
        self._node: Stoppable | None = None
        self._executor: SingleThreadedExecutor | None = None
        self._stopper = threading.Thread(target=self._stop_on_signal, name="signals", daemon=True)

    def has_started(self) -> bool:
        """Make the node and start it; return whether that worked."""
        with self._starting:
            self._stopper.start()
            watchdog.limit_start()
            try:
                initialize_ros()
                self._node = self._make_node()
                if not self.stopping.is_set() and not self._node.start():
                    return False
            except START_ERRORS as error:  # of what it was given; later ones are our own
                print_start_error(error)
                self._status = REFUSED
                return False
            assert isinstance(self._node, Node)
            warn_if_alone(self._node)
            self._executor = executor_of(self._node)
            PROCESS.start()  # what is slow before it is no stall: nobody's commands wait meanwhile
            watchdog.start()
            return True

    def serve(self) -> int:
        """Serve callbacks until ROS is shut down."""
        assert self._executor
        self._executor.spin()
        return 0

    def refuse(self) -> int:
        """Wait until a program that can't start may end."""
        if self._status == FAILED:
            self.stopping.wait(max(0.0, REFUSED_S - (time.monotonic() - _BEGAN_S)))
        return self._status

    def _stop_on_signal(self) -> None:
        self._signalled.recv(1)
        self.stopping.set()
        with self._starting:  # ROS can't be taken from a node or an executor that is being made without complaints
            try:
                if self._node:
                    self._node.leave()
            finally:
                watchdog.limit_shutdown()
                shut_down_ros()

    def end(self) -> None:
        """Have the node leave, and release everything."""
        if self.stopping.is_set():
            self._stopper.join()
        if self._node:
            self._node.leave()
            watchdog.limit_shutdown()
            try:
                self._destroy(self._node)
            except Exception:
                if not self.stopping.is_set():  # else ROS has been shut down, and with it what was to be destroyed
                    raise
            # Or the thread, if it still waits for a signal, keeps them, and with them ROS's shared memory.
            self._node = self._executor = None
        shut_down_ros()

    def _destroy(self, node: Stoppable) -> None:
        assert isinstance(node, Node)
        try:
            if self._executor:
                # Or its finalizer does, with a traceback if the garbage collector has taken the executor's parts first.
                self._executor.shutdown()
        finally:
            node.destroy_node()


def initialize_ros(args: list[str] | None = None) -> None:
    """Call rclpy.init, without its signal handlers; complete the environment before, and say what DDS is going to lack.

    `args` are the command line, sys.argv by default. rcl writes no log file, unless they ask for it: the log pipe does,
    and needs no folder that can be written for the node to start.
    """
    complete_environment()
    shortage = make_room()
    words = list(sys.argv if args is None else args)
    if not any(flag in words for flag in log_pipe.FILE_FLAGS):
        words += log_pipe.NO_FILE_OF_RCL
    rclpy.init(args=words, signal_handler_options=SignalHandlerOptions.NO)
    if shortage:
        get_logger("drone_bridge").warning(shortage)


def shut_down_ros() -> None:
    """Call rclpy.try_shutdown, without uninstalling signal handlers that were never installed.

    To do that rclpy sets SIGINT and SIGTERM to their default for a moment, in which a second Ctrl-C ends the process.
    """
    rclpy.try_shutdown(uninstall_handlers=False)


def executor_of(node: Stoppable) -> SingleThreadedExecutor:
    """Return a single-threaded executor for the node that loses no service responses."""
    assert isinstance(node, Node)
    resend_lost_responses(node)
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    return executor


def print_start_error(error: Exception) -> None:
    """Print in a sentence which of START_ERRORS it was, after the program's name."""
    print(f"{sys.argv[0].rpartition('/')[2]}: {_sentence(error)}", file=sys.stderr, flush=True)


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
