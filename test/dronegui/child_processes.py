# SPDX-License-Identifier: Apache-2.0
"""Child processes of a program under test."""

from pathlib import Path


def is_running(pid):
    """Return whether a process is running or a zombie."""
    return _stat(pid)[0] not in ("", "Z")


def children_of(pid, word):
    """Return the process ids of a process's children with a word in their command line."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        state, parent = _stat(path.name)
        if parent == str(pid) and state != "Z" and word in (path / "cmdline").read_text():
            found.append(int(path.name))
    return found


def _stat(pid):
    """Return the state and the parent of a process, empty if it does not exist."""
    try:
        state, parent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:2]
    except OSError:
        return "", ""
    return state, parent
