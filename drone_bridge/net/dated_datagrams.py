# SPDX-License-Identifier: Apache-2.0
"""DatagramReader: reads datagrams with their ages, as Linux stamps them."""

import contextlib
import socket
import struct
import time
from typing import Any

from drone_bridge.net.clock import elapsed_s
from drone_bridge.net.datagram_sockets import MAX_DATAGRAM_BYTES

#: SO_TIMESTAMPNS, which has no name in Python: the kernel of Linux stamps each datagram by the wall clock.
_STAMP_OPTION = 35
_STAMP = struct.Struct("@ll")  # s and ns


def stamp_datagrams(opened: socket.socket) -> None:
    """Have the ages of datagrams measured. To be called before binding: what is queued by then gets no stamp."""
    with contextlib.suppress(OSError):  # of a system without stamps
        opened.setsockopt(socket.SOL_SOCKET, _STAMP_OPTION, 1)


class DatagramReader:
    """Reads datagrams from a socket that does not block, with their ages."""

    def __init__(self, opened: socket.socket, longest_bytes: int = MAX_DATAGRAM_BYTES) -> None:
        """The rest of a datagram that is longer is cut off."""
        self.buffer = memoryview(bytearray(longest_bytes))
        self._socket = opened
        self._stamp_bytes = socket.CMSG_SPACE(_STAMP.size)
        self._emptied_s = elapsed_s()  # when there was nothing to read

    def read(self) -> tuple[int, Any, float]:
        """Read a datagram into the buffer; return its length, its sender, and its age in s.

        Raises OSError, of which BlockingIOError says that there is none.
        """
        try:
            size, ancillary, _, source = self._socket.recvmsg_into([self.buffer], self._stamp_bytes)
        except BlockingIOError:
            self._emptied_s = elapsed_s()
            raise
        # No datagram is older than that, even if the wall clock was set forward meanwhile. It is all that is known on
        # systems without stamps, and after the clock was set back.
        age_s = elapsed_s() - self._emptied_s
        for level, kind, data in ancillary:
            if level == socket.SOL_SOCKET and kind == _STAMP_OPTION and len(data) == _STAMP.size:
                seconds, nanoseconds = _STAMP.unpack(data)
                stamped_age_s = time.time() - seconds - nanoseconds / 1e9
                age_s = min(age_s, stamped_age_s) if stamped_age_s >= 0.0 else age_s
        return size, source, age_s
