# SPDX-License-Identifier: Apache-2.0
"""What `make setup` prints of how far it is, and what makes it compile the messages again."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def environment():
    return runpy.run_path(str(ROOT / "env" / "make_environment.py"))


def test_packages_are_counted_as_pip_comes_to_them(environment):
    how_far, wanted = environment["packages_collected"], environment["requirements"]().count("==")
    assert how_far("Looking in links: /wheels\n") == f"0 of {wanted} packages fetched"
    assert how_far("\nCollecting a==1\n  Downloading a\nCollecting b==2\n") == f"2 of {wanted} packages fetched"
    assert how_far("\nCollecting a==1\nInstalling collected packages: a\n") == "unpacking"


def test_steps_of_a_build_are_counted_by_its_last_line(environment):
    how_far = environment["sources_compiled"]
    assert how_far("*** Configuring CMake...\n") == ""
    assert how_far("x\n  [1/150] Generating C\n  [12/150] Building C object [3/4]\n") == "12 of 150 steps"


def test_a_step_says_how_far_it_is_and_ends_with_its_output_if_it_fails(environment, capsys, monkeypatch):
    run = environment["run"]
    monkeypatch.setitem(run.__globals__, "PROGRESS_PERIOD_S", 0.05)
    words = iter(["1 of 2", "1 of 2", "2 of 2"])
    run(["sh", "-c", "sleep 1"], "advice", how_far=lambda log: next(words, "2 of 2"))
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(",")[0] for line in lines] == ["setup:   1 of 2", "setup:   2 of 2"]
    with pytest.raises(environment["StepError"], match=r"no index\n'.*' failed with status 1.\nTry again."):
        run(["sh", "-c", "echo no index; exit 1"], "Try again.")


def test_messages_are_compiled_anew_only_for_what_they_are_made_of(environment):
    compiled = environment["compiled_of"](ROOT / "CMakeLists.txt")
    assert "UNITY_BUILD" in compiled
    assert "install(" not in compiled
