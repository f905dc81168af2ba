# SPDX-License-Identifier: Apache-2.0
"""Packages with executables for launch files, laid out like an installation."""

import shutil
import sys

from repository import TESTS

LAUNCH_FILES = TESTS / "launch" / "launch_files"
SHOW = """#!/bin/sh
printf "<%s>" "$@"
echo
"""
# Prints its arguments, and runs until it is terminated, like a window.
WINDOW = f"""#!{sys.executable}
import signal, sys
ENDS = (signal.SIGINT, signal.SIGTERM)
signal.pthread_sigmask(signal.SIG_BLOCK, ENDS)
print("opened with", *sys.argv[1:], flush=True)
signal.sigwait(ENDS)
"""


def add_package(prefix, package, executable, text):
    """Add a package with one executable to a prefix. Return its share folder."""
    share, libexec = prefix / "share" / package, prefix / "lib" / package
    index = prefix / "share" / "ament_index" / "resource_index" / "packages"
    for folder in (share, libexec, index):
        folder.mkdir(parents=True, exist_ok=True)
    (index / package).touch()
    program = libexec / executable
    program.write_text(text)
    program.chmod(0o755)
    return share


def make_package(prefix):
    """Create the package `launch_test` with the executable `show` below `prefix`. Return `prefix`."""
    share = add_package(prefix, "launch_test", "show", SHOW)
    shutil.copy(LAUNCH_FILES / "included" / "inner.launch.xml", share / "included.launch.xml")
    return prefix


def make_rviz2(prefix):
    """Create a fake rviz2 below `prefix`. Return `prefix`."""
    add_package(prefix, "rviz2", "rviz2", WINDOW)
    return prefix
