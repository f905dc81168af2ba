# SPDX-License-Identifier: Apache-2.0
"""Single key presses on the terminal, where there is one."""

import contextlib
import os
import re
import select
import sys
import termios
import threading
import tty
from collections.abc import Callable, Iterator, Mapping

ARROW_LEFT = "\x1b[D"
ARROW_RIGHT = "\x1b[C"
#: A control sequence, or a character: what is pressed fast comes in one piece.
_KEY = re.compile(r"\x1b\[[0-9;]*[A-Za-z~]|.", re.DOTALL)


@contextlib.contextmanager
def keys(actions: Mapping[str, Callable[[], None]]) -> Iterator[bool]:
    """Run an action for each key that is pressed meanwhile; yields whether there is a keyboard."""
    try:
        descriptor = sys.stdin.fileno()
        before = termios.tcgetattr(descriptor)
    except (OSError, ValueError, termios.error):  # no standard input, or none that is a terminal
        yield False
        return
    if _is_in_background(descriptor):  # where reading would stop the process
        yield False
        return
    done, finish = os.pipe()

    def listen() -> None:
        while True:
            ready, _, _ = select.select([descriptor, done], [], [])
            if done in ready:
                return
            pressed = os.read(descriptor, 1024).decode(errors="ignore")
            if not pressed:  # the terminal has gone
                return
            for key in _KEY.findall(pressed):
                if action := actions.get(key):
                    action()

    listener = threading.Thread(target=listen, name="keyboard", daemon=True)
    tty.setcbreak(descriptor)
    listener.start()
    try:
        yield True
    finally:
        os.write(finish, b"\n")
        listener.join()
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
        os.close(done)
        os.close(finish)


def _is_in_background(descriptor: int) -> bool:
    try:
        return os.tcgetpgrp(descriptor) != os.getpgrp()
    except OSError:  # not this process's controlling terminal
        return False
