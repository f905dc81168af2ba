# SPDX-License-Identifier: Apache-2.0
"""Nodes in a real terminal: its end and Ctrl-\\ end them in order, and nohup protects them."""

import os
import pty
import re
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from patience import TIMEOUT_S
from processes import executable
from ros_session import wait_until

NODE = """
    import pathlib, sys
    from rclpy.node import Node
    from drone_bridge.ros.node.program import run

    left = pathlib.Path(sys.argv.pop())

    class TerminalNode(Node):
        def start(self):
            print("started", flush=True)
            return True

        def leave(self):
            left.touch()

    sys.exit(run(lambda: TerminalNode("terminal")))
"""
#: Parent that stays in the terminal's foreground with the node, as `ros2 run` and `ros2 launch` do.
PARENT = "import subprocess, sys; subprocess.Popen(sys.argv[1:]).wait()"


class Terminal:
    """Pseudo-terminal with one program in its foreground."""

    def __init__(self, *command):
        self._master, ours = pty.openpty()
        command = ["setsid", "--ctty", *map(str, command)]
        self.program = subprocess.Popen(command, stdin=ours, stdout=ours, stderr=ours)
        os.close(ours)

    def wait_for(self, text):
        shown = b""
        while text not in shown:
            shown += os.read(self._master, 1000)

    def press(self, key):
        os.write(self._master, key)

    def close(self):
        if self._master >= 0:
            os.close(self._master)
        self._master = -1

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
        self.program.kill()
        self.program.wait()


def closed(terminal):
    terminal.close()


def ctrl_backslash(terminal):
    terminal.press(b"\x1c")


@pytest.mark.parametrize("end", [closed, ctrl_backslash])
@pytest.mark.parametrize("parent", [[], [sys.executable, "-c", PARENT]], ids=["alone", "with a parent"])
def test_the_end_of_a_terminal_ends_its_node_in_order(tmp_path, end, parent):
    left = tmp_path / "left"
    with Terminal(*parent, sys.executable, "-c", textwrap.dedent(NODE), left) as terminal:
        terminal.wait_for(b"started")
        end(terminal)
        wait_until(left.exists, "the node to leave")
        status = terminal.program.wait(TIMEOUT_S)
        assert parent or status == 0


def test_the_end_of_a_terminal_does_not_end_a_node_under_nohup(start_child):
    child = start_child("nohup", executable("vehicle_model"))
    child.wait_for_line("Publishing the model")
    assert ignores(child.pid, signal.SIGHUP)
    assert not ignores(child.pid, signal.SIGQUIT)
    assert child.stop(signal.SIGQUIT) == 0


def ignores(pid, number):
    ignored = re.search(r"SigIgn:\t(\w+)", Path(f"/proc/{pid}/status").read_text())[1]
    return bool(int(ignored, 16) & 1 << (number - 1))
