# SPDX-License-Identifier: Apache-2.0
"""Start Python programs as forks of one process that has imported what they need: a fraction of what a start takes.

rclpy is among it. Fast DDS starts its threads, and reads its configuration, when the first node is made: in the fork.
A fork runs to the end of its interpreter, and who asked for it is told its exit status, as if it were a child of its
own.
"""

import contextlib
import ctypes
import functools
import gc
import importlib
import inspect
import json
import os
import pkgutil
import re
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
import weakref
from multiprocessing.connection import Connection
from pathlib import Path

from ament_index_python.packages import get_package_prefix

#: Of others, imported by most programs of the package, and without threads.
PREPARED = (
    "action_msgs.srv",
    "ament_index_python",
    "argparse",
    "asyncio",
    "builtin_interfaces.msg",
    "csv",
    "cv2",
    "diagnostic_msgs.msg",
    "em",
    "geometry_msgs.msg",
    "lifecycle_msgs.msg",
    "lifecycle_msgs.srv",
    "nav_msgs.msg",
    "numpy.typing",
    "orjson",
    "pybase64",
    "rcl_interfaces.msg",
    "rcl_interfaces.srv",
    "rosgraph_msgs.msg",
    "rosidl_generator_py",
    "rosidl_parser.parser",
    "rosidl_pycommon",
    "rpyutils",
    "sensor_msgs.msg",
    "service_msgs.msg",
    "std_msgs.msg",
    "std_srvs.srv",
    "tf2_msgs.msg",
    "type_description_interfaces.msg",
    "type_description_interfaces.srv",
    "typing_extensions",
    "unique_identifier_msgs.msg",
    "uuid",
    "yaml",
)
#: Rooms of the package, and its messages, that most of its programs need.
ROOMS = (
    *("wire", "net", "motion", "vision", "programs", "msg", "srv", "ros", "controllers"),
    *("testbed", "dronegui", "simulator", "robot", "telemetry"),
)
#: What Python, or the linker, reads only at the start: who sets these needs a start of its own.
READ_AT_THE_START = ("PYTHON", "LD_", "RMW_IMPLEMENTATION")
MAX_REQUEST_BYTES = 1 << 20


def executable(name):
    """Return the path of an installed executable, as `ros2 run` would find it."""
    return os.path.join(get_package_prefix("drone_bridge"), "lib", "drone_bridge", name)


def is_of_the_package(command):
    """Return whether it is an installed executable, or a module that Python is to run."""
    if command[:2] == [sys.executable, "-m"]:
        return command[2].startswith("drone_bridge.")
    return os.path.dirname(command[0]) == os.path.dirname(executable("any"))


def is_same_at_the_start(environment, other):
    """Return whether both environments are the same for what is read at the start only."""
    return all(
        environment.get(name) == other.get(name)
        for name in {*environment, *other}
        if name.startswith(READ_AT_THE_START)
    )


class ForkServer:
    """The prepared process, and how to start forks of it. It ends with its client; forks go on."""

    def __init__(self):
        self._environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        self._socket, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with its:
            subprocess.Popen(
                [sys.executable, __file__, str(its.fileno())],
                stdin=subprocess.DEVNULL,
                env={**self._environment, "OPENBLAS_NUM_THREADS": "1"},
                pass_fds=[its.fileno()],
                start_new_session=True,
            )

    def can_start(self, environment):
        """Return whether a program with this environment needs nothing that only a start of its own would read."""
        return is_same_at_the_start(environment, self._environment)

    def start(self, command, environment):
        """Start [interpreter, -m, module, ...] or [script, ...], without input and in a session of its own."""
        request = {"command": command, "environment": environment, "folder": os.getcwd()}
        (reading_output, writing_output), (reading_status, writing_status) = os.pipe(), os.pipe()
        try:
            socket.send_fds(self._socket, [json.dumps(request).encode()], [writing_output, writing_status])
        finally:
            os.close(writing_output)
            os.close(writing_status)
        return Fork(command, open(reading_output, "rb"), Connection(reading_status, writable=False))


@functools.cache
def fork_server():
    """Return the one of this process."""
    return ForkServer()


class Fork:
    """A program that runs: what tests need of subprocess.Popen."""

    def __init__(self, command, stdout, told):
        self._command = command
        self._told = told
        self._telling = threading.Lock()
        self.stdout = stdout
        self.returncode = None
        self.pid = told.recv()

    def poll(self):
        with self._telling:
            if self.returncode is None and self._told.poll():
                self.returncode = self._told.recv()
        return self.returncode

    def wait(self, timeout_s):
        if self.returncode is None:
            self._told.poll(timeout_s)
        if self.poll() is None:
            raise subprocess.TimeoutExpired(self._command, timeout_s)
        return self.returncode

    def send_signal(self, number):
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):  # has ended, and this is not known yet
                os.kill(self.pid, number)

    def terminate(self):
        self.send_signal(signal.SIGTERM)

    def kill(self):
        self.send_signal(signal.SIGKILL)


