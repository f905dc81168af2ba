# SPDX-License-Identifier: Apache-2.0
"""TCP links over real sockets: what is sent arrives, in full, whatever the other side does and however we leave."""

import contextlib
import os
import select
import socket
import threading

import pytest
from tcp_peer import (
    LONG_S,
    LOOPBACK,
    MEBIBYTE,
    NO_LEAKS,
    Task,
    connect,
    fill,
    read_to_the_end,
    receive,
    reset,
)

from drone_bridge.net.connector import LinkCancelledError, LinkError, LinkTimeoutError
from drone_bridge.net.tcp_listener import TcpListener

pytestmark = NO_LEAKS


# Both ways round.


def test_a_connected_stream_works_both_ways(connected):
    stream, peer = connected
    assert stream.peer == "{}:{}".format(*peer.getsockname())
    stream.send_all(b"ping", LONG_S)
    assert peer.recv(100) == b"ping"
    peer.sendall(b"pong")
    assert receive(stream) == b"pong"


@pytest.mark.parametrize("host", LOOPBACK)
def test_an_accepted_stream_works_both_ways(cancellation, host):
    listener = TcpListener(host, 0, cancellation, pytest.fail)
    assert listener.port > 0
    with connect(listener.port, host) as peer:
        stream = listener.open()
        host_text = f"[{host}]" if ":" in host else host
        assert stream.peer == f"{host_text}:{peer.getsockname()[1]}"
        stream.send_all(memoryview(b"ping"))
        assert peer.recv(100) == b"ping"
        peer.sendall(b"pong")
        assert receive(stream) == b"pong"
        stream.close()
    listener.close()


def test_received_bytes_fill_the_buffers_in_turn(connected):
    stream, peer = connected
    first, second, third = bytearray(3), bytearray(4), bytearray(5)
    peer.sendall(b"abcdefgh")
    assert stream.receive_into(*map(memoryview, (first, second, third)), timeout_s=LONG_S) == 8
    assert (first, second, third) == (b"abc", b"defg", b"h\0\0\0\0")


def test_small_messages_do_not_wait_for_each_other(connected, listener):
    with connect(listener.port):
        accepted = listener.open()
        for stream in (connected[0], accepted):
            assert stream._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            assert stream._socket.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        accepted.close()


def test_a_slow_reader_gets_large_data_complete(connected):
    stream, peer = connected
    data = os.urandom(4 * MEBIBYTE)
    sending = Task(stream.send_all, data, LONG_S)
    received = bytearray()
    while len(received) < len(data):
        received += peer.recv(300_000)
    sending.result()
    assert received == data


# Ends.


def test_the_peers_end_reads_as_zero_bytes_after_its_data(connected):
    stream, peer = connected
    peer.sendall(b"last")
    peer.shutdown(socket.SHUT_WR)
    assert [receive(stream), receive(stream), receive(stream)] == [b"last", b"", b""]


def test_a_reset_is_a_lost_connection(connected):
    stream, peer = connected
    name = stream.peer
    reset(peer)
    with pytest.raises(LinkError, match=f"The connection to {name} was lost: .*reset"):
        receive(stream)
    with pytest.raises(LinkError, match=f"The connection to {name} was lost: "):
        stream.send_all(b"more")


def test_closing_twice_is_harmless(connected):
    stream, peer = connected
    stream.close()
    stream.close()
    assert peer.recv(10) == b""


def test_receiving_from_a_silent_peer_times_out(connected):
    stream, _ = connected
    with pytest.raises(LinkTimeoutError, match=f"{stream.peer} sent nothing for 0.05 s"):
        receive(stream, timeout_s=0.05)


def test_sending_to_a_peer_that_does_not_read_times_out(connected):
    stream, _ = connected
    with pytest.raises(LinkTimeoutError, match=f"{stream.peer} took no data for 0.05 s"):
        stream.send_all(bytes(16 * MEBIBYTE), 0.05)


# Leaving.


def test_the_last_words_arrive_although_received_data_is_unread(connected):
    stream, peer = connected
    peer.sendall(bytes(50_000))
    select.select([stream._socket], [], [], LONG_S)
    leaving = Task(stream.leave, b"last words", LONG_S)
    assert read_to_the_end(peer) == b"last words"
    assert leaving.is_running, "it has not waited until the peer closes as well"
    peer.close()
    leaving.result()


def test_the_last_words_arrive_although_the_peer_is_still_sending(connected):
    stream, peer = connected
    stopped = threading.Event()

    def keep_sending():
        while not stopped.is_set():
            peer.sendall(bytes(100_000))

    sending = Task(keep_sending)
    receive(stream)
    leaving = Task(stream.leave, b"last words", LONG_S)
    assert read_to_the_end(peer) == b"last words"
    stopped.set()
    sending.result()
    peer.close()
    leaving.result()


def test_the_last_words_arrive_after_cancellation(connected, cancellation):
    stream, peer = connected
    cancellation.cancel()
    with pytest.raises(LinkCancelledError):
        stream.send_all(b"not a byte of this was sent, so none of it may follow")
    leaving = Task(stream.leave, b"last words", LONG_S)
    assert read_to_the_end(peer) == b"last words"
    peer.close()
    leaving.result()


def test_a_message_that_was_cut_short_is_completed_before_the_last_words(connected, cancellation):
    stream, peer = connected
    message = os.urandom(16 * MEBIBYTE)
    sending = Task(stream.send_all, message)
    assert peer.recv(1, socket.MSG_PEEK) == message[:1]
    cancellation.cancel()
    with pytest.raises(LinkCancelledError):
        sending.result()
    leaving = Task(stream.leave, b"last words", LONG_S)
    assert read_to_the_end(peer) == message + b"last words"
    peer.close()
    leaving.result()


@pytest.mark.parametrize("last_words", [b"", b"last words"])
def test_leaving_a_peer_that_does_not_close_is_bounded(connected, last_words):
    stream, peer = connected
    Task(stream.leave, last_words, 0.1).result()
    assert read_to_the_end(peer) == last_words


def test_leaving_a_peer_that_does_not_read_is_bounded(connected):
    stream, _ = connected
    fill(stream)
    Task(stream.leave, b"last words", 0.1).result()


def test_leaving_a_peer_that_never_stops_sending_is_bounded(connected):
    stream, peer = connected

    def keep_sending():
        with contextlib.suppress(ConnectionError):
            while True:
                peer.sendall(bytes(100_000))

    sending = Task(keep_sending)
    receive(stream)
    Task(stream.leave, b"last words", 0.1).result()
    sending.result()


def test_leaving_a_peer_that_has_gone_works(connected):
    stream, peer = connected
    reset(peer)
    Task(stream.leave, b"last words", 10 * LONG_S).result()  # long before a peer that is there would be given up
