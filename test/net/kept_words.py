# SPDX-License-Identifier: Apache-2.0
"""Last words that are kept in memory, and the Sender of the child process, without the child."""

import contextlib
import os

from fake_wire import FakeWire

from drone_bridge.net.last_words import LastWordsKeeper, shared_memory
from drone_bridge.net.last_words_sender import Sender


class Deaf:
    """Socket to the child, which gets the file without it."""

    def sendmsg(self, *_):
        raise OSError

    close = FakeWire.ignore


@contextlib.contextmanager
def kept(wire):
    """Yield a keeper and its child, which has the file of the link: a socket, or None for a serial line."""
    memory = shared_memory()
    keeper = LastWordsKeeper(memory, Deaf())
    child = Sender.__new__(Sender)
    child._memory, child._file, child._number, child._socket = memory, -1, 1, wire
    child._said = child._written = child._said_ns = child._rounds = child._busy_ns = 0
    yield keeper, child
    os.close(memory)
