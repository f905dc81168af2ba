# SPDX-License-Identifier: Apache-2.0
"""Inbox: received items of a thread, for a test that waits for some of them."""

import threading
from collections import deque

from patience import TIMEOUT_S


class Inbox:
    """Last messages of one topic or peer."""

    def __init__(self):
        self._changed = threading.Condition()
        self._messages = deque(maxlen=2000)

    def put(self, message):
        with self._changed:
            self._messages.append(message)
            self._changed.notify_all()

    def wait(self, wanted=lambda message: True, timeout_s=TIMEOUT_S):
        """Return the first wanted message. Drop it and earlier ones."""
        found = []

        def find():
            while self._messages and not found:
                message = self._messages.popleft()
                if wanted(message):
                    found.append(message)
            return bool(found)

        with self._changed:
            assert self._changed.wait_for(find, timeout_s), f"nothing wanted came within {timeout_s} s"
        return found[0]

    def clear(self):
        with self._changed:
            self._messages.clear()

    def __len__(self):
        with self._changed:
            return len(self._messages)
