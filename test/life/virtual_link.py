# SPDX-License-Identifier: Apache-2.0
"""In-memory links between two loops, with a network between them: delay, loss, splits, cuts, half-open ends.

`VirtualRunner` executes the turns of a real LinkLoop in virtual time.
"""

import itertools
import math
from collections import deque

from drone_bridge.net.connector import LONGEST_REFUSED_DELAY_S, RECEIVED, SENT, Backoff, LinkClosedError, LinkError
from drone_bridge.net.link_loop import Connected, Disconnected, ReceivedData

CLIENT, SERVER = 0, 1
SIDES = CLIENT, SERVER
#: Time that passes in the shortest wait, s, and retransmission time of TCP, s, for a lost segment.
LEAST_S, RETRANSMISSION_S = 1e-6, 0.2
#: Time after which the system of one side finds that the other has no power, s.
KEEPALIVE_S = 11.0


class VirtualRunner:
    """Runner of one loop. Its process may stall, or be killed between two turns."""

    def __init__(self, process, link, busy):
        """`busy` gets the number of turns of a second."""
        self._process, self._link, self._busy = process, link, busy
        self._turns, self._is_running, self._number = None, False, 0
        self._is_open = False
        self._second, self._count = 0, 0

    def start(self, turns):
        """See Runner."""
        self._turns = iter(turns)
        self._link.runner = self
        self._schedule(0.0)

    def wake(self):
        """See Runner. Also called by the link when data arrive."""
        if self._turns and self._is_open and not self._is_running:
            self._schedule(0.0)

    def join(self):
        """See Runner."""
        while self._turns and not self._is_running:
            self._turn()
        return True

    def close(self):
        """End the turns, after the life."""
        if self._turns and not self._is_running:
            self._turns.close()

    def _schedule(self, seconds):
        self._number += 1
        number = self._number
        self._process.after(seconds, lambda: number == self._number and self._step())

    def _step(self):
        """Turn, or open the link, which blocks a real thread."""
        if self._is_open or (delay_s := self._link.connect()) is None:
            self._turn()
        else:
            self._schedule(delay_s)

    def _turn(self):
        self._number += 1
        self._count_turn()
        self._is_running = True
        try:
            wait = next(self._turns)
        except StopIteration:
            self._turns = None
            return
        finally:
            self._is_running = False
        self._is_open = bool(wait.files)
        is_readable = self._is_open and self._link.is_readable
        self._schedule(0.0 if is_readable else max(wait.longest_s and self._process.life.lazy(wait.longest_s), LEAST_S))

    def _count_turn(self):
        if int(self._process.life.now_s) != self._second:
            self._second, self._count = int(self._process.life.now_s), 0
        self._count += 1
        self._busy(self._count)


class Network:
    """State of the network between two ends, and the tap that sees what arrives."""

    def __init__(self, life):
        self.life = life
        self.calm()
        #: Ends of outages, by receiving side.
        self.cut_until_s = [-math.inf, -math.inf]
        #: Called with the receiving side and each event.
        self.tap = lambda side, event: None

    def calm(self):
        self.delay_s, self.jitter_s, self.loss, self.duplicates, self.split = 0.003, 0.002, 0.0, 0.0, 0.0
        self.late_s = [0.0, 0.0]  # by receiving side, besides

    def is_cut(self, side):
        return self.life.now_s < self.cut_until_s[side]

    def travel_s(self, side):
        return self.delay_s + self.late_s[side] + self.jitter_s * self.life.rng.random()


