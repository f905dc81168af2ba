# SPDX-License-Identifier: Apache-2.0
"""PathTrace: functions of the package on a value's path, in one turn of a link's loop."""

import socket
import threading
from pathlib import Path

import drone_bridge

PACKAGE = Path(drone_bridge.__file__).parent
TURN = "net/link_loop:turn"


class PathTrace:
    """Follows the threads that are started while it is entered.

    A function hands a value on if it is on the stack, above the turn of the loop, where the value arrives or reaches a
    function of `via` on its path. Functions that these call in between are helpers. Functions are identified by their
    code, each with a readable name.
    """

    def __init__(self, arrives, via=(), beside=()):
        """`arrives(frame, event, arg)` returns whether a value arrives; `via` are names of functions on every path.

        What functions of `beside` and those below them do is another matter, though it is done in the same turn.
        """
        self._arrives, self._via, self._beside = arrives, frozenset(via), frozenset(beside)
        self._turn = threading.local()
        self._names = {}  # by code; None for code of other packages
        #: Counts of each arrival: functions that have run in that turn of the loop, and those that handed the value on.
        self.arrivals = []

    def __enter__(self):
        threading.setprofile(self._note)
        return self

    def __exit__(self, *_):
        threading.setprofile(None)

    def _note(self, frame, event, arg):
        turn = self._turn.__dict__
        name = self._name(frame.f_code) if event == "call" else None
        if name == TURN:
            turn.update(run={}, handing_on={}, reached=set(), beside=None)
        elif not turn:
            return
        if turn["beside"] or name in self._beside:
            is_left = event == "return" and turn["beside"] is frame
            turn["beside"] = None if is_left else turn["beside"] or frame
            return
        if name:
            turn["run"][frame.f_code] = name
            if name in self._via:
                turn["handing_on"] |= self._stack(frame)
                turn["reached"].add(name)
        if turn["reached"] == self._via and self._arrives(frame, event, arg):
            self.arrivals.append((turn["run"].copy(), turn["handing_on"] | self._stack(frame)))

    def _name(self, code):
        if code not in self._names:
            path = Path(code.co_filename)
            is_own = PACKAGE in path.parents
            self._names[code] = f"{path.relative_to(PACKAGE).with_suffix('')}:{code.co_name}" if is_own else None
        return self._names[code]

    def _stack(self, frame):
        stack = {}
        while frame and (name := self._name(frame.f_code)) != TURN:
            if name:
                stack[frame.f_code] = name
            frame = frame.f_back
        return stack


def is_sent(frame, event, arg):
    """Return whether bytes are passed to a socket."""
    return event == "c_call" and isinstance(getattr(arg, "__self__", None), socket.socket) and "send" in arg.__name__


def is_published(topic):
    """Return a predicate for the publication of a message on a topic."""

    def tell(frame, event, arg):
        return event == "call" and frame.f_code.co_name == "publish" and topic_of(frame) == topic

    def topic_of(frame):
        return getattr(frame.f_locals.get("self"), "topic_name", "").removeprefix("/")

    return tell
