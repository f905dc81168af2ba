# SPDX-License-Identifier: Apache-2.0
"""The options of `drone-bridge view`."""

import pytest

from drone_bridge.tools.view.command import main


@pytest.mark.parametrize(
    ("port", "reason"), [("70000", "must be at most 65535, not 70000"), ("-1", "must not be below 0, not -1")]
)
def test_an_impossible_port_is_refused_with_the_reason(port, reason, capsys):
    with pytest.raises(SystemExit):
        main(["--port", port])
    assert capsys.readouterr().err.endswith(f"error: argument --port: {reason}\n")
