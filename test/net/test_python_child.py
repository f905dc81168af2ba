# SPDX-License-Identifier: Apache-2.0
"""Child processes in a folder with a user's files that have names of Python's own modules."""

import os
import re
import subprocess

import pytest
from repository import ROOT

from drone_bridge.net.python_child import code_command, module_command

CODE = "import random, sys; print(sys.argv[1:], __name__)"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "random.py").write_text("raise SystemExit('a student was here')")
    (tmp_path / "runpy.py").write_text("raise SystemExit('a student was here')")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "own.py").write_text(CODE)
    return tmp_path


@pytest.mark.parametrize("command", [code_command(CODE, "a", "-b"), module_command("own", "a", "-b")])
def test_no_module_is_imported_from_the_working_folder(folder, command):
    environment = {**os.environ, "PYTHONPATH": str(folder / "elsewhere")}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "['a', '-b'] __main__\n", done.stderr


def test_all_children_are_started_so():
    started = re.compile(r"sys\.executable,\s+\"-[mc]\"")
    package = ROOT / "drone_bridge"
    found = {str(path.relative_to(package)) for path in package.rglob("*.py") if started.search(path.read_text())}
    # check starts its child in the folder of its tests
    assert found == {"tools/check/command.py", "net/python_child.py"}
