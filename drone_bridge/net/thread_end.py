# SPDX-License-Identifier: Apache-2.0
"""ends_within: waits for a thread that may hang, on a machine that may stand still."""

import threading

#: How long a link's thread may take to leave its vehicle and to end.
STOP_TIMEOUT_S = 2.0
#: While the whole process is held up, only one of so many shares of the time goes by.
_SHARES = 20


def ends_within(thread: threading.Thread, timeout_s: float) -> bool:
    """Wait for the end of a thread, of which the process has to run for so long; return whether it came."""
    for _ in range(_SHARES):
        if thread.is_alive():
            thread.join(timeout_s / _SHARES)
    return not thread.is_alive()
