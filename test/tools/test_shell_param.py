# SPDX-License-Identifier: Apache-2.0
"""`drone-bridge param`, with a node that answers in the same process."""

from types import SimpleNamespace

import pytest
from rclpy.exceptions import ParameterNotDeclaredException

from drone_bridge.tools.shell import param
from drone_bridge.tools.shell.node import CommandFailedError


@pytest.mark.parametrize(
    ("reason", "error"),
    [
        (
            str(ParameterNotDeclaredException([])),
            "^/robot_bridge has no parameter fence, did you mean 'limits.fence'[?]$",
        ),
        ("it is too small", "^/robot_bridge refused: it is too small$"),
    ],
)
def test_a_refused_parameter_is_named(monkeypatch, reason, error):
    result = SimpleNamespace(successful=False, reason=reason)
    there = SimpleNamespace(names=["fences", "limits.fence"])
    monkeypatch.setattr(param, "_ask", lambda *_: SimpleNamespace(values=[], results=[result], result=there))
    words = SimpleNamespace(node="/robot_bridge", parameter="fence", value="1.5")
    with pytest.raises(CommandFailedError, match=error):
        param._set(None, words)
