# SPDX-License-Identifier: Apache-2.0
"""DiscoveryResponder and DiscoverySearch: discovery of robots by a request to a UDP multicast group, or to one address.

A reply contains the robot's name. Only DiscoveredPeer blocks, while it opens. IPv4 only, like the group. All traffic
uses one interface, selected by its address. With 127.0.0.1, no packet leaves this machine, although a responder joins
the group on every interface: drivers on this machine send by the default route, through any interface, and must be
received there. Requests from other machines are ignored.
"""

import contextlib
import errno
import functools
import ipaddress
import itertools
import math
import socket
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from drone_bridge.net.clock import elapsed_s
from drone_bridge.net.connector import Cancellation, LinkCancelledError, LinkError, MakeTap, Selectable, wait_readable
from drone_bridge.net.link_loop import Connected, Disconnected, FilledBuffer, ReceivedData
from drone_bridge.net.listening import is_own_address, listening_error
from drone_bridge.net.tcp_connection import StreamOptions
from drone_bridge.net.tcp_peer import TcpPeer
from drone_bridge.net.tcp_port import TcpPort
from drone_bridge.robot.codec import DISCOVERY_GROUP, DISCOVERY_PORT, DISCOVERY_QUERY

ANY_INTERFACE = "0.0.0.0"
MAX_NAME_BYTES = 255  # of a host; longer replies are ignored
MAX_ROBOTS = 256  # further replies are ignored
REPLIES_S = 1.0  # to collect the replies of all robots
QUERIES = 3  # spread over the timeout, since any of them may be lost
_MAX_READ = 16  # ignored datagrams per call of the responder
#: Period in which a responder joins the group on interfaces that have appeared, such as Wi-Fi at boot.
JOIN_PERIOD_S = 5.0


@dataclass(frozen=True, slots=True)
class FoundRobot:
    """A robot that replied."""

    address: str  # IPv4
    name: str  # invalid UTF-8 is replaced


@dataclass(frozen=True, slots=True)
class DiscoveryRoute:
    """Address and interface for discovery requests. Raises ValueError."""

    address: str = DISCOVERY_GROUP  # a multicast group, or the address of one robot
    port: int = DISCOVERY_PORT  # 0, for a responder only: a free port
    interface: str = "127.0.0.1"  # an address of this machine; ANY_INTERFACE: chosen by the system

    def __post_init__(self) -> None:
        for what, address in (("The address of discovery", self.address), ("The interface", self.interface)):
            try:
                ipaddress.IPv4Address(address)
            except ValueError as error:
                raise ValueError(f"{what} is {address!r}, but must be an IPv4 address.") from error

    @property
    def is_multicast(self) -> bool:
        """Whether the address is a multicast group."""
        return ipaddress.IPv4Address(self.address).is_multicast

    @property
    def is_on_loopback(self) -> bool:
        """Whether all traffic stays on this machine."""
        return ipaddress.IPv4Address(self.interface).is_loopback

    @property
    def limitation(self) -> str:
        """Sentence without a full stop about robots that can't answer, naming the bridge's parameter; or ""."""
        if not self.is_on_loopback:
            return ""
        return f"Only this machine was searched (discovery_interface: {self.interface})"


class DiscoverySearch:
    """Non-blocking search: sends requests periodically, and collects the robots that reply."""

    def __init__(self, route: DiscoveryRoute, timeout_s: float, now_s: float) -> None:
        """Start. `timeout_s` is the time to wait for replies. Raises LinkError."""
        self._route, self._timeout_s, self._began_s = route, timeout_s, now_s
        self.ends_s = now_s + timeout_s
        self._queries = 0
        try:
            self._asking = _query_socket(route.interface)
        except OSError as error:
            reason = f"Discovery requests can't be sent through {route.interface}: {error.strerror}."
            raise LinkError(f"{reason} discovery_interface must be an address of this machine, or 0.0.0.0.") from error
        #: Robots that replied, without duplicates, in the order of their replies.
        self.found: dict[FoundRobot, None] = {}

    @property
    def due_s(self) -> float:
        """When `poll` sends the next request."""
        is_done = self._queries >= QUERIES
        return math.inf if is_done else self._began_s + self._timeout_s * self._queries / QUERIES

    def fileno(self) -> int:
        """Return the descriptor that becomes readable when replies arrive."""
        return self._asking.fileno()

    def poll(self, now_s: float) -> list[FoundRobot]:
        """Send a request if due, and return the robots found since the last call. Raises LinkError."""
        if now_s >= self.due_s:
            self._queries += 1
            self._send_request()
        answered = []
        for _ in range(MAX_ROBOTS):
            try:
                name, source = self._asking.recvfrom(MAX_NAME_BYTES + 1)
            except BlockingIOError:
                break
            except OSError:
                continue  # ICMP: no program listens at the address
            if 0 < len(name) <= MAX_NAME_BYTES:
                robot = FoundRobot(source[0], name.decode(errors="replace"))
                if robot in self.found or len(self.found) < MAX_ROBOTS:
                    self.found[robot] = None
                    answered.append(robot)
        return answered

    def _send_request(self) -> None:
        """Send a request. Raises LinkError."""
        to = self._route.address, self._route.port
        try:
            self._asking.sendto(DISCOVERY_QUERY, to)
        except BlockingIOError:
            pass  # the next request may fit
        except OSError as error:
            raise LinkError(f"Discovery requests can't be sent to {to[0]}:{to[1]}: {error.strerror}.") from error

    def close(self) -> None:
        self._asking.close()


