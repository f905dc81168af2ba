# SPDX-License-Identifier: Apache-2.0
"""`drone-bridge check` without its tests: their selection, and faults of a description that are found before."""

import signal
from types import SimpleNamespace

import pytest

from drone_bridge.tools.check import command


@pytest.fixture
def started(monkeypatch):
    """Return the commands that are started, which end with status 3."""
    started = []

    def start(words, **options):
        started.append(words)
        return SimpleNamespace(wait=lambda: 3)

    monkeypatch.setattr(command, "subprocess", SimpleNamespace(Popen=start))
    return started


@pytest.mark.parametrize(
    ("words", "selected"),
    [
        ([], ["--protocol=testbed", "-m", "not exhaustive"]),
        (["-k", "hold", "-m", ""], ["--protocol=testbed", "-m", "", "-k", "hold"]),
    ],
)
def test_the_tests_of_a_protocol_are_run(started, words, selected):
    assert command.main(["testbed", *words]) == 3
    assert started[0][-len(selected) :] == selected


def test_a_description_with_faults_is_not_tested(started, monkeypatch, capsys):
    monkeypatch.setattr(command, "load", lambda faults: lambda: iter(["testbed: name is missing."]))
    monkeypatch.setitem(command.kinds(), "testbed", SimpleNamespace(faults="module:faults"))
    assert command.main(["testbed"]) == 1
    assert capsys.readouterr().out.startswith("FAILED testbed: name is missing.\n")
    assert started == []


def test_a_description_that_computes_without_end_is_interrupted(monkeypatch):
    def endless():
        try:
            while True:
                pass
        except TimeoutError as error:
            return [str(error)]

    monkeypatch.setattr(command, "load", lambda faults: endless)
    monkeypatch.setattr(command, "FAULTS_S", 0.01)
    before = signal.getsignal(signal.SIGPROF)
    (sentence,) = command._faults(SimpleNamespace(faults="module:endless"))
    assert "has not returned after 0.01 s" in sentence
    assert signal.getsignal(signal.SIGPROF) == before
    assert command._faults(SimpleNamespace(faults="")) == []


def test_the_search_for_faults_has_two_limits_which_end_with_it(monkeypatch):
    timers = signal.ITIMER_PROF, signal.ITIMER_REAL
    monkeypatch.setattr(command, "load", lambda faults: lambda: [signal.getitimer(each)[0] for each in timers])
    computing_s, waiting_s = command._faults(SimpleNamespace(faults="module:faults"))
    assert 0.0 < computing_s <= command.FAULTS_S + 1.0 < waiting_s <= command.WAITS_S + 1.0
    assert [signal.getitimer(each)[0] for each in timers] == [0.0, 0.0]