def serve(connection):
    """Fork for each request; return it in the fork, and None when nobody asks any more."""
    statuses = {}  # where to tell the exit status, by process ID
    ended, wakeup = socket.socketpair()
    wakeup.setblocking(False)
    signal.set_wakeup_fd(wakeup.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    while True:
        readable = select.select([connection, ended], [], [])[0]
        if ended in readable:
            ended.recv(4096)
            tell_of_ended(statuses)
        if connection not in readable:
            continue
        data, descriptors, *_ = socket.recv_fds(connection, MAX_REQUEST_BYTES, 2)
        if not data:
            return None
        output, status = descriptors
        if not (pid := os.fork()):
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for thing in (connection, ended, wakeup, *statuses.values()):
                thing.close()
            os.dup2(output, sys.stdout.fileno())
            os.dup2(output, sys.stderr.fileno())
            os.close(output)
            os.close(status)
            return json.loads(data)
        os.close(output)
        statuses[pid] = Connection(status, readable=False)
        tell(statuses[pid], pid)


def tell_of_ended(statuses):
    """Tell the exit statuses of those that have ended."""
    while statuses:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            break
        with statuses.pop(pid) as told:
            tell(told, os.waitstatus_to_exitcode(status))


def tell(told, number):
    with contextlib.suppress(BrokenPipeError):  # nobody waits for it any more
        told.send(number)


#: As subprocess.Popen names their ends.
PIPES = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")


def threads():
    """Return how many threads there are, also of libraries."""
    return len(os.listdir("/proc/self/task"))


class Popen(subprocess.Popen):
    """What stands in for subprocess.Popen in a fork: programs of the package that it starts become forks of it.

    Unless it has started threads, which its forks would lack: those of a node, for instance.
    """

    threads_at_first = 0

    def _execute_child(self, *given):
        arguments = inspect.signature(super()._execute_child).bind(*given).arguments
        command, environment = list(map(os.fspath, arguments["args"])), dict(arguments["env"] or os.environ)
        is_pristine = threads() <= self.threads_at_first and is_same_at_the_start(environment, os.environ)
        if not is_of_the_package(command) or not is_pristine:
            super()._execute_child(*given)
            return
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if not self.pid:
            forget_signals()
            forget_finalizers()
            for stream, name in enumerate(("p2cread", "c2pwrite", "errwrite")):
                if arguments[name] != -1:
                    os.dup2(arguments[name], stream)
            if arguments["start_new_session"]:
                os.setsid()
            if arguments["preexec_fn"]:
                arguments["preexec_fn"]()
            run_to_the_end(command, environment, arguments["cwd"] or os.getcwd())
        self._child_created = True
        self._close_pipe_fds(*(arguments[name] for name in PIPES))


def forget_signals():
    """Have no handlers, as after the start of another program."""
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def forget_finalizers():
    """Leave it to the parent to remove what it has made, such as its temporary folders."""
    for finalizer in tuple(weakref.finalize._registry):
        finalizer.detach()


def run_to_the_end(command, environment, folder):
    """Run the program, and end as the interpreter would: with all that comes after it."""
    status = 0
    try:
        become(command, environment, folder)
    except SystemExit as leaving:
        status = leaving.code
        if status is not None and not isinstance(status, int):
            print(status, file=sys.stderr)
            status = 1
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        status = 1
    ctypes.pythonapi.Py_Exit(status or 0)


def become(command, environment, folder):
    """Run the program as a start of its own would."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    if command[1:2] == ["-m"]:
        sys.path[0] = folder
        sys.argv = command[2:]
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = str(Path(command[0]).parent)
        sys.argv = command
        runpy.run_path(command[0], run_name="__main__")


def follow_forks_in_tracer():
    """Have LTTng, with which rclpy's libraries are traced, start its threads anew in each fork, where they are lost."""
    with open("/proc/self/maps") as maps:
        library = re.search(r"/\S+/liblttng-ust(-[0-9a-f]+)?\.so\S*", maps.read())
    if not library:
        return
    tracer = ctypes.CDLL(library[0])
    prefix = "lttng_ust" if hasattr(tracer, "lttng_ust_before_fork") else "ust"  # before LTTng 2.13
    signals = ctypes.create_string_buffer(128)  # a sigset_t
    before, in_parent, in_child = (
        functools.partial(getattr(tracer, f"{prefix}_{when}"), signals)
        for when in ("before_fork", "after_fork_parent", "after_fork_child")
    )
    os.register_at_fork(before=before, after_in_parent=in_parent, after_in_child=in_child)


def prepare():
    """Import what can be imported before a fork."""
    for name in PREPARED:
        with contextlib.suppress(ModuleNotFoundError):  # of what is optional
            importlib.import_module(name)
    for room in ROOMS:
        package = importlib.import_module(f"drone_bridge.{room}")
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith(".__main__"):
                with contextlib.suppress(ModuleNotFoundError):
                    importlib.import_module(module.name)
    for name, module in tuple(sys.modules.items()):
        if name.endswith((".msg", ".srv")):
            for kind in vars(module).values():
                if hasattr(kind, "__import_type_support__"):
                    kind.__import_type_support__()


if __name__ == "__main__":
    prepare()
    follow_forks_in_tracer()
    gc.freeze()  # what is there is not looked at, and so not copied, by a fork's garbage collector
    with socket.socket(fileno=int(sys.argv[1])) as given:
        request = serve(given)
    if request:
        os.setsid()
        Popen.threads_at_first = threads()
        subprocess.Popen = Popen
        become(**request)
