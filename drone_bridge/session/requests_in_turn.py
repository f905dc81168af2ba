# SPDX-License-Identifier: Apache-2.0
"""RequestsInTurn: requests whose answers carry no id, one after the other.

Such an answer belongs to the last request, so only one may be on its way. An answer that comes too late would be taken
for that of the next request: after a timeout the next one waits until the late answer has come, or will not come.
"""

from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from drone_bridge.wire.events import LocalProtocolError

RequestT = TypeVar("RequestT")

#: Requests that wait for their turn; more are refused.
MAX_WAITING = 8


class RequestsInTurn(Generic[RequestT]):
    """The requests of one link, one on its way at a time. Times are seconds of any one clock. For one thread."""

    def __init__(self, late_answer_s: float) -> None:
        """`late_answer_s` is how long after its timeout an answer may still come."""
        self._late_answer_s = late_answer_s
        self._waiting: deque[tuple[RequestT, float]] = deque()
        self._asked: RequestT | None = None
        self._timeout_s = self._asked_s = 0.0  # of that
        self._free_from_s = 0.0  # when no late answer is to be expected any more

    @property
    def is_idle(self) -> bool:
        """Whether no request waits for its turn or its answer."""
        return self._asked is None and not self._waiting

    def ask(self, request: RequestT, timeout_s: float) -> None:
        """Append a request, whose answer may take so long. Raises LocalProtocolError when too many are waiting."""
        if len(self._waiting) >= MAX_WAITING:
            raise LocalProtocolError(f"{MAX_WAITING} requests wait for an answer already.")
        self._waiting.append((request, timeout_s))

    def due(self, now_s: float) -> RequestT | None:
        """Return the request that is to be sent now, once, or None."""
        if self._asked is not None or now_s < self._free_from_s or not self._waiting:
            return None
        (self._asked, self._timeout_s), self._asked_s = self._waiting.popleft(), now_s
        return self._asked

    def answered(self) -> RequestT | None:
        """Return the request that an answer belongs to; None for a late answer, and for one to nothing."""
        request, self._asked = self._asked, None
        self._free_from_s = 0.0
        return request

    def overdue(self, now_s: float) -> RequestT | None:
        """Return the request that is given up now, or None."""
        if self._asked is None or now_s - self._asked_s <= self._timeout_s:
            return None
        request, self._asked = self._asked, None
        self._free_from_s = now_s + self._late_answer_s
        return request

    def forget(self, is_outdated: Callable[[RequestT], bool]) -> list[RequestT]:
        """Forget those of the requests that wait for their turn that are outdated, and return them."""
        forgotten = [request for request, _ in self._waiting if is_outdated(request)]
        self._waiting = deque(each for each in self._waiting if each[0] not in forgotten)
        return forgotten

    def end(self) -> list[RequestT]:
        """Return all requests without an answer, and forget them."""
        unanswered = [*([] if self._asked is None else [self._asked]), *(request for request, _ in self._waiting)]
        self._asked = None
        self._waiting.clear()
        return unanswered
