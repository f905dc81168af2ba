# SPDX-License-Identifier: Apache-2.0
"""env/activate in a clone that was built there, and in one that was copied or renamed since."""

import shutil
import subprocess
import sys

import pytest
from repository import ROOT

ACTIVATE = ROOT / "env" / "activate"
SHELLS = [shell for shell in ("bash", "dash", "zsh") if shutil.which(shell)]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A clone as far as env/activate looks at it, with a blank in its name."""
    clone = tmp_path_factory.mktemp("clones") / "first clone"
    (clone / "env").mkdir(parents=True)
    shutil.copy(ACTIVATE, clone / "env")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", clone / ".venv"], check=True, timeout=60)
    command = clone / ".venv" / "bin" / "drone-bridge"
    command.touch()
    command.chmod(0o755)
    return clone


def activate(clone, shell, before="", **environment):
    """Return what is printed, and on stderr. `-` stands for what has failed."""
    script = before + '. env/activate && echo "$VIRTUAL_ENV" || echo "- ${VIRTUAL_ENV:--}"'
    bare = {"PATH": "/usr/bin:/bin", **environment}
    done = subprocess.run(
        [shell, "-c", script], cwd=clone, env=bare, capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.strip(), done.stderr.strip()


@pytest.mark.parametrize("shell", SHELLS)
def test_a_clone_is_activated_where_it_was_built_and_by_a_link(built, shell, tmp_path):
    assert activate(built, shell) == (str(built / ".venv"), "")
    link = tmp_path / "link"
    link.symlink_to(built)
    assert activate(link, shell) == (str(built / ".venv"), "")


@pytest.mark.parametrize("shell", SHELLS)
def test_a_cd_that_prints_does_not_disturb(built, shell):
    """With CDPATH, or as a function of the user's."""
    assert activate(built, shell, CDPATH=f".:{built.parent}") == (str(built / ".venv"), "")
    talkative = 'cd() { command cd "$@" && ls; }; '
    assert activate(built, shell, talkative) == (str(built / ".venv"), "")


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("is_original_there", [True, False], ids=["copied", "renamed"])
def test_a_clone_that_was_copied_or_renamed_says_what_mends_it(built, shell, is_original_there, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(built, copy, symlinks=True)
    if not is_original_there:
        script = copy / ".venv" / "bin" / "activate"
        script.write_text(script.read_text().replace(str(built), str(built.with_name("gone"))))
    said = f"drone_bridge was built elsewhere, and copied or moved to {copy}: run 'make setup' there, which builds it"
    assert activate(copy, shell) == ("- -", f"{said} anew.")


@pytest.mark.parametrize("shell", SHELLS)
def test_a_clone_that_is_not_built_says_so(built, shell, tmp_path):
    shutil.copytree(built / "env", tmp_path / "env")
    assert activate(tmp_path, shell) == (
        "- -",
        f"drone_bridge is not built in {tmp_path}: run 'make setup' there first.",
    )
