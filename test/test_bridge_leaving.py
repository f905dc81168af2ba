# SPDX-License-Identifier: Apache-2.0
"""How every bridge waits for the thread of its link when it leaves."""

import threading
from types import SimpleNamespace

import pytest

from drone_bridge.bridges.node import STOP_TIMEOUT_S, BridgeNode


class Thread:
    """Ends soon after the process goes on, which was held up while the thread was waited for the first time."""

    def __init__(self, is_stuck=False):
        self.waited_s = []
        self._is_stuck = is_stuck

    def join(self, timeout_s):
        self.waited_s.append(timeout_s)

    def is_alive(self):
        return self._is_stuck or len(self.waited_s) < 2


@pytest.mark.parametrize("is_stuck", [False, True])
def test_a_link_gets_its_time_to_end_although_the_process_was_held_up(is_stuck):
    done, errors, thread = [], [], Thread(is_stuck)
    node = SimpleNamespace(
        _leaving=threading.Lock(),
        _thread=thread,
        _cancellation=SimpleNamespace(cancel=lambda: done.append("cancelled"), close=lambda: done.append("forgotten")),
        _endpoint=SimpleNamespace(close=lambda: done.append("closed")),
        stop_waiting=lambda: None,
        get_logger=lambda: SimpleNamespace(error=errors.append),
    )
    BridgeNode.leave(node)
    assert done == (["cancelled"] if is_stuck else ["cancelled", "closed", "forgotten"])
    assert len(errors) == is_stuck
    assert sum(thread.waited_s) <= STOP_TIMEOUT_S + 1e-9
