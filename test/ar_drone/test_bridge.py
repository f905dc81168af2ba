# SPDX-License-Identifier: Apache-2.0
"""The service hover of an AR.Drone's bridge, without ROS."""

from types import SimpleNamespace

import pytest

from drone_bridge.ar_drone.bridge import ArDroneNode


@pytest.mark.parametrize(
    ("data", "is_stalled", "is_success", "is_held", "calls"),
    [
        (True, False, True, True, []),
        (True, True, True, True, []),  # a stop of any age
        (False, False, True, False, ["forget"]),
        (False, True, False, True, []),
    ],
)
def test_hover_is_held_at_once_and_released_only_by_a_recent_request(data, is_stalled, is_success, is_held, calls):
    called = []
    arbiter = SimpleNamespace(forget=lambda: called.append("forget"))
    node = SimpleNamespace(
        _is_hover_held=True,
        has_link=True,
        takes_commands=lambda: not is_stalled,
        _pilot=SimpleNamespace(arbiter=arbiter),
    )
    response = ArDroneNode._serve_hover(node, SimpleNamespace(data=data), SimpleNamespace(success=False))
    assert (response.success, node._is_hover_held, called) == (is_success, is_held, calls)
