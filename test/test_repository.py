# SPDX-License-Identifier: Apache-2.0
"""The repository as git has it."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def test_no_file_of_the_repository_is_larger_than_a_megabyte():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split(
        "\n"
    )
    large = [name for name in listed if (ROOT / name).is_file() and (ROOT / name).stat().st_size > 1_000_000]
    assert large == []
