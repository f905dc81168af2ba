# SPDX-License-Identifier: Apache-2.0
"""The options of `drone-bridge view`, and the end of one that the page has started."""

import subprocess
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from drone_bridge.tools.view.command import main
from drone_bridge.tools.web.bag_list import Recordings


@pytest.mark.parametrize(
    ("port", "reason"), [("70000", "must be at most 65535, not 70000"), ("-1", "must not be below 0, not -1")]
)
def test_an_impossible_port_is_refused_with_the_reason(port, reason, capsys):
    with pytest.raises(SystemExit):
        main(["--port", port])
    assert capsys.readouterr().err.endswith(f"error: argument --port: {reason}\n")


def test_a_viewer_that_does_not_end_is_killed():
    child = Mock()
    child.wait.side_effect = [subprocess.TimeoutExpired("view", 1.0), 0]
    Recordings._stop(SimpleNamespace(_child=child))
    child.kill.assert_called_once_with()
