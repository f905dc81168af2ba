# SPDX-License-Identifier: Apache-2.0
"""NameLock: of two nodes of one full name, the later one waits until the first one's process has ended."""

import os
import signal
import subprocess
import sys

import pytest
from processes import Process

from drone_bridge.ros.process.name_lock import NameLock, NameTakenError


@pytest.fixture
def locks(tmp_path):
    pair = NameLock(), NameLock()
    for each in pair:
        each.enable(tmp_path / "running")
    return pair


def test_the_later_node_of_one_name_waits_and_names_the_first(locks):
    first, later = locks
    first.take(78, "/robot_bridge")
    with pytest.raises(NameTakenError, match=str(os.getpid())) as taken:
        later.take(78, "/robot_bridge")
    with pytest.raises(NameTakenError):
        taken.value.retry()


def test_another_domain_namespace_or_name_has_a_lock_of_its_own(locks):
    first, later = locks
    first.take(78, "/robot_bridge")
    first.take(78, "/robot_bridge")
    for domain, name in ((79, "/robot_bridge"), (78, "/a/robot_bridge"), (78, "/robot_server")):
        later.take(domain, name)


def test_a_killed_node_frees_its_name_although_its_child_lives(locks, tmp_path):
    program = (
        "import pathlib, subprocess, sys\n"
        "from drone_bridge.ros.process.name_lock import NameLock\n"
        f"lock = NameLock(); lock.enable(pathlib.Path({str(tmp_path / 'running')!r})); lock.take(78, '/robot_bridge')\n"
        "child = subprocess.Popen([sys.executable, '-c', 'input()'], stdin=0, close_fds=False)\n"
        "print('locked', flush=True)\n"
        "child.wait()"
    )
    node = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert node.stdout.readline() == "locked\n"
        with pytest.raises(NameTakenError) as taken:
            locks[0].take(78, "/robot_bridge")
        node.kill()
        node.wait()
        taken.value.retry()
    finally:
        node.kill()
        node.communicate()  # ends the child's input


def test_without_a_folder_for_locks_no_node_waits(tmp_path):
    (tmp_path / "file").touch()
    locks = NameLock(), NameLock()
    locks[0].take(78, "/robot_bridge")
    for each in locks:
        each.enable(tmp_path / "file" / "running")
        each.take(78, "/robot_bridge")


@pytest.mark.usefixtures("ros")
def test_a_second_bridge_of_one_name_starts_once_the_first_is_killed(free_port):
    with Process.node("robot_bridge", port=free_port) as first:
        first.wait_for_line("No link|Trying again")
        with Process.node("robot_bridge", port=free_port) as later:
            later.wait_for_line(f"runs already .process {first.pid}.")
            first.stop(signal.SIGKILL)
            later.wait_for_line("No link|Trying again")


@pytest.mark.usefixtures("ros")
def test_nodes_of_one_name_without_a_common_lock_see_each_other(free_port, tmp_path):
    with Process.node("robot_bridge", port=free_port, env={"ROS_HOME": str(tmp_path)}) as first:
        first.wait_for_line("No link")  # after its first 3 s
        with Process.node("robot_bridge", port=free_port) as later:
            first.wait_for_line("2 nodes are named /robot_bridge")
            later.wait_for_line("another active node is named /robot_bridge|2 nodes are named /robot_bridge")
