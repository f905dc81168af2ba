# SPDX-License-Identifier: Apache-2.0
"""Link between two network namespaces with loss, delay and a limited rate, which can be cut and restored.

Each end is a TUN device, whose packets a thread of this process forwards to the other end. It needs only /dev/net/tun
of the kernel. netem, which does the same, is missing in many containers and on small machines.
"""

import contextlib
import ctypes
import errno
import fcntl
import os
import random
import select
import struct
import threading
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from machines import DEVICE, Machine, MachinesError, configure, namespaces

_TUN = "/dev/net/tun"
_TUNSETIFF = 0x400454CA
_IFF_TUN = 0x0001
_IFF_NO_PI = 0x1000  # packets without the four bytes of protocol information
_CLONE_NEWNET = 0x40000000
_MAX_PACKET_BYTES = 65536
_TURN_PACKETS = 64  # read from one end before the other end's turn


@dataclass(frozen=True, slots=True)
class Impairment:
    """Impairments in each direction. The defaults are those of a wireless link in a hall."""

    loss: float = 0.02  # probability
    delay_s: float = 0.02  # one way, without queueing
    bits_per_s: float = 20e6
    queue_bytes: int = 256 * 1024  # maximum queue, about 0.1 s at this rate; on overflow, packets are dropped
    seed: int = 1


class Direction:
    """One direction of a link, without devices and clock."""

    def __init__(self, impairment: Impairment, seed: int) -> None:
        self._impairment = impairment
        self._random = random.Random(seed)
        self._sent_s = 0.0  # when the queue is empty
        self._on_their_way: deque[tuple[float, bytes]] = deque()  # when each arrives, in order
        self.is_cut = False
        self.arrived = self.lost = self.dropped = 0  # packets; dropped: on overflow of the queue

    def offer(self, packet: bytes, now_s: float) -> None:
        """Queue a packet sent now."""
        link = self._impairment
        waiting_bytes = max(0.0, self._sent_s - now_s) * link.bits_per_s / 8
        is_lost = self._random.random() < link.loss
        if self.is_cut:
            self.lost += 1
        elif waiting_bytes + len(packet) > link.queue_bytes:
            self.dropped += 1
        else:
            self._sent_s = max(now_s, self._sent_s) + 8 * len(packet) / link.bits_per_s
            if is_lost:  # lost packets take air time, too
                self.lost += 1
            else:
                self._on_their_way.append((self._sent_s + link.delay_s, packet))

    def cut(self) -> None:
        """Lose packets in flight and later ones, silently."""
        self.is_cut = True
        self.lost += len(self._on_their_way)
        self._on_their_way.clear()

    def take_arrived(self, now_s: float) -> list[bytes]:
        """Return the packets that have arrived."""
        packets = []
        while self._on_their_way and self._on_their_way[0][0] <= now_s:
            packets.append(self._on_their_way.popleft()[1])
        self.arrived += len(packets)
        return packets

    @property
    def next_arrival_s(self) -> float | None:
        """Arrival time of the next packet. None if none is in flight."""
        return self._on_their_way[0][0] if self._on_their_way else None


class ImpairedLink:
    """Connection of two network namespaces by devices of the same name, initially down."""

    def __init__(self, namespaces: tuple[str, str], device: str, impairment: Impairment) -> None:
        """Raise MachinesError if TUN devices are not supported."""
        self._ends: list[int] = []
        try:
            for namespace in namespaces:
                self._ends.append(_open_tun(namespace, device))
        except OSError as error:
            self._close_ends()
            raise MachinesError(f"TUN devices can't be made here ({_TUN}): {error.strerror}.") from error
        self.directions = tuple(Direction(impairment, 2 * impairment.seed + end) for end in range(2))
        self._lock = threading.Lock()
        self._closing, self._close = os.pipe()
        self._thread = threading.Thread(target=self._pass_on, name="impaired link")
        self._thread.start()

    def cut(self) -> None:
        """Cut the link. Neither end is notified, like a radio out of reach."""
        with self._lock:
            for direction in self.directions:
                direction.cut()

    def mend(self) -> None:
        """Restore the link."""
        with self._lock:
            for direction in self.directions:
                direction.is_cut = False

    def close(self) -> None:
        """Remove the link and its devices."""
        os.write(self._close, b"\0")
        self._thread.join()
        self._close_ends()
        os.close(self._closing)
        os.close(self._close)

    def _close_ends(self) -> None:
        for end in self._ends:
            os.close(end)

    def _pass_on(self) -> None:
        while True:
            arrivals = [direction.next_arrival_s for direction in self.directions]
            pending_s = [arrival_s for arrival_s in arrivals if arrival_s is not None]
            timeout_s = max(0.0, min(pending_s) - time.monotonic()) if pending_s else None
            readable, _, _ = select.select([*self._ends, self._closing], [], [], timeout_s)
            if self._closing in readable:
                return
            with self._lock:
                for direction, near, far in zip(self.directions, self._ends, reversed(self._ends), strict=True):
                    if near in readable:
                        _take(near, direction)
                    for packet in direction.take_arrived(time.monotonic()):
                        _hand_over(far, packet)


@contextlib.contextmanager
def two_machines_far_apart(impairment: Impairment) -> Iterator[tuple[Machine, Machine, ImpairedLink]]:
    """Create two machines with an impaired link between them. Raises MachinesError if not permitted."""
    with (
        namespaces(2) as (one, other),
        contextlib.closing(ImpairedLink((one.name, other.name), DEVICE, impairment)) as link,
    ):
        configure(one, other)
        yield one, other, link


def _take(end: int, direction: Direction) -> None:
    for _ in range(_TURN_PACKETS):
        try:
            packet = os.read(end, _MAX_PACKET_BYTES)
        except OSError as error:
            if error.errno in (errno.EAGAIN, errno.EIO, errno.EBADFD):  # no more packets, or the device is down
                return
            raise
        direction.offer(packet, time.monotonic())


def _hand_over(end: int, packet: bytes) -> None:
    try:
        os.write(end, packet)
    except OSError as error:
        if error.errno not in (errno.EAGAIN, errno.EIO, errno.EBADFD, errno.EINVAL):  # down, or a foreign packet
            raise


def _open_tun(namespace: str, device: str) -> int:
    """Return the file descriptor of a new TUN device in a namespace. Closing it removes the device."""
    # A device belongs to the namespace of the thread that opens it, and this thread only does that.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(_open_in, namespace, device).result()


def _open_in(namespace: str, device: str) -> int:
    inside = os.open(f"/run/netns/{namespace}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.setns(inside, _CLONE_NEWNET):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
    finally:
        os.close(inside)
    tun = os.open(_TUN, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        fcntl.ioctl(tun, _TUNSETIFF, struct.pack("16sH22x", device.encode(), _IFF_TUN | _IFF_NO_PI))
    except OSError:
        os.close(tun)
        raise
    return tun
