# SPDX-License-Identifier: Apache-2.0
"""The thread that opens a link, uses it, and reopens it when it is lost."""

import threading
import traceback
from collections.abc import Callable
from typing import Any, Final, Protocol

from drone_bridge.net.backoff import Backoff
from drone_bridge.net.cancellation import Cancellation
from drone_bridge.net.errors import LinkCancelledError, LinkError
from drone_bridge.ros.reports import Reports
from drone_bridge.wire.errors import RemoteProtocolError

STOP_TIMEOUT_S: Final = 2.0
#: While the whole process is held up, only one of so many shares of that time goes by.
_STOP_SHARES: Final = 20
#: The condition of a peer that can't be reached.
UNREACHABLE: Final = "unreachable peer"


class Stream(Protocol):
    """An open link to one peer."""

    @property
    def peer(self) -> str:
        """The peer's name for logs and diagnostics."""

    def close(self) -> None:
        """Close at once."""


class Endpoint(Protocol):
    """A source of links to a peer, for instance TcpConnector and TcpListener."""

    @property
    def backoff(self) -> Backoff:
        """The delays between attempts."""

    @property
    def port(self) -> int:
        """The port in use."""

    def open(self) -> Stream:
        """Wait for a peer. Raises LinkCancelledError."""

    def close(self) -> None:
        """Release its resources."""


class LinkThread:
    """Keeps one link open until it is stopped."""

    def __init__(
        self,
        name: str,
        endpoint: Endpoint,
        cancellation: Cancellation,
        reports: Reports,
        *,
        prepare: Callable[[], None],
        converse: Callable[[Any], None],
    ) -> None:
        """`prepare` is called when a link is open, before that is reported.

        `converse` then uses the link until the peer ends it or an exception is raised.
        """
        self.endpoint = endpoint
        self._cancellation = cancellation
        self._prepare = prepare
        self._converse = converse
        self._reports = reports
        # It is waited for, but must not keep a process alive should it ever hang.
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, stop_waiting: Callable[[], None]) -> bool:
        """Cancel the link and wait for its thread; return whether that ended in time.

        `stop_waiting` ends whatever `converse` waits for beside the link.
        """
        self._cancellation.cancel()
        stop_waiting()
        for _ in range(_STOP_SHARES):
            if self._thread.is_alive():
                self._thread.join(STOP_TIMEOUT_S / _STOP_SHARES)
        if self._thread.is_alive():
            return False
        self.endpoint.close()
        self._cancellation.close()
        return True

    def _run(self) -> None:
        reports, backoff = self._reports, self.endpoint.backoff
        while not self._cancellation.is_set:
            reports.statistics.state = "waiting for a peer"
            try:
                stream = self.endpoint.open()
            except LinkCancelledError:
                break
            except Exception:
                reports.count_and_warn("internal errors", traceback.format_exc())
                self._cancellation.wait(backoff.next_delay_s())
                continue
            try:
                self._talk(stream)
            finally:
                reports.statistics.liveness.closed()
                stream.close()
        reports.statistics.state = "closed"

    def _talk(self, stream: Stream) -> None:
        reports = self._reports
        try:
            self._prepare()
            self._announce(stream)
            self._converse(stream)
        except LinkCancelledError:
            pass
        except RemoteProtocolError as error:
            reports.count_and_warn(
                "rejected input", f"{error} The connection is closed, as its bytes can't be trusted."
            )
        except LinkError as error:
            reports.count_and_warn("lost connections", str(error))
        except Exception:
            reports.count_and_warn("internal errors", traceback.format_exc())

    def _announce(self, stream: Stream) -> None:
        reports, statistics = self._reports, self._reports.statistics
        statistics.state, statistics.peer = statistics.open_state, stream.peer
        statistics.counts["connections"] += 1
        statistics.liveness.opened()
        reports.end_ongoing(UNREACHABLE)
        reports.inform(f"{statistics.open_state.capitalize()} to {stream.peer}.")
