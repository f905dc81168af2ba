# SPDX-License-Identifier: Apache-2.0
"""Conformance tests of the robots in examples/ that are described in one class."""

import os
import subprocess
import sys

import place
import pytest
from own_robots import FOLDERS, installed
from processes import executable
from repository import TESTS

#: Timeout of the tests of one file.
CHECK_S = 280.0
FILES = sorted(path.stem for path in (TESTS / "conformance").glob("test_*.py"))


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    return installed(tmp_path_factory.mktemp("robots"), *FOLDERS.values())


@pytest.fixture
def check(start_child, environment):
    """check(*words) checks both robots at once, each with ROS domains and ports of its own."""
    elsewhere = ("env", "-u", place.VARIABLE, executable("drone-bridge"), "check")

    def check(*words):
        for each in [start_child(*elsewhere, name, *words, env=environment) for name in FOLDERS]:
            assert each.wait(CHECK_S) == 0, each.output
            assert each.count_lines(r"\d+ passed") == 1

    return check


def test_the_promises_of_every_kind_hold(check):
    check("-m", "not by_mechanism")


@pytest.mark.exhaustive
@pytest.mark.parametrize("file", FILES)
def test_the_conformance_suite_passes(check, file):
    check("-m", "", "-k", file)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", FOLDERS)
def test_the_example_s_own_tests_pass(environment, name):
    asked = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        f"--rootdir={FOLDERS[name]}",
        FOLDERS[name],
    ]
    subprocess.run(
        [*asked, FOLDERS[name]], check=True, timeout=CHECK_S, env={**os.environ, **environment, "PYTEST_ADDOPTS": ""}
    )
