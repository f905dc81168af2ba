# SPDX-License-Identifier: Apache-2.0
"""Program of a node, from the initialization of ROS to an orderly shutdown: `run`.

The main thread runs the node's callbacks. A separate thread handles signals: it sends the neutral command and shuts ROS
down, without waiting for a callback. Output goes through a pipe that never blocks (`log_pipe`). The kernel ends a
process that hangs, or whose start or shutdown takes too long (`watchdog`).
"""

import contextlib
import inspect
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
from rclpy.exceptions import InvalidParameterTypeException, NameValidationException, ParameterException
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.logging import get_logger
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from rclpy.utilities import try_shutdown

from drone_bridge.ros.node.parameter_files import check_arguments, check_launch_file
from drone_bridge.ros.node.stall_watch import PROCESS
from drone_bridge.ros.process import log_pipe, watchdog
from drone_bridge.ros.process.environment import complete_environment, ros_home, security_problem
from drone_bridge.ros.process.name_lock import NAMES, NameTakenError
from drone_bridge.ros.process.shared_memory import make_room
from drone_bridge.ros.service_responses import has_undelivered, resend_lost_responses
from drone_bridge.standard_files import open_closed_files
from drone_bridge.stop_signals import handle_stop_signals, ignore_stop_signals


class Stoppable(Protocol):
    """Interface of a Node for `run`."""

    def start(self) -> bool:
        """Start working. Return True on success. Failures are logged."""

    def leave(self) -> None:
        """Stop working: send the neutral command and close connections. Thread-safe."""


#: Earliest end of a program that can't start, s after its beginning, since a launch file respawns it at once. Short in
#: tests.
REFUSED_S = float(os.environ.get("DRONE_BRIDGE_REFUSED_SECONDS", "10"))
#: Time between the end of a lifecycle node and that of its program, s. Meanwhile DDS repeats a response that was lost.
FAREWELL_S = 1.0
#: Period of the retries of a node whose name another one has, s.
NAME_PERIOD_S = 0.5
#: Exit statuses: a failure that may go away, and invalid settings, as in argparse. Our launch runner restarts a node
#: only after the first, `ros2 launch` after both: see `tools.launch.processes`.
FAILED, REFUSED = 1, 2
#: First arguments that ask for the usage.
_HELP = frozenset({"-h", "--help"})
_BEGAN_S = time.monotonic()
#: Errors of a program's arguments: parameters and their files, names, a log level.
START_ERRORS = (ParameterException, NameValidationException, ValueError, rclpy_implementation.RCLError)


def run(make_node: Callable[[], Stoppable]) -> int:
    """Initialize ROS and run one node until a stop signal or the end of the context. Return the exit status.

    A separate thread handles signals, so that neutral commands are sent at once, while ROS still works, even if the
    executor is busy. Then ROS is shut down properly: a process that just exits leaves its shared memory behind. The
    watchdog ends a process that hangs, or whose start or shutdown takes too long.
    """
    open_closed_files()
    if not _HELP.isdisjoint(sys.argv[1:2]):
        print(_help(make_node))
        return 0
    log_pipe.start()
    running = _Run(make_node)
    try:
        return running.serve() if running.has_started() else running.refuse()
    except ExternalShutdownException:
        return 0
    except Exception:
        # Operations in progress may raise during ROS's shutdown.
        if not running.stopping.is_set():
            raise
        return 0
    finally:
        running.end()
        ignore_stop_signals()


