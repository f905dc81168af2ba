# SPDX-License-Identifier: Apache-2.0
"""Several clients of one server: none of them holds up the others, nor has a place for nothing."""

import asyncio
import contextlib
import math
import socket

import pytest
from tcp_peer import LONG_S, NO_LEAKS, connect

from drone_bridge.net import tcp_clients
from drone_bridge.net.tcp_clients import KEEPS_PLACE_S, TcpClients

pytestmark = NO_LEAKS
MESSAGE_S = 2.0**-11  # that handling one of them takes


class Client:
    """Of a protocol whose messages are lines."""

    def __init__(self, connection, work):
        self._connection = connection
        self._work = work
        self._buffer = b""
        self.lines = 0
        self.reason = asyncio.get_running_loop().create_future()

    @property
    def inside_message(self):
        return bool(self._buffer)

    def receive_data(self, data):
        self._buffer += data

    def handle_next(self):
        line, end, rest = self._buffer.partition(b"\n")
        if not end:
            return False
        self._buffer, self.lines = rest, self.lines + 1
        self._work()
        self._connection.send(line + end)
        return True

    def flush(self):
        pass

    def receive_eof(self):
        pass

    def leave(self, reason):
        self.reason.set_result(reason)


@contextlib.asynccontextmanager
async def serving(most=16, work=lambda: None, **options):
    """Yield the server; its handlers and whom it has refused are attributes. `work` is done for each message."""
    handlers, refused = [], []

    def begin(connection):
        handlers.append(Client(connection, work))
        return handlers[-1]

    clients = TcpClients("127.0.0.1", 0, begin, most=most, ends=(), on_refused=refused.append, **options)
    clients.handlers, clients.refused = handlers, refused
    await clients.start()
    yield clients
    clients.hang_up()
    await asyncio.sleep(0)
    clients.close()


async def until(condition):
    async def wait():
        while not condition():
            await asyncio.sleep(0.005)

    await asyncio.wait_for(wait(), LONG_S)


def has_ended(peer):
    """Whether the server has closed this connection."""
    peer.setblocking(False)
    try:
        return peer.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


class WorkClock:
    """Time that passes only while messages are handled."""

    now_s = 0.0

    def monotonic(self):
        return self.now_s

    def work(self):
        self.now_s += MESSAGE_S


def test_a_turn_is_bounded_and_everybody_has_one(monkeypatch):
    clock = WorkClock()
    monkeypatch.setattr(tcp_clients, "time", clock)

    async def run():
        async with serving(work=clock.work) as clients:
            with contextlib.ExitStack() as stack:
                peers = [stack.enter_context(connect(clients.port)) for _ in range(5)]
                for peer in peers:
                    peer.sendall(b"x\n" * 4000)
                while len(clients.handlers) < 5 or not all(each.lines for each in clients.handlers):
                    await asyncio.sleep(0)
                before = [each.lines for each in clients.handlers]
                for _ in range(20):
                    await asyncio.sleep(0)
                gained = [each.lines - lines for each, lines in zip(clients.handlers, before, strict=True)]
                a_turn = math.ceil(clients.turn_s / MESSAGE_S)
                assert a_turn > 1
                assert min(gained) >= 19 * a_turn
                assert max(gained) <= 20 * a_turn
                for peer in peers:
                    peer.shutdown(socket.SHUT_WR)
                await until(lambda: all(each.lines == 4000 for each in clients.handlers))

    asyncio.run(run())


@pytest.mark.parametrize("sent", [b"", b"half a li"], ids=["nothing", "half a message"])
def test_who_completes_no_message_has_to_go(monkeypatch, sent):
    monkeypatch.setattr(tcp_clients, "WHOLE_MESSAGE_S", 0.2)

    async def run():
        async with serving(first_message_s=0.2) as clients:
            with connect(clients.port) as peer, connect(clients.port) as useful:
                useful.sendall(b"a line\n")
                await until(lambda: len(clients.handlers) == 2)
                while not has_ended(peer):
                    with contextlib.suppress(ConnectionError):
                        peer.sendall(sent and b".")  # a trickle extends nothing
                    await asyncio.sleep(0.02)
                useful.sendall(b"half another")
                for handler in clients.handlers:
                    assert "has not completed a" in await handler.reason

    asyncio.run(run())


def test_between_messages_a_client_may_be_silent(monkeypatch):
    monkeypatch.setattr(tcp_clients, "WHOLE_MESSAGE_S", 0.1)

    async def run():
        async with serving(first_message_s=0.1) as clients:
            with connect(clients.port) as peer:
                peer.sendall(b"a line\nand another\n")
                await until(lambda: clients.handlers and clients.handlers[0].lines == 2)
                await asyncio.sleep(0.3)
                assert not clients.handlers[0].reason.done()

    asyncio.run(run())


def test_a_full_house_drops_who_has_said_nothing_for_longest(monkeypatch):
    async def run():
        async with serving(most=3) as clients:
            with contextlib.ExitStack() as stack:

                async def arrive():
                    count = len(clients.handlers) + len(clients.refused)
                    peer = stack.enter_context(connect(clients.port))
                    await until(lambda: len(clients.handlers) + len(clients.refused) > count)
                    return peer

                async def say(peer, text):
                    lines = sum(handler.lines for handler in clients.handlers)
                    peer.sendall(text)
                    await until(lambda: sum(handler.lines for handler in clients.handlers) > lines)

                first, mute, _ = [await arrive() for _ in range(3)]
                await say(first, b"hello\n")
                mute.sendall(b"half a li")
                third = await arrive()
                await say(third, b"hello\n")
                fourth = await arrive()
                assert [reason.done() for reason in (each.reason for each in clients.handlers)] == [
                    False, True, True, False, False,
                ]  # fmt: skip
                await say(fourth, b"hello\n")
                await say(first, b"again\n")
                await arrive()  # all three have just spoken
                assert len(clients.refused) == 1
                monkeypatch.setattr(tcp_clients, "KEEPS_PLACE_S", 0.0)
                await arrive()
                assert "has been silent for" in await clients.handlers[3].reason  # third

    asyncio.run(run())
    assert KEEPS_PLACE_S >= 0.5  # drivers send keep-alives at least every 500 ms
