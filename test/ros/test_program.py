# SPDX-License-Identifier: Apache-2.0
"""Running a node: signals during its start, and its shutdown."""

import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
import rclpy
from networks import addresses_of
from processes import executable
from repository import ROOT
from ros_session import wait_until

from drone_bridge.ros.node.program import shut_down_ros
from drone_bridge.ros.process import environment, shared_memory, watchdog
from drone_bridge.stop_signals import STOP_SIGNALS

NODE = """
    import os, signal, sys, time
    from rclpy.node import Node
    from std_msgs.msg import String
    from drone_bridge.ros.node import program
    from rclpy.executors import SingleThreadedExecutor

    # Whoever waits for the signal gets every opportunity to get ahead.
    def make_executor():
        time.sleep(0.2)
        return SingleThreadedExecutor()

    program.SingleThreadedExecutor = make_executor

    class SignalledNode(Node):
        def __init__(self):
            super().__init__("signalled")

        def start(self):
            os.kill(os.getpid(), signal.{signal})
            time.sleep(0.2)
            self.create_publisher(String, "something", 1)
            print("started", flush=True)
            return True

        def leave(self):
            print("left", flush=True)

    sys.exit(program.run(SignalledNode))
"""


FAULTY_NODE = """
    import sys
    from rclpy.node import Node
    from drone_bridge.ros.node.program import run

    class FaultyNode(Node):
        def start(self):
            raise ValueError("no such thing")

        def leave(self):
            print("left", flush=True)

    sys.exit(run(lambda: FaultyNode("faulty")))
"""


HANGING_NODE = """
    import ctypes, os, signal, sys
    from rclpy.node import Node
    from drone_bridge.ros.node import program

    class HangingNode(Node):
        def start(self):
            os.kill(os.getpid(), signal.SIGINT)
            return True

        def leave(self):
            print("left", flush=True)

        def destroy_node(self):
            ctypes.PyDLL(None).sleep(600)  # keeps Python's lock

    sys.exit(program.run(lambda: HangingNode("hanging")))
"""

REFUSED_NODE = """
    import sys
    import rclpy
    from drone_bridge.ros.node import program

    program.REFUSED_S = 0.0

    def make_node():
        raise {error}

    sys.exit(program.run(make_node))
"""

NODE_THAT_DOES_NOT_START = """
    import ctypes, sys
    from drone_bridge.ros.node import program
    from drone_bridge.ros.process import watchdog

    def make_node():
        ctypes.PyDLL(None).sleep(600)  # keeps Python's lock

    watchdog.START_LIMIT_S = 3.0
    program.initialize_ros = lambda: None  # which takes as long on a busy machine
    sys.exit(program.run(make_node))
"""


