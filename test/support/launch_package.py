# SPDX-License-Identifier: Apache-2.0
"""Packages for launch files to start something of, made as an installation would."""

import shutil
import sys

from repository import TESTS

LAUNCH_FILES = TESTS / "launch" / "launch_files"
SHOW = """#!/bin/sh
printf "<%s>" "$@"
echo
"""
# Says with which arguments it was started, and stays until it is asked to end, as a window would.
WINDOW = f"""#!{sys.executable}
import signal, sys
ENDS = (signal.SIGINT, signal.SIGTERM)
signal.pthread_sigmask(signal.SIG_BLOCK, ENDS)
print("opened with", *sys.argv[1:], flush=True)
signal.sigwait(ENDS)
"""


def add_package(prefix, package, executable, text):
    """Add a package with one executable of this text to a prefix, and return its share folder."""
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
    """Make the package `launch_test` with the executable `show` below `prefix`, and return that."""
    share = add_package(prefix, "launch_test", "show", SHOW)
    shutil.copy(LAUNCH_FILES / "included" / "inner.launch.xml", share / "included.launch.xml")
    return prefix


def make_rviz2(prefix):
    """Make a stand-in for rviz2 below `prefix`, and return that."""
    add_package(prefix, "rviz2", "rviz2", WINDOW)
    return prefix
