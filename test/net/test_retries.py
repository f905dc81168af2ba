# SPDX-License-Identifier: Apache-2.0
"""Lines that a program prints while it retries."""

import pytest

from drone_bridge.net.connector import LinkError
from drone_bridge.programs import program


@pytest.fixture
def retry(monkeypatch, capsys):
    """Return a function: retry(seconds, reason) fails each second, and returns the printed lines."""
    now_s = [1000.0]
    monkeypatch.setattr(program.time, "monotonic", lambda: now_s[0])
    retries = program.Retries()

    def run(seconds, reason="Connection refused"):
        for _ in range(seconds):
            retries(LinkError(f"10.0.0.1:1 can't be reached: {reason}."), 1.0)
            now_s[0] += 1.0
        return capsys.readouterr().out.splitlines()

    run.clock = now_s
    return run


def test_a_lasting_failure_is_printed_at_its_start_and_with_advice(retry):
    begin, advice = retry(60)
    assert "--host" not in begin
    assert "--host" in advice


def test_another_failure_or_one_after_a_connection_is_printed_again(retry):
    assert len(retry(3)) == 1
    assert len(retry(3, "No route to host")) == 1
    retry.clock[0] += 60.0
    assert len(retry(3, "No route to host")) == 1
