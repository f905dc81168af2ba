# SPDX-License-Identifier: Apache-2.0
"""LinkNode: a node whose link is opened, used and reopened by a thread of its own, the LinkThread."""

import threading
import traceback
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Protocol

from drone_bridge.net.connector import (
    Backoff,
    Cancellation,
    LinkCancelledError,
    LinkError,
    LinkTimeoutError,
)
from drone_bridge.net.thread_end import STOP_TIMEOUT_S, ends_within
from drone_bridge.ros.diagnostics import Reports
from drone_bridge.ros.vehicle_node import UNREACHABLE, VehicleNode
from drone_bridge.wire.events import RemoteProtocolError


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

    @property
    def port(self) -> int:
        return self.endpoint.port

    def stop(self) -> bool:
        """Cancel the link and wait for its thread; return whether that ended in time."""
        self._cancellation.cancel()
        if not ends_within(self._thread, STOP_TIMEOUT_S):
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
            is_timeout = False
            try:
                is_timeout = self._talk(stream)
            finally:
                reports.note_end(is_timeout=is_timeout)
                stream.close()
        reports.statistics.state = "closed"

    def _talk(self, stream: Stream) -> bool:
        """Use a link until it ends; return whether that was because the peer was silent."""
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
            return isinstance(error, LinkTimeoutError)
        except Exception:
            reports.count_and_warn("internal errors", traceback.format_exc())
        return False

    def _announce(self, stream: Stream) -> None:
        reports, statistics = self._reports, self._reports.statistics
        statistics.state, statistics.peer = statistics.open_state, stream.peer
        statistics.counts["connections"] += 1
        statistics.liveness.opened()
        reports.end_ongoing(UNREACHABLE)
        reports.inform(f"{statistics.open_state.capitalize()} to {stream.peer}.")


class LinkNode(VehicleNode):
    """A node whose link is opened again when it fails, for as long as the node is active."""

    _thread: LinkThread | None = None

    # What a bridge has to provide.

    def prepare(self) -> None:
        """Begin to accept commands for a new peer; called before the connection is reported, and before `converse`."""

    @abstractmethod
    def converse(self, stream: Any) -> None:
        """Talk to a peer until it ends the conversation or an exception is raised.

        When LinkCancelledError ends it, the vehicle has to be left with a neutral command.
        """

    @abstractmethod
    def make_endpoint(self, cancellation: Cancellation) -> Endpoint:
        """Return what opens links. Raises LinkError or ValueError."""

    # What a bridge can use.

    def opened(self) -> None:
        """Note that the peer has proved useful, so that a lost connection is reopened without delay."""
        if self._thread:
            self._thread.endpoint.backoff.reset()

    # The lifecycle.

    def make_link(self) -> LinkThread:
        cancellation = Cancellation()
        self._thread = LinkThread(
            f"{self.get_name()} link",
            self.make_endpoint(cancellation),
            cancellation,
            self.reports,
            prepare=self.prepare,
            converse=self.converse,
        )
        return self._thread

    def link_ended(self) -> None:
        self._thread = None
