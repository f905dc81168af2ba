# SPDX-License-Identifier: Apache-2.0
"""How a node is run: what a signal does while it starts, and whatever its leaving does."""

import ast
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from processes import executable

from drone_bridge.node import program

ROOT = Path(__file__).parent.parent
NODE = """
    import os, signal, sys, time
    from rclpy.node import Node
    from std_msgs.msg import String
    from drone_bridge.node import program
    from drone_bridge.node.executor import FrugalExecutor

    # Whoever waits for the signal gets every opportunity to get ahead.
    def make_executor():
        time.sleep(0.2)
        return FrugalExecutor()

    program.FrugalExecutor = make_executor

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
            {leaving}

    sys.exit(program.run(SignalledNode))
"""


def run_node(number, leaving="pass"):
    return run_program(NODE.format(signal=number.name, leaving=leaving))


ANSWERING_NODE = """
    import os, signal, sys, warnings
    from rclpy.node import Node
    from std_srvs.srv import Trigger
    from drone_bridge.node.program import run

    class AnsweringNode(Node):
        def start(self):
            service = self.create_service(Trigger, "ask", lambda request, response: response)
            tries = []

            def send_response(response, header):
                tries.append(response)
                if len(tries) < 3:
                    warnings.warn("failed to send response (timeout)", RuntimeWarning)
                else:
                    print(*tries, flush=True)
                    os.kill(os.getpid(), signal.SIGTERM)

            service.send_response = send_response
            timer = self.create_timer(0.01, lambda: (timer.cancel(), service.send_response("answer", "header")))
            return True

        def leave(self):
            pass

    sys.exit(run(lambda: AnsweringNode("answering")))
"""


ENDING_NODE = """
    import os, signal, sys
    from rclpy.node import Node
    from drone_bridge.node.program import run

    executors = []

    class EndingNode(Node):
        def start(self):
            self.create_timer(0.01, self.end)
            return True

        def end(self):
            executors[:] = [self.executor]
            os.kill(os.getpid(), signal.SIGTERM)

        def leave(self):
            pass

    status = run(lambda: EndingNode("ending"))
    (executor,) = executors
    if executor._sigint_gc:
        executor._sigint_gc.__del__()
    executor.__del__()
    sys.exit(status)
"""


FAULTY_NODE = """
    import sys
    from rclpy.node import Node
    from drone_bridge.node.program import run

    class FaultyNode(Node):
        def start(self):
            if "{moment}" == "at the start":
                self.fail()
            self.create_timer(0.01, self.fail)
            return True

        def fail(self):
            raise ValueError("no such thing")

        def leave(self):
            print("left", flush=True)

    sys.exit(run(lambda: FaultyNode("faulty")))
"""


def run_program(program):
    command = [sys.executable, "-c", textwrap.dedent(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    done.stderr = without_dds(done.stderr)
    return done


def without_dds(output):
    """Return the lines that are not Fast DDS's own, as where so many programs run that shared memory is used up."""
    return "".join(line for line in output.splitlines(keepends=True) if "RTPS_" not in line)


def test_services_do_not_lose_answers_to_clients_that_are_still_being_discovered():
    done = run_program(ANSWERING_NODE)
    assert (done.stdout.split(), done.stderr, done.returncode) == (3 * ["answer"], "", 0)


def test_the_garbage_collector_may_finalize_an_executor_in_any_order():
    done = run_program(ENDING_NODE)
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)


def test_a_failure_to_start_is_reported_in_a_sentence():
    done = run_program(FAULTY_NODE.format(moment="at the start"))
    assert (done.stdout.strip(), done.stderr, done.returncode) == ("left", "no such thing\n", 1)


def test_an_exception_in_a_running_node_shows_where_it_was_raised():
    done = run_program(FAULTY_NODE.format(moment="at work"))
    assert (done.stdout.strip(), done.returncode) == ("left", 1)
    assert "in fail" in done.stderr
    assert "ValueError: no such thing" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_a_node_starts_lets_it_start_and_leave(number):
    done = run_node(number)
    assert done.returncode == 0
    assert done.stdout.split()[:2] == ["started", "left"]
    assert done.stderr == ""


def test_signals_that_go_on_while_a_node_ends_do_not_change_its_status(start_child):
    """As when both the terminal and ros2 launch pass Ctrl-C on."""
    process = start_child(executable("vehicle_model"))
    process.wait_for_line("Publishing the model")
    for _ in range(1000):
        if not process.is_running:
            break
        process.send(signal.SIGINT)
        time.sleep(0.005)
    assert process.wait() == 0
    assert len(without_dds(process.output).splitlines()) == 1


def test_a_node_that_fails_to_leave_ends_anyway():
    done = run_node(signal.SIGTERM, leaving="raise RuntimeError('as asked')")
    assert "as asked" in done.stderr


def test_ctrl_c_during_the_imports_of_an_executable_shows_no_traceback(tmp_path):
    (tmp_path / "slow.py").write_text("import time\nprint('importing', flush=True)\ntime.sleep(100)\nmain = None\n")
    (tmp_path / "setup.cfg").write_text("[options.entry_points]\nconsole_scripts =\n    slow = slow:main\n")
    write = [sys.executable, ROOT / "cmake/write_executables.py", tmp_path / "setup.cfg", tmp_path / "bin"]
    subprocess.run(write, check=True, timeout=60)
    with subprocess.Popen(
        [tmp_path / "bin" / "slow"],
        env={"PYTHONPATH": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout.readline() == "importing\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGINT
    assert errors == ""


def test_executables_of_nodes_import_rclpy_before_anything_else_and_others_do_not(tmp_path):
    write = [sys.executable, ROOT / "cmake/write_executables.py", ROOT / "setup.cfg", tmp_path / "bin"]
    subprocess.run(write, check=True, timeout=60)

    def imported(name):
        tree = ast.parse((tmp_path / "bin" / name).read_text())
        [block] = [statement for statement in tree.body if isinstance(statement, ast.Try)]
        return [ast.unparse(one) for one in block.body if isinstance(one, ast.Import | ast.ImportFrom)]

    ours = "from drone_bridge.bridges.testbed.bridge import main"
    assert imported("testbed_bridge") == ["import rclpy.node", ours]
    assert imported("testbed_emulator") == ["from drone_bridge.emulators.testbed.__main__ import main"]
    assert imported("drone-bridge") == ["from drone_bridge.tools.cli import main"]


@pytest.mark.parametrize(
    ("distribution", "localhost_only", "expected"),
    [("humble", "0", "profile.xml"), ("humble", "1", None), ("jazzy", "0", None), ("kilted", "0", None)],
)
def test_the_profile_has_another_name_under_humble_and_is_not_for_localhost_only(
    monkeypatch, distribution, localhost_only, expected
):
    monkeypatch.setenv("FASTDDS_DEFAULT_PROFILES_FILE", "profile.xml")
    monkeypatch.setenv("FASTRTPS_DEFAULT_PROFILES_FILE", "")  # so that it is put back
    monkeypatch.delenv("FASTRTPS_DEFAULT_PROFILES_FILE")
    monkeypatch.setenv("ROS_DISTRO", distribution)
    monkeypatch.setenv("ROS_LOCALHOST_ONLY", localhost_only)
    program._name_profile_for_humble()
    assert os.environ.get("FASTRTPS_DEFAULT_PROFILES_FILE") == expected
