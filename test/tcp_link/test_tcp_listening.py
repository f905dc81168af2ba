# SPDX-License-Identifier: Apache-2.0
"""Listening for one peer at a time."""

import contextlib
import errno
import socket
import threading

import pytest
from tcp_peer import LONG_S, LOOPBACK, NO_LEAKS, connect, receive, reset

from drone_bridge.net import tcp_listener
from drone_bridge.net.connector import LinkError, wait_readable
from drone_bridge.net.tcp import TcpStream
from drone_bridge.net.tcp_listener import TcpListener

pytestmark = NO_LEAKS


def test_a_second_peer_is_refused_and_the_first_is_not_disturbed(listener):
    with connect(listener.port) as first:
        stream = listener.open()
        names = []
        for _ in range(3):
            with connect(listener.port) as other:
                names.append("{}:{}".format(*other.getsockname()))
                with contextlib.suppress(ConnectionResetError):
                    assert other.recv(10) == b""
            stream.send_all(b"still")
            assert first.recv(10) == b"still"
            first.sendall(b"here")
            assert receive(stream) == b"here"
        assert listener.refused == names
        stream.close()


def test_the_next_peer_is_accepted_when_the_first_has_left(listener):
    for _ in range(5):
        with connect(listener.port) as peer:
            stream = listener.open()
            peer.sendall(b"hello")
            assert receive(stream) == b"hello"
        assert receive(stream) == b""
        stream.close()
    assert not listener.refused


@pytest.mark.parametrize("unread", [b"", b"last words"])
@pytest.mark.parametrize("leave", [socket.socket.close, reset])
def test_a_peer_that_reconnects_before_its_disconnect_was_noticed_is_served(listener, leave, unread):
    first = connect(listener.port)
    stream = listener.open()
    first.sendall(unread)
    leave(first)
    with connect(listener.port) as again:
        again.sendall(b"hello")
        assert not wait_readable([again], 0.3)[0]  # a refusal would end it
        stream.close()
        stream = listener.open()
        assert receive(stream) == b"hello"
        stream.close()
    assert not listener.refused


def test_a_peer_that_reconnects_at_once_is_served(listener):
    peer = connect(listener.port)
    for _ in range(20):
        stream = listener.open()
        threading.Thread(target=stream.close).start()
        assert peer.recv(1) == b""
        peer.close()
        peer = connect(listener.port)
    peer.close()
    assert not listener.refused


def test_a_peer_that_waited_while_the_first_was_closed_is_served(listener):
    with connect(listener.port) as first:
        stream = listener.open()
        assert first
        stream.close()
    with connect(listener.port) as waiting:
        waiting.sendall(b"hello")
        stream = listener.open()
        assert receive(stream) == b"hello"
        stream.close()


def test_a_peer_that_left_before_it_was_accepted_is_skipped(listener):
    for _ in range(3):
        reset(connect(listener.port))
    with connect(listener.port) as peer:
        peer.sendall(b"hello")
        received = b""
        while not received:
            stream = listener.open()
            with contextlib.suppress(LinkError):  # some systems tell of the reset only now
                received = receive(stream)
            stream.close()
        assert received == b"hello"


def test_a_socket_whose_peer_has_gone_is_closed(cancellation):
    with socket.create_server(("127.0.0.1", 0)) as server:
        unconnected = socket.socket()
        with pytest.raises(OSError, match="not connected"):
            TcpStream(unconnected, cancellation)
        assert unconnected.fileno() == -1
        assert server


def test_a_silent_peer_loses_its_place_to_the_next_one_that_connects(listener):
    allowed_s = [1e9]
    listener._allowed_silence_s = lambda: allowed_s[0]
    with connect(listener.port) as silent, connect(listener.port) as too_early:
        stream = listener.open()
        assert wait_readable([too_early], LONG_S)[0]  # refused
        allowed_s[0] = 0.0
        with connect(listener.port) as next_one:
            with pytest.raises(
                LinkError, match=rf"was silent for \d\.\d s, and is replaced by .*:{next_one.getsockname()[1]}"
            ):
                stream.receive_into(memoryview(bytearray(1)))
            stream.leave(b"last words", LONG_S)
            assert silent.recv(64) == b"last words"
            stream = listener.open()
            next_one.sendall(b"hello")
            assert receive(stream) == b"hello"
            stream.close()
    assert len(listener.refused) == 1


