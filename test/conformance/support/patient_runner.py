# SPDX-License-Identifier: Apache-2.0
"""`drone-bridge` with longer timeouts before it kills a process or leaves its output: patient_runner.py launch FILE.

Processes that are merely slow on a busy machine are not killed.
"""

import sys

from drone_bridge.tools.cli import main
from drone_bridge.tools.launch import processes

WAIT_S = 45.0  # for a process to end

if __name__ == "__main__":
    limits = dict.fromkeys(("_IN_TURN", "_AFTER_SIGINT", "_AFTER_SIGTERM", "_DRIVERS_LIMIT", "_TAIL"), WAIT_S)
    assert limits.keys() <= vars(processes).keys()
    vars(processes).update(limits)
    sys.exit(main())
