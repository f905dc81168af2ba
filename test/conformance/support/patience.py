# SPDX-License-Identifier: Apache-2.0
"""Timeouts of tests, and polling of conditions without an event."""

import threading

TIMEOUT_S = 60.0  # for any expected event, on a slow and busy machine


def wait_until(condition, what, timeout_s=TIMEOUT_S, period_s=0.01):
    """Poll a condition without an event, and return its result when it is met."""
    pause = threading.Event()
    for _ in range(int(timeout_s / period_s)):
        if met := condition():
            return met
        pause.wait(period_s)
    raise AssertionError(f"waited {timeout_s} s for {what}")