class _Run:
    """Node with its executor, for the main thread, and the thread that waits for a signal."""

    def __init__(self, make_node: Callable[[], Stoppable]) -> None:
        self._make_node = make_node
        self._signalled = _signal_socket()
        #: Set after a signal.
        self.stopping = threading.Event()
        self._starting = threading.Lock()
        self._status = FAILED  # of a program that can't start
        self._node: Stoppable | None = None
        self._executor: SingleThreadedExecutor | None = None
        self._stopper = threading.Thread(target=self._stop_on_signal, name="signals", daemon=True)

    def has_started(self) -> bool:
        """Create the node and start it. Return True on success."""
        with self._starting:
            self._stopper.start()
            watchdog.limit_start()
            try:
                initialize_ros()
                self._node = self._created()
                if self._node is None:
                    self._status = 0  # a signal came first
                    return False
                if not self.stopping.is_set() and not self._node.start():
                    return False
            except START_ERRORS as error:  # of the arguments; later errors are internal
                print_start_error(error)
                is_of_middleware = rclpy.ok() and isinstance(error, rclpy_implementation.RCLError)
                self._status = FAILED if is_of_middleware else REFUSED
                return False
            assert isinstance(self._node, Node)
            self._executor = executor_of(self._node)
            PROCESS.start()  # a slow start is not a stall: no commands wait meanwhile
            watchdog.start(log_pipe.respawn_writer)
            return True

    def _created(self) -> Stoppable | None:
        """Create the node, once no other one on this machine has its name. None if a signal came first."""
        NAMES.enable(ros_home() / "running")
        while not self.stopping.is_set():
            try:
                return self._make_node()
            except NameTakenError as taken:
                get_logger("drone_bridge").error(str(taken))
                while not self.stopping.wait(NAME_PERIOD_S):
                    watchdog.limit_start()
                    with contextlib.suppress(NameTakenError):
                        taken.retry()
                        break
        return None

    def serve(self) -> int:
        """Run callbacks until ROS is shut down, or a lifecycle node is finalized and its client has the response."""
        assert self._executor
        while rclpy.ok() and (has_undelivered() or not getattr(self._node, "is_finalized", False)):
            self._executor.spin_once()
        ends_at = time.monotonic() + FAREWELL_S
        while rclpy.ok() and (left_s := ends_at - time.monotonic()) > 0:
            self._executor.spin_once(left_s)
        return 0

    def refuse(self) -> int:
        """Wait until a program that can't start may end, see REFUSED_S. Return the exit status.

        At a terminal, invalid settings end it at once.
        """
        if self._status == FAILED or not os.isatty(log_pipe.original_output()[1]):
            self.stopping.wait(max(0.0, REFUSED_S - (time.monotonic() - _BEGAN_S)))
        return self._status

    def _stop_on_signal(self) -> None:
        self._signalled.recv(1)
        self.stopping.set()
        with self._starting:  # shutting ROS down during the creation of a node would raise
            try:
                if self._node:
                    self._node.leave()
            finally:
                watchdog.limit_shutdown()
                shut_down_ros()

    def end(self) -> None:
        """Send neutral, destroy the node, and shut ROS down."""
        if self.stopping.is_set():
            self._stopper.join()
        if self._node:
            self._node.leave()
            watchdog.limit_shutdown()
            try:
                self._destroy(self._node)
            except Exception:
                if not self.stopping.is_set():  # otherwise the shutdown has destroyed it
                    raise
            # Otherwise the signal thread would keep them alive, and with them ROS's shared memory.
            self._node = self._executor = None
        shut_down_ros()

    def _destroy(self, node: Stoppable) -> None:
        assert isinstance(node, Node)
        try:
            if self._executor:
                # Otherwise its finalizer does, with a traceback if parts were garbage-collected before.
                self._executor.shutdown()
        finally:
            node.destroy_node()


def _help(make_node: Callable[[], Stoppable]) -> str:
    """Return the usage of a node."""
    name = sys.argv[0].rpartition("/")[2]
    summary = (inspect.getdoc(make_node) or "").partition("\n")[0]
    return (
        f"usage: {name} [--ros-args -p PARAMETER:=VALUE ... --params-file FILE -r NAME:=OTHER]\n\n{summary}\n\n"
        f"`drone-bridge param list /{name}` (or `ros2 param list`) lists the parameters of the running node.\n"
        "docs/reference describes them, with topics and services.\n\n"
        f"example: {name} --ros-args -r __ns:=/my_robot"
    )


def initialize_ros(args: list[str] | None = None) -> None:
    """Complete the environment and call rclpy.init without signal handlers. Warns of missing shared memory or security.

    `args` are the command line, sys.argv by default. rcl writes no log file unless they request it: the log pipe writes
    one, and does not need a writable folder for the node to start. Raises one of START_ERRORS.
    """
    words = list(sys.argv if args is None else args)
    check_launch_file()
    check_arguments(words)
    complete_environment()
    shortage = make_room()
    if not any(flag in words for flag in log_pipe.FILE_FLAGS):
        words += log_pipe.NO_FILE_OF_RCL
    rclpy.init(args=words, signal_handler_options=SignalHandlerOptions.NO)
    for problem in filter(None, (shortage, security_problem())):
        get_logger("drone_bridge").warning(problem)


def shut_down_ros() -> None:
    """Shut ROS down without uninstalling signal handlers, which were never installed.

    `rclpy.try_shutdown` uninstalls them since Kilted. That would briefly reset SIGINT and SIGTERM to their default: a
    second Ctrl-C would then end the process.
    """
    try_shutdown()


def executor_of(node: Stoppable) -> SingleThreadedExecutor:
    """Return a single-threaded executor for a node, which loses no service responses."""
    assert isinstance(node, Node)
    resend_lost_responses(node)
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    return executor


def print_start_error(error: Exception) -> None:
    """Print one of START_ERRORS as a sentence, after the program's name."""
    print(f"{sys.argv[0].rpartition('/')[2]}: {_sentence(error)}", file=sys.stderr, flush=True)


def _sentence(error: Exception) -> str:
    """Return the text of an error, without positions in rcl's sources."""
    text = re.sub(r", at /\S+?:\d+", "", str(error)).removeprefix("failed to initialize rcl: ")
    if isinstance(error, InvalidParameterTypeException):  # of rclpy's own use_sim_time
        return re.sub(
            r".*parameter '(.*?)' to '(.*)' of type.* type '(\w+)'.*", r"\1 is \2 but must be of type \3.", text
        )
    if "Sequence should be of same type" in text:
        text += ". In a list of numbers, write 1.0 for 1."
    return f"{text}: debug, info, warn, error or fatal." if "severity level" in text else text


def _signal_socket() -> socket.socket:
    """Return a socket that gets a byte per signal at once. Python's own handlers wait for the main thread."""
    receiving, sending = socket.socketpair()
    sending.setblocking(False)
    signal.set_wakeup_fd(sending.detach(), warn_on_full_buffer=False)
    handle_stop_signals(lambda: None)
    return receiving
