# SPDX-License-Identifier: Apache-2.0
"""The reference pages say what the nodes declare, and each parameter has a use."""

import re
import runpy
import subprocess
import sys

import pytest
from repository import ROOT

OURS = ROOT / "test" / "package" / "test_reference.py"
SCRIPT = ROOT / "docs" / "make_reference.py"
#: Parameters that people read, and nobody sets.
READ = {"actual_port"}


pytest.importorskip("foxglove", reason="web_bridge needs foxglove-sdk, for which rosdep has no key")


def test_the_reference_is_up_to_date():
    done = subprocess.run([sys.executable, SCRIPT, "--check"], check=False, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout.strip()) == (0, ""), f"'make reference' writes them anew. {done.stderr}"


def test_the_picture_is_up_to_date():
    drawn = runpy.run_path(str(SCRIPT.with_name("make_picture.py")))
    assert drawn["PICTURE"].read_text() == drawn["picture"](), "'make reference' draws it anew."


def test_each_parameter_is_named_by_a_page_launch_file_configuration_or_test():
    """One that is named nowhere else should be a constant."""
    reference = "\n".join(path.read_text() for path in (ROOT / "docs" / "reference").glob("*.md"))
    declared = set(re.findall(r"^- `([a-z_0-9.]+)` \(`", reference, flags=re.MULTILINE))
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    others = (path for name in ("launch", "examples", "test") for path in (ROOT / name).rglob("*.*") if path != OURS)
    texts = [path.read_text() for path in (*pages, *others) if path.suffix in (".md", ".py", ".xml", ".yaml")]
    for path in (ROOT / "config").rglob("*.yaml"):  # lines that are commented out show the defaults
        texts.append(re.sub(r"^ *#.*$", "", path.read_text(), flags=re.MULTILINE))
    named = set(re.findall(r"[a-z_0-9.*]+", "\n".join(texts)))
    words = {name.rpartition(".")[2] for name in named}
    unnamed = {each for each in declared if each not in named and each.partition(".")[0] + ".*" not in named}
    assert declared
    assert {each for each in unnamed if each.rpartition(".")[2] not in words} == READ
