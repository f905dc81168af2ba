# SPDX-License-Identifier: Apache-2.0
"""The labs: each start runs and fails its test, and each solution passes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

LABS = Path(__file__).parent.parent / "docs" / "labs"
FOLDERS = sorted(path.parent for path in LABS.glob("*/test_lab.py"))
each_lab = pytest.mark.parametrize("lab", FOLDERS, ids=lambda folder: folder.name)


def run(*words, folder, **variables):
    return subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **variables},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def outcome_of(lab, part):
    plugins = [word for name in ("cacheprovider", "hypothesispytest") for word in ("-p", f"no:{name}")]
    return run("-m", "pytest", "-q", *plugins, "test_lab.py", folder=lab, LAB=part)


@each_lab
def test_a_start_runs_and_fails_and_a_solution_passes(lab):
    if lab.name != "old_program":  # which is a node, and runs in its test
        ran = run("start.py", folder=lab)
        assert (ran.returncode, ran.stderr) == (0, "")
        assert ran.stdout
    failed, passed = outcome_of(lab, "start"), outcome_of(lab, "solution")
    assert failed.returncode == pytest.ExitCode.TESTS_FAILED, failed.stdout
    assert " error" not in failed.stdout.splitlines()[-1]
    assert passed.returncode == pytest.ExitCode.OK, passed.stdout
    assert " passed" in passed.stdout.splitlines()[-1]
    assert (lab / "README.md").is_file()


def test_there_are_four():
    table = (LABS / "README.md").read_text()
    names = [folder.name for folder in FOLDERS]
    assert len(names) == 4
    assert all(f"({name}/README.md)" in table for name in names)
