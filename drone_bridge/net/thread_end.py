# SPDX-License-Identifier: Apache-2.0
"""ends_within: join with a timeout, for a thread that may hang in a process that may be suspended."""

import threading

#: How long a link's thread may take to command neutral and to end.
STOP_TIMEOUT_S = 2.0
#: Number of slices of the timeout. A suspension of the process uses up one slice at most.
_SHARES = 20


def ends_within(thread: threading.Thread, timeout_s: float) -> bool:
    """Join a thread, not counting time the process was suspended. Return True if it finished."""
    for _ in range(_SHARES):
        if thread.is_alive():
            thread.join(timeout_s / _SHARES)
    return not thread.is_alive()