class End:
    """One end of a link, as its loop sees it. Also the file that becomes readable."""

    port = 25600

    def __init__(self, wire, side):
        self.wire, self.side, self.runner, self._waiting = wire, side, None, deque()
        #: Wire log of the node, if any.
        self.log = lambda direction, data: None

    @property
    def is_readable(self):
        return bool(self._waiting)

    def put(self, event):
        """Queue an event for the loop."""
        self.wire.network.tap(self.side, event)
        self.log(RECEIVED, getattr(event, "data", b""))
        self._waiting.append(event)
        if self.runner:
            self.runner.wake()

    def connect(self):
        """Prepare `open`. Return None, or the delay until the next attempt, s."""
        return

    def clear(self):
        """Drop the events of the last connection."""
        self._waiting.clear()

    def open(self):
        pass

    def cancel(self):
        pass

    def files(self):
        return (self,)

    def receive(self):
        return self._waiting.popleft() if self._waiting else None

    def close(self):
        self.runner = None


class DatagramEnd(End):
    """UDP end. `address` is the peer's; `hosts` as robots' classes want them."""

    hosts, peer_host, problem = ("10.0.0.1", "10.0.0.2"), "10.0.0.2", ""

    @property
    def address(self):
        return self.wire.addresses[1 - self.side]

    def send(self, data, to):
        self.log(SENT, data)
        self.wire.send(self.side, bytes(data), to)

    def outlet_to(self, to):
        return self


class Datagrams:
    """UDP between two ends. Either may be absent. They keep their order: a queue delays them."""

    addresses = ("10.0.0.1", 40000), ("10.0.0.2", 8889)

    def __init__(self, network, names=None):
        """`names` of the client's further links, by port."""
        self.network, self.life, self._names, self.ends = network, network.life, names or {}, [None, None]
        self._arrives_s = [0.0, 0.0]  # by sending side

    def end(self, side):
        self.ends[side] = DatagramEnd(self, side)
        return self.ends[side]

    def remove(self, side, *, closes=True):
        """Remove the end of a process that has ended."""
        self.ends[side] = None

    def send(self, side, data, to):
        network, rng = self.network, self.life.rng
        if network.is_cut(1 - side) or rng.random() < network.loss:
            return
        for _ in range(1 + (rng.random() < network.duplicates)):
            self._arrives_s[side] = max(self._arrives_s[side], self.life.now_s + network.travel_s(1 - side))
            self.life.at(self._arrives_s[side], lambda: self._arrive(1 - side, data, to))

    def _arrive(self, side, data, to):
        if end := self.ends[side]:
            name = self._names.get(to[1]) if side == CLIENT and isinstance(to, tuple) else None
            end.put(ReceivedData(data, name or self.addresses[1 - side]))


class Connection:
    """TCP connection. Both sides' peer, as the sessions know it."""

    numbers = itertools.count(1)

    def __init__(self, now_s):
        self.number, self.arrives_s = next(self.numbers), [now_s, now_s]  # by receiving side
        self.is_closed = [False, False]  # by side: nothing is received or sent there

    def __str__(self):
        return "10.0.0.2:25600"


class StreamEnd(End):
    """TCP end: the client has one connection, which its loop opens again; the server may have several."""

    def __init__(self, wire, side, on_failure=lambda error, delay_s: None):
        super().__init__(wire, side)
        #: Open connections of the client.
        self.backoff, self._on_failure, self.peers = Backoff(), on_failure, []

    def connect(self):
        """See End. The client reports failures and backs off, as RetryingLink does."""
        if self.side == SERVER or self.wire.connect():
            return None
        delay_s = min(self.backoff.next_delay_s(), LONGEST_REFUSED_DELAY_S)
        self._on_failure(LinkError("10.0.0.2:25600 can't be reached: Connection refused."), delay_s)
        return delay_s

    def receive(self):
        if (event := super().receive()) is None and self.side == CLIENT and not self.peers:
            raise LinkClosedError("closed")
        return event

    def send(self, data, to, rest=b"", until_s=None, decided=lambda is_sent: None):
        self.log(SENT, data)
        self.wire.send(self.side, bytes(data), to)
        decided(True)

    def outlet_to(self, to):
        return self if self.peers else None

    def disconnect(self, peer):
        self.wire.close(self.side, peer)

    def disconnect_all(self):
        for each in tuple(self.wire.connections):
            self.wire.close(self.side, each)

    def close(self):
        self.disconnect_all()
        super().close()


