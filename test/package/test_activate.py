# SPDX-License-Identifier: Apache-2.0
"""env/activate in a clone where it was built, and in one that was copied or renamed afterwards."""

import os
import shutil
import subprocess
import sys

import pytest
from repository import ROOT

ACTIVATE = ROOT / "env" / "activate"
SHELLS = [shell for shell in ("bash", "dash", "zsh") if shutil.which(shell)]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Clone with the files that env/activate needs, and a blank in its name."""
    clone = tmp_path_factory.mktemp("clones") / "first clone"
    (clone / "env").mkdir(parents=True)
    shutil.copy(ACTIVATE, clone / "env")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", clone / ".venv"], check=True, timeout=60)
    command = clone / ".venv" / "bin" / "drone-bridge"
    command.touch()
    command.chmod(0o755)
    return clone


def activate(clone, shell, before="", **environment):
    """Return standard output and error. In the output, `-` stands for a failure."""
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


@pytest.mark.skipif(sys.platform != "linux", reason="only there, sh finds the file, by its descriptor")
@pytest.mark.parametrize("shell", SHELLS)
def test_a_link_to_the_file_activates_from_another_folder(built, shell, tmp_path):
    """By sh, as cron, a Dockerfile and a Makefile run it."""
    (tmp_path / "link").symlink_to(built / "env/activate")
    script = '. ./link && echo "$VIRTUAL_ENV"'
    done = subprocess.run([shell, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == str(built / ".venv")


@pytest.mark.parametrize("shell", SHELLS)
def test_a_python_that_is_not_for_this_user_is_said_to_be(built, shell, tmp_path):
    """As in root's home. To root, only files without this permission are forbidden."""
    clone, barred = tmp_path / "clone", tmp_path / "python3"
    shutil.copytree(built, clone, symlinks=True)
    barred.touch(0o600)
    (clone / ".venv/bin/python3").unlink()
    (clone / ".venv/bin/python3").symlink_to(barred)
    output, error = activate(clone, shell)
    assert output == "- -"
    assert f"no permission for {barred}" in error


@pytest.mark.parametrize("shell", SHELLS)
def test_a_cd_that_prints_has_no_effect(built, shell):
    """With CDPATH, or if the user has redefined cd."""
    assert activate(built, shell, CDPATH=f".:{built.parent}") == (str(built / ".venv"), "")
    talkative = 'cd() { command cd "$@" && ls; }; '
    assert activate(built, shell, talkative) == (str(built / ".venv"), "")


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("is_original_there", [True, False], ids=["copied", "renamed"])
def test_a_copied_or_renamed_clone_advises_make_setup(built, shell, is_original_there, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(built, copy, symlinks=True)
    if not is_original_there:
        script = copy / ".venv" / "bin" / "activate"
        script.write_text(script.read_text().replace(str(built), str(built.with_name("gone"))))
    output, error = activate(copy, shell)
    assert output == "- -"
    assert f"moved to {copy}. " in error
    assert "make setup" in error


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("gone", ["bin/python3", f"lib/python3.{sys.version_info.minor}"], ids=["removed", "upgraded"])
def test_a_clone_without_its_python_advises_setup(built, shell, gone):
    path = built / ".venv" / gone
    aside = path.rename(path.with_name("aside"))
    try:
        output, error = activate(built, shell)
    finally:
        aside.rename(path)
    assert output == "- -"
    assert "make setup" in error


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("changed", ["srv", "setup.cfg"])
def test_sources_that_are_newer_than_the_build_advise_make_setup(built, shell, changed):
    """As after `git pull`: messages, and programs that were moved."""
    (built / changed).mkdir(exist_ok=True)
    stamp = built / ".venv" / "drone_bridge_msgs.stamp"
    stamp.touch()
    for age_s, error in ((60.0, f"run 'make setup' in {built}."), (-60.0, "")):
        os.utime(built / changed, (stamp.stat().st_mtime + age_s,) * 2)
        output, said = activate(built, shell)
        assert (output, said[-len(error) :] if error else said) == (str(built / ".venv"), error)


@pytest.mark.parametrize("shell", SHELLS)
def test_a_clone_that_is_not_built_advises_make_setup(built, shell, tmp_path):
    shutil.copytree(built / "env", tmp_path / "env")
    output, error = activate(tmp_path, shell)
    assert output == "- -"
    assert f"not built in {tmp_path}:" in error
    assert "make setup" in error


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("distribution", ["kilted", "jazzy"])
def test_activate_names_the_ros_distribution_of_the_wheels(built, shell, distribution):
    """Another ROS that the shell has set up is not in use."""
    fast_dds_2 = built / ".venv" / "lib" / "libfastrtps.so"
    if distribution == "jazzy":
        fast_dds_2.touch()
    try:
        script = '. env/activate && echo "$ROS_DISTRO $ROS_VERSION"'
        bare = {"PATH": "/usr/bin:/bin", "ROS_DISTRO": "humble"}
        command = [shell, "-c", script]
        done = subprocess.run(command, cwd=built, env=bare, capture_output=True, text=True, check=True, timeout=60)
    finally:
        fast_dds_2.unlink(missing_ok=True)
    assert done.stdout.split() == [distribution, "2"]


def test_git_for_windows_changes_no_line_end(tmp_path):
    (tmp_path / "env").mkdir()
    files = {name: (ROOT / name).read_bytes() for name in (".gitattributes", "env/activate")}
    files["capture.bin"] = b"text\r\nof a\nlegacy robot\r\n"
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    git = ("git", "-C", str(tmp_path), "-c", "core.autocrlf=true", "-c", "core.safecrlf=false")
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    subprocess.run([*git, "add", "."], check=True)
    for name in files:
        (tmp_path / name).unlink()
    subprocess.run([*git, "checkout-index", "-qa"], check=True)
    assert {name: (tmp_path / name).read_bytes() for name in files} == files
