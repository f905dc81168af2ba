# SPDX-License-Identifier: Apache-2.0
"""Commands of child processes that run Python without the working folder on its path, and memory shared with them.

Python would import a user's `random.py` from there. Its option -P exists since 3.11, and -I ignores PYTHONPATH.
"""

import os
import sys

_WITHOUT_FOLDER = "import sys; sys.path[:] = filter(None, sys.path)\n"
_RUN_MODULE = "del sys.argv[0]; import runpy; runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)"


def code_command(code: str, *arguments: str) -> list[str]:
    """Return the command that runs code, as `python -c` does."""
    return [sys.executable, "-c", _WITHOUT_FOLDER + code, *arguments]


def module_command(module: str, *arguments: str) -> list[str]:
    """Return the command that runs a module, as `python -m` does."""
    return code_command(_RUN_MODULE, module, *arguments)


def memory_file(name: str, size: int) -> int:
    """Return the descriptor of a file in memory, which no file system has. The name is for people."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create(name)
    else:  # macOS only, untried
        from tempfile import TemporaryFile

        with TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.ftruncate(descriptor, size)
    return descriptor