def _query_socket(interface: str) -> socket.socket:
    asking = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        asking.setblocking(False)
        if interface != ANY_INTERFACE:
            asking.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(interface))
        asking.bind((interface, 0))
    except OSError:
        asking.close()
        raise
    return asking


class DiscoveredPeer(TcpPeer):
    """Link to a robot by its name, which is looked up by discovery before each attempt.

    Names are not unique: copies of a memory card have the same one. Until the first connection, each search lasts for
    its whole timeout, and several robots of the name are an error. Later, the robot of the last connection is
    preferred. `on_other` is called before a connection to another one.
    """

    def __init__(
        self,
        name: str,
        port: int,
        on_failure: Callable[[LinkError, float], None],
        *,
        route: DiscoveryRoute,
        timeout_s: float,
        on_other: Callable[[str, str], None] | None = None,
        options: StreamOptions | None = None,
        wire_log: MakeTap | None = None,
        cancellation: Cancellation | None = None,
    ) -> None:
        """Prepare to connect.

        Args:
            name: name of the robot.
            port: TCP port of the robot.
            on_failure: see TcpPeer.
            route: address and interface for discovery requests.
            timeout_s: time to wait for replies, s.
            on_other: called with the addresses of the known robot and of another one, which is connected to next. By
                default, no other one is connected to.
            options: see TcpPeer.
            wire_log: see TcpPeer.
            cancellation: see TcpPeer.
        """
        super().__init__(name, port, on_failure, options=options, wire_log=wire_log, cancellation=cancellation)
        self._route, self._timeout_s, self._on_other = route, timeout_s, on_other
        self._known = ""  # address of the last robot that was connected to

    def _resolve(self) -> list[Any]:
        """Return the addresses of the robot as getaddrinfo does.

        Raises OSError on a timeout without a reply of this name, or with several, and LinkCancelledError.
        """
        name, route = self._host, self._route
        try:
            with contextlib.closing(DiscoverySearch(route, self._timeout_s, elapsed_s())) as search:
                self._wait_for(name, search)
        except LinkCancelledError:
            raise
        except LinkError as error:
            raise OSError(str(error).rstrip(".")) from error
        addresses = [robot.address for robot in search.found if robot.name == name]
        if not addresses:
            names = ", ".join(repr(robot.name) for robot in itertools.islice(search.found, 8))
            others = f"but these did: {names}" if names else "nor any other"
            others += f". {route.limitation}".rstrip(". ")
            raise OSError(f"no robot of this name answered at {route.address}:{route.port}, {others}")
        address = self._known
        if address not in addresses:
            if len(addresses) > 1:
                raise OSError(
                    f"{len(addresses)} robots of this name answered: {', '.join(sorted(addresses)[:8])}. Rename all "
                    "but one, or connect by the address (host) instead of the name"
                )
            (address,) = addresses
            if self._known:
                if not self._on_other:
                    raise OSError(f"another robot of this name answered, at {address} instead of {self._known}")
                self._on_other(self._known, address)
                self._known = address
        return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", (address, self._port))]

    def _connect_to(self, connecting: socket.socket, address: Any) -> None:
        super()._connect_to(connecting, address)
        self._known = address[0]

    def _wait_for(self, name: str, search: DiscoverySearch) -> None:
        """Search until the known robot has replied, or the timeout. Raises LinkError."""
        known = FoundRobot(self._known, name)
        while (now_s := elapsed_s()) < search.ends_s:
            if known in search.poll(now_s):
                return
            wait_readable([search, self._cancellation], max(0.0, min(search.due_s, search.ends_s) - elapsed_s()))
            if self._cancellation.is_set:
                raise LinkCancelledError("Discovery was cancelled.")


