# SPDX-License-Identifier: Apache-2.0
"""Timeouts of tests, and polling of conditions without an event."""

import threading
import time

TIMEOUT_S = 60.0  # for any expected event, on a slow and busy machine


def wait_until(condition, what, timeout_s=TIMEOUT_S, period_s=0.01):
    """Poll a condition without an event, and return its result when it is met, at least once after the timeout."""
    pause, limit_at = threading.Event(), time.monotonic() + timeout_s
    while True:
        is_last = time.monotonic() >= limit_at  # before the condition: a stall must not cost the last look
        if met := condition():
            return met
        if is_last:
            break
        pause.wait(period_s)
    raise AssertionError(f"waited {timeout_s} s for {what}")