def run_program(program):
    command = [sys.executable, "-c", textwrap.dedent(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    done.stderr = without_dds(done.stderr)
    return done


def without_dds(output):
    """Return the lines except Fast DDS's own, which appear when shared memory is exhausted."""
    return "".join(line for line in output.splitlines(keepends=True) if "RTPS_" not in line)


def test_a_failure_to_start_is_reported_in_a_sentence():
    done = run_program(FAULTY_NODE)
    assert (done.stdout.strip(), done.stderr, done.returncode) == ("left", "-c: no such thing\n", 2)


@pytest.mark.parametrize(
    "number",
    [
        each if each in (signal.SIGINT, signal.SIGHUP) else pytest.param(each, marks=pytest.mark.exhaustive)
        for each in STOP_SIGNALS
    ],
)
def test_a_signal_while_a_node_starts_lets_it_start_and_leave(number):
    done = run_program(NODE.format(signal=number.name))
    assert done.returncode == 0
    assert done.stdout.split()[:2] == ["started", "left"]
    assert done.stderr == ""


def test_no_signal_gets_its_default_handler_at_the_shutdown_of_ros(monkeypatch):
    uninstalled = []
    monkeypatch.setattr(rclpy, "uninstall_signal_handlers", lambda: uninstalled.append(True))
    shut_down_ros()  # by rclpy.try_shutdown of Kilted and Lyrical, there would be

    assert not uninstalled


def test_further_signals_during_the_shutdown_do_not_change_the_status(start_child):
    """As when both the terminal and ros2 launch forward Ctrl-C."""
    process = start_child(executable("vehicle_model"))
    process.wait_for_line("Publishing the model")
    for _ in range(1000):
        if not process.is_running:
            break
        process.send(signal.SIGINT)
        time.sleep(0.005)
    assert process.wait() == 0
    assert len(without_dds(process.output).splitlines()) == 1


@pytest.fixture
def impatient(monkeypatch):
    """Let the kernel end hanging processes as soon as for users."""
    monkeypatch.delenv(watchdog.SECONDS)


@pytest.mark.usefixtures("impatient")
def test_a_hanging_shutdown_is_aborted_with_a_traceback(start_child):
    process = start_child(sys.executable, "-c", textwrap.dedent(HANGING_NODE))
    process.wait_for_line("left")
    assert process.wait() == -signal.SIGALRM
    assert process.count_lines("in destroy_node") == 1


@pytest.mark.usefixtures("impatient")
def test_a_hanging_start_is_aborted_with_a_traceback():
    done = run_program(NODE_THAT_DOES_NOT_START)
    assert done.returncode == -signal.SIGALRM
    assert "in make_node" in done.stderr


def test_only_shared_memory_of_killed_processes_is_removable(start_child, ros):
    """Both are participants, but only one is killed."""
    mine = segments_of(os.getpid())
    killed = start_child(executable("vehicle_model"))
    killed.wait_for_line("Publishing the model")
    theirs = segments_of(killed.pid)
    assert mine
    assert theirs
    assert not (mine | theirs) & set(shared_memory.abandoned())
    killed.send(signal.SIGKILL)
    killed.wait()
    wait_until(lambda: theirs <= set(shared_memory.abandoned()), "what is left to be old enough")
    assert not mine & set(shared_memory.abandoned())
    for file in theirs:
        file.unlink()


def segments_of(pid):
    """Return the files of a process's segments and queues."""
    links = (os.readlink(file) for file in Path(f"/proc/{pid}/fd").iterdir() if file.is_symlink())
    locks = [Path(link) for link in links if re.fullmatch(r"/dev/shm/fast(dds|rtps)_[0-9a-f]+_el", link)]
    return {file for lock in locks for file in (lock, lock.with_name(lock.name.removesuffix("_el")))}


@pytest.mark.parametrize(
    ("error", "status"), [("program.rclpy_implementation.RCLError('no room')", 1), ("ValueError('port is 0')", 2)]
)
def test_launch_restarts_after_middleware_failure_not_refused_settings(error, status):
    done = run_program(REFUSED_NODE.format(error=error))
    assert done.returncode == status
    assert "Traceback" not in done.stderr


def test_a_parameter_file_that_ros_refuses_is_named_in_a_sentence(start_child, tmp_path):
    """By one line, with the status of a refused start; and not at once, as `ros2 launch` would restart it at once."""
    file = tmp_path / "mine.yaml"
    file.write_text("/**:\n  ros__parameters:\n#    command_timeout: 0.7\n")
    began_s, later = time.monotonic(), {"DRONE_BRIDGE_REFUSED_SECONDS": "5"}
    process = start_child(executable("vehicle_model"), "--ros-args", "--params-file", file, env=later)
    process.wait_for_line(f"^vehicle_model: .*params file: .*{file}.*ros__parameters at line")
    assert process.wait() == 2
    assert time.monotonic() - began_s > 5.0
    assert "Traceback" not in process.output


def test_node_is_refused_without_the_parameter_file_of_its_launch(start_child, tmp_path):
    """Under `ros2 launch`, a missing file is only a warning."""
    file = tmp_path / "limits.yaml"
    process = start_child(executable("vehicle_model"), env={"DRONE_BRIDGE_PARAMS_FILE": str(file)})
    process.wait_for_line(f"^vehicle_model: .*{file}.*no such file")
    assert process.wait() == 2


@pytest.mark.parametrize("name", ["robot_bridge", "robot_class_bridge", "recorder", "web_bridge"])
def test_help_of_a_node_prints_its_usage_and_an_example_and_ends(name, start_child):
    process = start_child(executable(name), "--help")
    process.wait_for_line(f"^usage: {name} ")
    process.wait_for_line(f"^(example:|drone-bridge run) {name} ")
    assert process.wait() == 0


def test_a_middleware_that_is_not_installed_is_named_with_those_that_are(start_child):
    if os.environ.get("RMW_IMPLEMENTATION", "rmw_fastrtps_cpp") != "rmw_fastrtps_cpp":
        pytest.skip("this asks for a middleware that nobody has, beside Fast DDS")
    named = {"RMW_IMPLEMENTATION": "rmw_smoke_signals_cpp"}
    process = start_child(executable("vehicle_model"), env=named)
    process.wait_for_line("RMW_IMPLEMENTATION is rmw_smoke_signals_cpp, .* there is .*rmw_fastrtps_cpp")
    assert process.wait() == 1
    doctor = start_child(executable("drone-bridge"), "doctor", env=named)
    doctor.wait_for_line("-> RMW_IMPLEMENTATION is rmw_smoke_signals_cpp")
    assert doctor.wait() == 1
    doctor.wait_for_line("libraries")  # it continues


PROFILE_OF_2 = environment.PROFILE_OF_2
UNSET = ("AMENT_PREFIX_PATH", environment.PROFILE, "ROS_AUTOMATIC_DISCOVERY_RANGE", PROFILE_OF_2)


@pytest.mark.parametrize("command", [["robot_bridge"], ["drone-bridge", "launch", "dronegui.launch.xml"]])
def test_executables_without_an_environment_open_no_socket_to_others(start_child, domain, tmp_path, command):
    """As typed: `.venv/lib/drone_bridge/robot_bridge`."""
    if not Path(sys.prefix, "share", "drone_bridge").is_dir():
        pytest.skip("the environment of ROS is installed otherwise here")
    name, *words = command
    unset = [word for name in UNSET for word in ("-u", name)]
    process = start_child("env", *unset, "-C", tmp_path, executable(name), *words)
    process.wait_for_line("INFO|WARN")
    pids = [process.pid, *map(int, re.findall(r"started \(pid (\d+)\)", process.output))]
    addresses = {address for pid in pids for address in addresses_of(pid)}
    assert addresses
    assert all(address.is_loopback for address in addresses), addresses


@pytest.mark.parametrize(
    ("reach", "profile", "profile_of_2"),
    [
        *((reach, None, None) for reach in (None, "SUBNET", "OFF", "LOCALHOST")),
        (None, "/mine.xml", None),
        ("OFF", "/mine.xml", "/of_2.xml"),
    ],
)
def test_executables_create_the_environment_of_the_activated_shell(monkeypatch, reach, profile, profile_of_2):
    if not (ROOT / ".venv" / "bin" / "drone-bridge").exists():
        pytest.skip("env/activate belongs to 'make setup', and ROS is installed otherwise here")
    for name, value in zip(UNSET, (None, profile, reach, profile_of_2), strict=True):
        monkeypatch.setenv(name, value or "")
        if value is None:
            monkeypatch.delenv(name)
    show = 'for name in "$@"; do eval "echo \\$$name"; done'
    shell = ["bash", "-c", f'. "{ROOT}/env/activate"; {show}', "bash", *UNSET]
    activated = subprocess.run(shell, capture_output=True, text=True, check=True, timeout=60).stdout.splitlines()
    environment.complete_environment()
    ours = [os.environ.get(name, "") for name in UNSET]
    assert [os.path.realpath(value) for value in ours] == [os.path.realpath(value) for value in activated]


@pytest.mark.parametrize(
    ("executable_name", "other"), [("robot_bridge", "rclpy"), ("drone-bridge", "prefix"), ("drive.py", "rclpy")]
)
def test_other_ros_distribution_than_the_messages_is_refused_by_name(tmp_path, executable_name, other):
    if not Path(sys.prefix, "share", "drone_bridge").is_dir():
        pytest.skip("the environment of ROS is installed otherwise here")
    (tmp_path / "rclpy").mkdir()
    (tmp_path / "rclpy" / "__init__.py").write_text("raise ImportError('compiled for another Python')")
    marker = tmp_path / "share/ament_index/resource_index/packages/rclpy"
    marker.parent.mkdir(parents=True)
    marker.touch()
    set_up = {"rclpy": {"PYTHONPATH": str(tmp_path)}, "prefix": {"AMENT_PREFIX_PATH": str(tmp_path)}}[other]
    words = ["play", "--help"] if executable_name == "drone-bridge" else []
    is_example = executable_name == "drive.py"
    done = subprocess.run(
        [sys.executable, ROOT / "examples/drive.py"] if is_example else [executable(executable_name), *words],
        env={**os.environ, **set_up},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert f"messages are compiled for the ROS 2 in {sys.prefix}" in done.stderr
    assert str(tmp_path) in done.stderr
    assert "Traceback" not in done.stderr


SHOW_LIBRARIES = """
import os, time
from drone_bridge.ros.process.environment import complete_environment
complete_environment()
print("complete", flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("command", [[executable("robot_bridge")], [sys.executable, "-c", SHOW_LIBRARIES]])
def test_libraries_of_the_wheels_come_before_any_others(start_child, domain, tmp_path, command):
    ours = Path(sys.prefix, "lib")
    if not (ours / "librcl.so").exists():
        pytest.skip("the libraries of ROS are installed otherwise here")
    alone = {"LD_LIBRARY_PATH": str(tmp_path), "_ROS_WHEELS_BOOTSTRAP_COMPLETE": ""}
    process = start_child(*command, env=alone)
    process.wait_for_line("complete|WARN|INFO")
    variables = Path(f"/proc/{process.pid}/environ").read_bytes().decode().split("\0")
    folders = dict(variable.split("=", 1) for variable in variables if variable)["LD_LIBRARY_PATH"].split(":")
    assert str(ours) in folders
    assert folders[-1] == str(tmp_path)


IMPORTING = "import time; print('importing', flush=True); time.sleep(100)"


def block_interrupts():
    """As `drone-bridge launch` does."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])


@pytest.fixture
def slow(tmp_path):
    """Executable whose import takes long."""
    (tmp_path / "setup.cfg").write_text("[options.entry_points]\nconsole_scripts =\n    slow = slow:main\n")
    write = [sys.executable, ROOT / "cmake/write_executables.py", tmp_path / "setup.cfg", tmp_path / "bin"]
    subprocess.run(write, check=True, timeout=60)
    return tmp_path / "bin/slow"


@pytest.mark.parametrize(
    ("command", "module", "status"),
    [
        ([executable("vehicle_model")], "numpy", -signal.SIGINT),
        ([sys.executable, "-m", "drone_bridge.tools.cli", "launch", "testbed.launch.xml"], "asyncio", 130),
        ([sys.executable, ROOT / "examples/fly.py"], "numpy", -signal.SIGINT),
        ([sys.executable, ROOT / "examples/drive.py"], "numpy", -signal.SIGINT),
        (["slow"], "slow", -signal.SIGINT),
    ],
)
def test_ctrl_c_during_the_start_of_a_program_shows_no_traceback(tmp_path, slow, command, module, status):
    (tmp_path / f"{module}.py").write_text(IMPORTING)
    with subprocess.Popen(
        [slow if command == ["slow"] else command[0], *command[1:]],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=block_interrupts if command == ["slow"] else None,  # noqa: PLW1509
    ) as process:
        assert process.stdout.readline() == "importing\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (status, "")
