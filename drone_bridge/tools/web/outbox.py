# SPDX-License-Identifier: Apache-2.0
"""The send queue of one viewer: bounded, and with only the newest image of each topic."""

from collections import OrderedDict, deque
from typing import Final

#: A message of at least this many bytes is a picture or the like: a newer one on the same subscription replaces it.
LARGE_BYTES: Final = 16 * 1024
MAX_SMALL_BYTES: Final = 4 * 2**20
MAX_SMALL: Final = 4096
MAX_CONTROL_BYTES: Final = 16 * 2**20  # definitions of all channels come at once
MAX_LARGE: Final = 64  # subscriptions with a picture waiting
_MESSAGE_DATA: Final = 1  # opcode of Foxglove's protocol, followed by the subscription's id, 4 bytes


class OverflowingError(Exception):
    """The viewer does not even keep up with the channel advertisements."""


class Outbox:
    """Frames of Foxglove's protocol in the order in which they are to be sent: large ones last."""

    def __init__(self) -> None:
        self._control: deque[str | bytes] = deque()
        self._control_bytes = 0
        self._small: deque[bytes] = deque()
        self._small_bytes = 0
        self._large: OrderedDict[bytes, bytes] = OrderedDict()
        self.dropped = 0

    def put(self, frame: str | bytes) -> None:
        """Take a frame.

        Raises:
            OverflowingError: too much is waiting that can't be left out.
        """
        if isinstance(frame, str) or not frame or frame[0] != _MESSAGE_DATA:
            self._control.append(frame)
            self._control_bytes += len(frame)
            if self._control_bytes > MAX_CONTROL_BYTES:
                raise OverflowingError
        elif len(frame) < LARGE_BYTES:
            self._small.append(frame)
            self._small_bytes += len(frame)
            while self._small_bytes > MAX_SMALL_BYTES or len(self._small) > MAX_SMALL:
                self._small_bytes -= len(self._small.popleft())
                self.dropped += 1
        else:
            subscription = frame[1:5]
            # A newer picture takes the older one's place in the queue, so that no camera starves another.
            if subscription in self._large or len(self._large) >= MAX_LARGE:
                self.dropped += 1
            if subscription in self._large or len(self._large) < MAX_LARGE:
                self._large[subscription] = frame

    def pop(self) -> str | bytes | None:
        if self._control:
            frame = self._control.popleft()
            self._control_bytes -= len(frame)
            return frame
        if self._small:
            small = self._small.popleft()
            self._small_bytes -= len(small)
            return small
        if self._large:
            return self._large.popitem(last=False)[1]
        return None
