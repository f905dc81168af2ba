# SPDX-License-Identifier: Apache-2.0
"""Ctrl-Z at the terminal of a program that starts others: it holds their vehicles, and suspends nothing.

A suspended runner would leave the vehicles moving, without its supervision and without its page. The hold is a wish in
a file (`ros.hold.wish_file`), which ends with HELD_S, so that no bridge that is restarted after a resume holds again.
"""

import os
import signal
import threading
import time
import uuid
from collections.abc import Callable, Iterable

from drone_bridge.ros.hold.wish_file import EVERY_NODE, FiledWish, WishFile
from drone_bridge.ros.process.environment import domain_of

#: How long the wish is in its file, s. Bridges read it within a second.
HELD_S = 3.0
#: Command that ends the hold.
RESUME = "drone-bridge resume"
_REASON = "a person pressed Ctrl-Z"


def hold_briefly(nodes: Iterable[tuple[int, str]], say: Callable[[str], object], resume: str = RESUME) -> None:
    """Hold nodes, given by ROS domain and full name or EVERY_NODE, in a separate thread, as a disk may be slow.

    `say` is called there with a sentence about the outcome; `resume` is the command that it names.
    """
    wishes: dict[int, list[FiledWish]] = {}
    for domain, name in nodes:
        wishes.setdefault(domain, []).append(FiledWish(name, uuid.uuid4().hex, _REASON))
    files = {WishFile(domain): filed for domain, filed in wishes.items()}

    def hold() -> None:
        outcome = f", and holds the vehicles: `{resume}` lets them go on" if files else ""
        try:
            for file, filed in files.items():
                file.write(filed)
        except OSError as error:
            outcome = f", and can't hold the vehicles ({error})"
        say(f"Ctrl-Z suspends nothing{outcome}; Ctrl-C ends everything.")
        time.sleep(HELD_S)
        for file in files:
            file.keep([])

    threading.Thread(target=hold, name="suspend key", daemon=True).start()


def block() -> None:
    """Block Ctrl-Z in this process, what it executes later, and its children."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTSTP])


def hold_all_at_each(say: Callable[[str], object], resume: str = RESUME) -> None:
    """Hold all vehicles of this process's ROS domain at each Ctrl-Z from now on, if it is blocked."""

    def wait() -> None:
        while True:
            signal.sigwait([signal.SIGTSTP])
            hold_briefly([(domain_of(os.environ), EVERY_NODE)], say, resume)

    if signal.SIGTSTP in signal.pthread_sigmask(signal.SIG_BLOCK, []):
        threading.Thread(target=wait, name="suspend key", daemon=True).start()
