# SPDX-License-Identifier: Apache-2.0
"""Waiting for files in one thread, of which another thread may take over one for a moment."""

import contextlib
import select
from collections.abc import Callable, Iterator, Sequence

from drone_bridge.net.connector import Selectable, Watch


class SharedWatch(Watch):
    """Uses epoll, which unlike poll can be changed while a thread waits; where there is none, nothing is taken over."""

    def __init__(self, files: Sequence[Selectable]) -> None:
        super().__init__(files)
        self._epoll = select.epoll() if hasattr(select, "epoll") else None
        if self._epoll:
            for file in files:
                self._epoll.register(file, select.EPOLLIN)

    def wait(self, timeout_s: float | None) -> list[bool]:
        if self._epoll is None:
            return super().wait(timeout_s)
        ready = dict(self._epoll.poll(timeout_s))
        return [descriptor in ready for descriptor in self._descriptors]

    @contextlib.contextmanager
    def taken_over(self, file: Selectable) -> Iterator[Callable[[float], bool]]:
        """Keep `wait` from returning for this file meanwhile.

        Yields a function that waits in its stead, for so many seconds or until any of the files is readable, and
        returns whether it is this one alone.
        """

        def wait_for_it_alone(timeout_s: float) -> bool:
            return [ready for ready, _ in self._poll.poll(max(0.0, timeout_s) * 1000)] == [file.fileno()]

        if self._epoll is None:
            yield lambda _: False
            return
        self._epoll.modify(file, 0)
        try:
            yield wait_for_it_alone
        finally:
            self._epoll.modify(file, select.EPOLLIN)
