# SPDX-License-Identifier: Apache-2.0
"""Ends that vanish: a machine without power, and a killed process."""

import ctypes
import signal
import socket
import struct

from drone_bridge.ros.process.shared_memory import make_room

_SO_ATTACH_FILTER = 26
_DROP_ALL = struct.pack("HBBI", 0x06, 0, 0, 0)  # the one instruction of a packet filter: accept no bytes


def vanish(connected):
    """Stop a socket from receiving and acknowledging, as if its machine had lost its power.

    The other end sees neither a FIN nor a RST: the connection is half-open. The test must not send on it any more, and
    close it when the other end has dropped it.
    """
    instructions = ctypes.create_string_buffer(_DROP_ALL)
    program = struct.pack("HL", 1, ctypes.addressof(instructions))
    connected.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, program)


def kill(process):
    """Kill a node with SIGKILL, which leaves its shared memory."""
    process.send(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    make_room()
