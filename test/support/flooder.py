# SPDX-License-Identifier: Apache-2.0
"""Floods a TCP server with the same bytes on several connections, from a process of its own."""

import contextlib
import sys
from pathlib import Path

from processes import Process

ATTACKER = Path(__file__).resolve().parents[2] / "benchmark" / "attacker.py"


@contextlib.contextmanager
def flooding(port, message, *, is_reading):
    """Have a server flooded."""
    mode = "reads" if is_reading else "reads-not"
    with Process(sys.executable, str(ATTACKER), str(port), mode, message.hex()) as attacker:
        attacker.wait_for_line("at it")
        yield
