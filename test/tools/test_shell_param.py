# SPDX-License-Identifier: Apache-2.0
"""`drone-bridge param`, with a node that answers in the same process."""

from types import SimpleNamespace

import pytest
from rclpy.exceptions import ParameterNotDeclaredException
from rclpy.parameter import Parameter, parameter_value_to_python

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


@pytest.mark.parametrize(
    ("before", "text", "value"), [(1.5, "3", 3.0), ([0.5], "[1, 2.5]", [1.0, 2.5]), (1.5, "fast", "fast"), (2, "3", 3)]
)
def test_a_parameter_is_set_with_its_type(monkeypatch, before, text, value):
    asked, result = [], SimpleNamespace(successful=True)
    present = Parameter("speed", value=before).to_parameter_msg().value

    def ask(node, kind, service, request):
        asked.append((service, request))
        return SimpleNamespace(values=[present], results=[result])

    monkeypatch.setattr(param, "_ask", ask)
    assert param._set(None, SimpleNamespace(node="/robot_bridge", parameter="speed", value=text)) == 0
    service, request = asked[-1]
    assert (service, [each.name for each in request.parameters]) == ("/robot_bridge/set_parameters", ["speed"])
    assert repr(parameter_value_to_python(request.parameters[0].value)) == repr(value)