class Streams:
    """TCP between a client and a server, which may be absent or unreachable."""

    CONNECTIONS = 1

    def __init__(self, network, names=None):
        self.network, self.life, self.ends, self.connections = network, network.life, [None, None], []
        self._reports = Datagrams(network, names)  # of a robot that sends its state to a port of the client's
        self._reports.ends = self.ends

    def end(self, side, *options):
        self.ends[side] = StreamEnd(self, side, *options)
        return self.ends[side]

    def remove(self, side, *, closes=True):
        """Remove the end of a process that has ended. Its system closes the connections, unless the power is cut."""
        self.ends[side] = None
        for each in tuple(self.connections):
            if closes:
                self.close(side, each)
            else:
                each.is_closed[side] = True
                self.life.after(KEEPALIVE_S, lambda each=each: self._end(each, 1 - side))

    def connect(self):
        """Connect the client. Return whether the server's system accepts."""
        if self.ends[SERVER] is None or any(map(self.network.is_cut, SIDES)):
            return False
        self.ends[CLIENT].clear()
        for _ in range(self.CONNECTIONS):
            connection = Connection(self.life.now_s)
            self.connections.append(connection)
            self.ends[CLIENT].peers.append(connection)
            for side in SIDES:
                self.ends[side].put(Connected(connection))
        return True

    def connect_stranger(self):
        """Connect another program, to which nothing is delivered, with the server."""
        connection = Connection(self.life.now_s)
        connection.is_closed[SERVER] = True
        self.ends[SERVER].put(Connected(connection))
        return connection

    def send(self, side, data, to):
        if isinstance(to, tuple):
            self._reports.send(side, data, to)
            return
        end = self.ends[side]
        connection = to or (end.peers[0] if end and end.peers else None)
        if connection is None or connection.is_closed[side]:
            return
        rng, network = self.life.rng, self.network
        cuts = [0, rng.randrange(1, len(data)), len(data)] if len(data) > 1 and rng.random() < network.split else None
        for begin, end in itertools.pairwise(cuts or [0, len(data)]):
            self._carry(connection, 1 - side, lambda piece=data[begin:end]: self._arrive(connection, 1 - side, piece))

    def close(self, side, connection):
        """Close one side. The other one learns of it, in order with the data."""
        if connection and not connection.is_closed[side]:
            connection.is_closed[side] = True
            self._carry(connection, 1 - side, lambda: self._end(connection, 1 - side))
            self._forget(connection, side)

    def _carry(self, connection, side, call):
        """Deliver in order: what is lost or cut off arrives late."""
        network, now_s = self.network, self.life.now_s
        arrives_s = max(now_s, network.cut_until_s[side]) + network.travel_s(side)
        if network.loss and self.life.rng.random() < network.loss:
            arrives_s += RETRANSMISSION_S
        connection.arrives_s[side] = max(connection.arrives_s[side], arrives_s)
        self.life.at(connection.arrives_s[side], call)

    def _arrive(self, connection, side, data):
        end = self.ends[side]
        if end and connection.is_closed[side]:  # its system resets a connection that it does not know
            self._carry(connection, 1 - side, lambda: self._end(connection, 1 - side))
        elif end:
            end.put(ReceivedData(data, connection))

    def _end(self, connection, side):
        if not connection.is_closed[side]:
            connection.is_closed[side] = True
            if end := self.ends[side]:
                end.put(Disconnected(connection, "The peer has closed the connection."))
            self._forget(connection, side)

    def _forget(self, connection, side):
        if side == CLIENT and (end := self.ends[CLIENT]) and connection in end.peers:
            end.peers.remove(connection)
        if all(connection.is_closed):
            self.connections.remove(connection)
