# SPDX-License-Identifier: Apache-2.0
"""How long tests wait for what has to happen, and waiting for what has no event."""

import threading

TIMEOUT_S = 60.0  # for whatever has to happen, on a machine that is slow and busy


def wait_until(condition, what, timeout_s=TIMEOUT_S, period_s=0.01):
    """Wait for what has no event to wait for, and return what the condition returns when it is met."""
    pause = threading.Event()
    for _ in range(int(timeout_s / period_s)):
        if met := condition():
            return met
        pause.wait(period_s)
    raise AssertionError(f"waited {timeout_s} s for {what}")
