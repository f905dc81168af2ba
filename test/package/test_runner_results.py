# SPDX-License-Identifier: Apache-2.0
"""Entries and results of the runner."""

from pathlib import Path

import entries
import entry
import pytest
import run
from repository import TESTS

DUMP = """\
Timeout (0:05:00)!
Thread 0x00007f51f0ff96c0 (most recent call first):
  File "/usr/lib/python3.12/threading.py", line 355 in wait
  File "{path}", line 10 in spin

Current thread 0x00007f5262b3a080 (most recent call first):
  File "{path}", line 77 in {function}
  File "test/ros/test_hold.py", line 20 in test_hold
"""


@pytest.mark.parametrize(
    ("path", "function", "is_one"),
    [
        ("/opt/ros/kilted/lib/python3.12/site-packages/rclpy/subscription.py", "destroy", True),
        ("/opt/ros/kilted/lib/python3.12/site-packages/rclpy/node.py", "destroy_node", True),
        ("/opt/ros/kilted/lib/python3.12/site-packages/rclpy/node.py", "create_subscription", True),
        ("/opt/ros/kilted/lib/python3.12/site-packages/rclpy/context.py", "shutdown", True),
        ("/opt/ros/kilted/lib/python3.12/site-packages/rclpy/executors.py", "_wait_for_ready_callbacks", False),
        ("/opt/ros/kilted/drone_bridge/net/tcp.py", "destroy", False),
    ],
)
def test_a_lock_up_is_recognized_by_the_innermost_frame(path, function, is_one):
    assert entry.is_lock_up(DUMP.format(path=path, function=function)) is is_one


def test_a_failure_without_a_dump_is_no_lock_up():
    assert not entry.is_lock_up("rclpy/node.py:2071: in destroy_node\nE  AssertionError: destroy")


@pytest.mark.parametrize("is_all", [True, False])
def test_every_file_with_tests_is_in_one_entry(is_all):
    files = entries.test_files(is_all=is_all)
    found = entries.entries(files)
    assert sorted(path for part in found.values() for path in part) == files


def test_a_browser_counts_as_two(capsys):
    entries.main([])
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    for _, processors, _, *files in lines:
        assert processors == ("2" if any(entries.needs_browser(Path(file)) for file in files) else "1")


def test_a_file_is_left_out_if_it_is_exhaustive_as_a_whole():
    left_out = set(entries.test_files(is_all=True)) - set(entries.test_files(is_all=False))
    assert TESTS / "package" / "test_course.py" in left_out
    assert all("\n@pytest.mark.exhaustive" not in path.read_text() for path in left_out)


def test_the_counts_are_those_of_the_results(tmp_path):
    result = tmp_path / "entry.xunit.xml"
    result.write_text('<testsuites><testsuite tests="9" failures="1" errors="2" skipped="3"/></testsuites>')
    assert run.counts_in(result, has_passed=False) == run.Counts(passed=3, failed=3, skipped=3)
    assert run.counts_in(tmp_path / "none.xml", has_passed=False) == run.Counts(failed=1)
