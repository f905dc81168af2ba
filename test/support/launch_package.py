# SPDX-License-Identifier: Apache-2.0
"""A package for launch files to start something of: `launch_test` with the executable `show`."""

import shutil
from pathlib import Path

LAUNCH_FILES = Path(__file__).parent.parent / "launch_files"


def make_package(prefix):
    """Make the package below `prefix`, as an installation would."""
    share, libexec = prefix / "share" / "launch_test", prefix / "lib" / "launch_test"
    index = prefix / "share" / "ament_index" / "resource_index" / "packages"
    for folder in (share, libexec, index):
        folder.mkdir(parents=True)
    (index / "launch_test").touch()
    show = libexec / "show"
    show.write_text('#!/bin/sh\nprintf "<%s>" "$@"\necho\n')
    show.chmod(0o755)
    shutil.copy(LAUNCH_FILES / "included" / "inner.launch.xml", share / "included.launch.xml")
    return prefix