def test_who_never_said_anything_loses_its_place_soon(monkeypatch, listener):
    """By default a peer may be silent for ever, but not from the start."""
    monkeypatch.setattr(tcp_listener, "FIRST_MESSAGE_S", 0.0)
    with connect(listener.port), connect(listener.port) as talker:
        stream = listener.open()
        with pytest.raises(LinkError, match="is replaced by"):
            stream.receive_into(memoryview(bytearray(1)))
        stream.close()
        stream = listener.open()
        talker.sendall(b"hello")
        assert receive(stream) == b"hello"
        with connect(listener.port) as too_many:
            assert wait_readable([too_many], LONG_S)[0]  # refused
        talker.sendall(b"again")
        assert receive(stream) == b"again"
        stream.close()


def test_a_waiting_successor_is_closed_with_the_listener(cancellation):
    listener = TcpListener("127.0.0.1", 0, cancellation, pytest.fail, allowed_silence_s=lambda: 0.0)
    with connect(listener.port), connect(listener.port) as next_one:
        stream = listener.open()
        with pytest.raises(LinkError, match="is replaced by"):
            stream.receive_into(memoryview(bytearray(1)))
        stream.close()
        cancellation.cancel()
        listener.close()
        with contextlib.suppress(ConnectionResetError):
            assert next_one.recv(1) == b""


def test_running_out_of_file_descriptors_is_survived(monkeypatch, listener):
    monkeypatch.setattr(tcp_listener, "ACCEPT_RETRY_S", 0.02)
    attempts, pauses_s = [], []

    class Exhausted:
        def __getattr__(self, name):
            return getattr(server, name)

        def accept(self):
            attempts.append(self)
            if len(attempts) < 4:
                raise OSError(errno.EMFILE, "Too many open files")
            return server.accept()

    def pause(files, timeout_s):
        if timeout_s is not None:
            pauses_s.append(timeout_s)
        return wait_readable(files, timeout_s)

    monkeypatch.setattr(tcp_listener, "wait_readable", pause)
    server = listener._socket
    listener._socket = Exhausted()
    with connect(listener.port):
        listener.open().close()
    assert len(attempts) == 4
    assert pauses_s == 3 * [0.02]


def test_a_port_in_use_is_reported(cancellation, peer_listener):
    port = peer_listener.getsockname()[1]
    with pytest.raises(LinkError) as refusal:
        TcpListener("127.0.0.1", port, cancellation, pytest.fail)
    assert str(refusal.value) == f"Can't listen on 127.0.0.1:{port}: Address already in use."


@pytest.mark.parametrize("host", ["192.0.2.1", "a..b", "1:2:3"])
def test_an_address_of_another_machine_is_reported(cancellation, host):
    with pytest.raises(LinkError, match=r"Can't listen on \[?" + host + r"\]?:0: .*\.$"):
        TcpListener(host, 0, cancellation, pytest.fail)


@pytest.mark.skipif("::1" not in LOOPBACK, reason="there is no IPv6 here")
@pytest.mark.parametrize("host", ["::", "0::0", "0:0:0:0:0:0:0:0"])
def test_all_interfaces_of_ipv6_are_those_of_ipv4_as_well(cancellation, closing, host):
    listener = closing(TcpListener(host, 0, cancellation, pytest.fail))
    for peer_host, shown in (("127.0.0.1", "127.0.0.1"), ("::1", "[::1]")):
        with connect(listener.port, peer_host) as peer:
            stream = closing(listener.open())
            assert stream.peer == f"{shown}:{peer.getsockname()[1]}"
            peer.sendall(b"hello")
            assert receive(stream) == b"hello"


@pytest.mark.skipif("::1" not in LOOPBACK, reason="there is no IPv6 here")
@pytest.mark.parametrize(("host", "others"), [("::1", "127.0.0.1"), ("127.0.0.1", "::1"), ("localhost", "::1")])
def test_one_address_is_that_of_one_version(cancellation, closing, host, others):
    listener = closing(TcpListener(host, 0, cancellation, pytest.fail))
    connect(listener.port, host).close()
    with pytest.raises(ConnectionRefusedError):
        connect(listener.port, others)


@pytest.mark.parametrize("port", [-1, 65536])
def test_an_invalid_port_is_reported(cancellation, port):
    with pytest.raises(LinkError, match=f"Can't listen on port {port}: it has to be from 0 to 65535"):
        TcpListener("127.0.0.1", port, cancellation, pytest.fail)


def test_an_empty_host_does_not_mean_all_interfaces(cancellation):
    with pytest.raises(LinkError, match=r"Can't listen on no host: to listen on all interfaces, name 0\.0\.0\.0\."):
        TcpListener("", 0, cancellation, pytest.fail)
