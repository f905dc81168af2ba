# SPDX-License-Identifier: Apache-2.0
"""`drone-bridge new`: the generated package is installed, tested and driven unchanged."""

import importlib
import os
import subprocess
import sys
import zipfile

import pytest
from own_robots import installed
from processes import executable
from repository import ROOT

from drone_bridge.tools.new import command as new

NAME = "my_robot"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return made(tmp_path_factory.mktemp("new"))


def made(folder, *options, name=NAME):
    assert new.main([name, "--folder", str(folder / name), *options]) == 0
    return folder / name


@pytest.fixture(scope="module")
def environment(folder, tmp_path_factory):
    return installed(tmp_path_factory.mktemp("installed"), folder)


def test_the_generated_tests_pass_also_in_a_clone_of_the_package(folder, environment):
    (folder.parent / "pyproject.toml").symlink_to(ROOT / "pyproject.toml")
    asked = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", folder]
    variables = {**os.environ, **environment, "PYTEST_ADDOPTS": ""}
    subprocess.run(asked, check=True, timeout=280, env=variables, cwd=folder.parent)


def test_the_package_is_built_by_its_own_backend_without_a_download(folder, tmp_path, monkeypatch):
    """As pip does with an isolated environment, in which nothing is installed."""
    monkeypatch.syspath_prepend(folder)
    assert "requires = []" in (folder / "pyproject.toml").read_text()
    backend = importlib.import_module(f"build_{NAME}")
    for build, file in ((backend.build_wheel, f"{NAME}.py"), (backend.build_editable, f"{NAME}_robot.pth")):
        with zipfile.ZipFile(tmp_path / build(tmp_path)) as wheel:
            assert file in wheel.namelist()
            points = wheel.read(f"{NAME}_robot-0.1.dist-info/entry_points.txt").decode()
        assert points == f"[drone_bridge.protocols]\n{NAME} = {NAME}:MyRobot\n"


@pytest.mark.parametrize(("name", "options"), [("text_robot", []), ("serial_robot", ["--serial"])])
def test_its_own_tests_hold_for_each_link(tmp_path, monkeypatch, name, options):
    monkeypatch.syspath_prepend(made(tmp_path, *options, name=name))
    tests = [each for word, each in vars(importlib.import_module(f"test_{name}")).items() if word.startswith("test_")]
    assert [test() for test in tests] == [None] * 3


@pytest.mark.exhaustive
def test_it_is_checked_although_the_current_folder_has_that_name(start_child, environment, tmp_path):
    (tmp_path / f"{NAME}.py").write_text("raise ImportError('not installed')")
    check = ("env", "-C", tmp_path, executable("drone-bridge"), "check", NAME)
    asked = start_child(*check, "-k", "test_messages or test_topics", env=environment)
    assert asked.wait(280) == 0, asked.output


@pytest.mark.parametrize("name", ["My Robot", "7up", "_robot", "robot", "json", "röbot", "class", "body_velocity"])
def test_an_invalid_name_is_refused(tmp_path, name, capsys):
    assert new.main([name, "--folder", str(tmp_path / "new")]) == new.REFUSED
    assert name in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_a_robot_of_the_package_may_be_replaced(tmp_path):
    assert new.main(["tello", "--folder", str(tmp_path / "new")]) == 0


def test_nothing_is_overwritten(tmp_path, capsys):
    assert new.main(["fresh_robot", "--folder", str(tmp_path)]) == new.REFUSED
    assert str(tmp_path) in capsys.readouterr().err