class DiscoveryResponder:
    """Robot's side: receives requests to the group or to this address, and replies.

    It owns non-blocking `sockets`. Call `receive` when one is readable.
    """

    def __init__(self, route: DiscoveryRoute) -> None:
        """Bind the sockets and join the group. Raises LinkError."""
        self._is_on_loopback = route.is_on_loopback
        self._join_all: Callable[[], None] | None = None
        self._joined_at_s = elapsed_s()
        self.sockets: list[socket.socket] = []
        try:
            direct = self._bind(route.interface, route.port)  # source address of replies: the robot's own
            self.port = int(direct.getsockname()[1])
            if route.is_multicast:
                # This socket is bound to the group's address, so it receives only datagrams to the group. A socket on
                # all interfaces receives the group's as well.
                listening = direct if route.interface == ANY_INTERFACE else self._bind(route.address, self.port)
                interface = ANY_INTERFACE if self._is_on_loopback else route.interface
                _join(listening, route.address, interface)
                if interface == ANY_INTERFACE:
                    self._join_all = functools.partial(_join, listening, route.address, interface)
        except OSError as error:
            self.close()
            address = route.address if error.errno == errno.EADDRINUSE else route.interface
            raise listening_error("udp", address, route.port, error) from error

    def _bind(self, address: str, port: int) -> socket.socket:
        bound = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.sockets.append(bound)
        bound.setblocking(False)
        # Several robots on one machine share the group.
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((address, port))
        return bound

    def receive(self) -> Any:
        """Return the source address of the next request. None if there is none.

        Requests from senders outside the served network are ignored.
        """
        if self._join_all and elapsed_s() > self._joined_at_s + JOIN_PERIOD_S:
            self._joined_at_s = elapsed_s()
            with contextlib.suppress(OSError):  # nothing is new
                self._join_all()
        for queries in self.sockets:
            for _ in range(_MAX_READ):
                try:
                    query, source = queries.recvfrom(len(DISCOVERY_QUERY) + 1)
                except BlockingIOError:
                    break
                except ConnectionError:
                    continue  # ICMP: a requester has closed its socket
                if query == DISCOVERY_QUERY and self._is_served(source[0]):
                    return source
        return None

    def send(self, answer: bytes, to: Any) -> None:
        """Send the robot's name, as UTF-8, to an address. A reply may be lost."""
        with contextlib.suppress(OSError):
            self.sockets[0].sendto(answer, to)

    def _is_served(self, address: str) -> bool:
        return not self._is_on_loopback or is_own_address(address)

    def close(self) -> None:
        """Leave the group and stop listening."""
        for opened in self.sockets:
            opened.close()


class RobotPort:
    """A TcpPort with an optional responder. The peers of the responder are socket addresses."""

    def __init__(self, drivers: TcpPort, responder: DiscoveryResponder | None) -> None:
        self._drivers, self._responder = drivers, responder
        self.backoff = drivers.backoff

    @property
    def port(self) -> int:
        return self._drivers.port

    def open(self) -> None:
        self._drivers.open()

    def cancel(self) -> None:
        """Do nothing: no call blocks."""

    def files(self) -> Sequence[Selectable]:
        return (*self._drivers.files(), *(self._responder.sockets if self._responder else ()))

    def receive(self) -> ReceivedData | FilledBuffer | Connected | Disconnected | None:
        return self._drivers.receive() or self._request()

    def send(self, data: bytes | memoryview, to: Any) -> None:
        """Send to a driver, or to an address that sent a discovery request."""
        if not isinstance(to, tuple):
            self._drivers.send(data, to)
        elif self._responder:
            self._responder.send(bytes(data), to)

    def disconnect(self, peer: Any) -> None:
        self._drivers.disconnect(peer)

    def disconnect_all(self) -> None:
        self._drivers.disconnect_all()

    def close(self) -> None:
        if self._responder:
            self._responder.close()
        self._drivers.close()

    def _request(self) -> ReceivedData | None:
        asker = self._responder.receive() if self._responder else None
        return ReceivedData(DISCOVERY_QUERY, asker) if asker else None


def _join(bound: socket.socket, group: str, interface: str) -> None:
    """Subscribe a socket to the group on an interface. Raises OSError.

    ANY_INTERFACE means all interfaces: the system itself would join only one, chosen by its routes, or none.
    """
    chosen = socket.inet_aton(group) + socket.inet_aton(interface)
    memberships = [chosen]
    if interface == ANY_INTERFACE:
        memberships += [chosen + struct.pack("=i", index) for index, _ in socket.if_nameindex()]
    failures = []
    for membership in memberships:
        try:
            bound.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)
        except OSError as error:  # joined already, no multicast, or above the system's limit
            failures.append(error)
    if len(failures) == len(memberships):
        raise failures[0]
