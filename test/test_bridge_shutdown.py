# SPDX-License-Identifier: Apache-2.0
"""How every bridge waits for the thread of its link when it leaves."""

from types import SimpleNamespace

import pytest

from drone_bridge.ros.link_node import STOP_TIMEOUT_S, LinkThread


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
def test_a_link_gets_its_time_to_end_even_if_the_process_was_held_up(is_stuck):
    done, thread = [], Thread(is_stuck)
    cancellation = SimpleNamespace(cancel=lambda: done.append("cancelled"), close=lambda: done.append("forgotten"))
    endpoint = SimpleNamespace(close=lambda: done.append("closed"))
    link = LinkThread("a link", endpoint, cancellation, reports=None, prepare=None, converse=None)
    link._thread = thread
    assert link.stop(lambda: done.append("woken")) is not is_stuck
    assert done == ["cancelled", "woken", *([] if is_stuck else ["closed", "forgotten"])]
    assert sum(thread.waited_s) <= STOP_TIMEOUT_S + 1e-9
