# SPDX-License-Identifier: Apache-2.0
"""The reference pages say what the nodes declare."""

import runpy
import subprocess
import sys

import pytest
from repository import ROOT

SCRIPT = ROOT / "docs" / "make_reference.py"


pytest.importorskip("foxglove", reason="web_bridge needs foxglove-sdk, for which rosdep has no key")


def test_the_reference_is_up_to_date():
    done = subprocess.run([sys.executable, SCRIPT, "--check"], check=False, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout.strip()) == (0, ""), f"'make reference' writes them anew. {done.stderr}"


def test_the_picture_is_up_to_date():
    drawn = runpy.run_path(str(SCRIPT.with_name("make_picture.py")))
    assert drawn["PICTURE"].read_text() == drawn["picture"](), "'make reference' draws it anew."
