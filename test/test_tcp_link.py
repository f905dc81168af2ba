# SPDX-License-Identifier: Apache-2.0
"""TCP links over real sockets: both ways round, peers that come late, go away, keep silent, and cancellation."""

import contextlib
import errno
import os
import select
import socket
import struct
import threading
import time

import pytest

from drone_bridge.links import tcp
from drone_bridge.links.backoff import Backoff
from drone_bridge.links.cancellation import Cancellation
from drone_bridge.links.errors import LinkCancelledError, LinkError, LinkTimeoutError
from drone_bridge.links.tcp import TcpConnector, TcpListener, TcpStream

# A socket that nobody closed is a defect even where the garbage collector finds it in time.
pytestmark = pytest.mark.filterwarnings("error::ResourceWarning", "error::pytest.PytestUnraisableExceptionWarning")

LONG_S = 10.0  # what has to happen at once gets this long on a busy machine
CANCELLATION_S = 0.5
MEBIBYTE = 1024 * 1024


def has_ipv6():
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


LOOPBACK = ["127.0.0.1", *["::1"] * has_ipv6()]


class Task:
    """Runs a function in a thread and keeps what came of it."""

    def __init__(self, function, *arguments):
        self._outcome = None
        self._thread = threading.Thread(target=self._run, args=[function, *arguments], daemon=True)
        self._thread.start()

    def _run(self, function, *arguments):
        try:
            self._outcome = function(*arguments), None
        except BaseException as error:
            self._outcome = None, error

    @property
    def is_running(self):
        return self._thread.is_alive()

    def result(self, timeout_s=LONG_S):
        self._thread.join(timeout_s)
        assert not self.is_running, f"still running after {timeout_s} s"
        result, error = self._outcome
        if error:
            raise error
        return result


def open_sockets():
    sockets = set()
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/self/fd/{name}").startswith("socket:"):
                sockets.add(int(name))
    return sockets


@pytest.fixture(autouse=True)
def nothing_is_left_behind():
    threads, sockets = set(threading.enumerate()), open_sockets()
    yield
    for thread in set(threading.enumerate()) - threads:
        thread.join(LONG_S)
    assert set(threading.enumerate()) <= threads
    assert open_sockets() <= sockets


@pytest.fixture
def cancellation():
    cancellation = Cancellation()
    yield cancellation
    cancellation.close()


@pytest.fixture
def listener(cancellation):
    """A listener of ours; the peers that it refused are in `listener.refused`."""
    refused = []
    listener = TcpListener("127.0.0.1", 0, cancellation, refused.append)
    listener.refused = refused
    yield listener
    cancellation.cancel()
    listener.close()


@pytest.fixture
def peer_listener():
    """A peer that listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(LONG_S)
        yield server


@pytest.fixture
def connected(peer_listener, cancellation):
    """A stream of ours and the peer's socket."""
    stream = connector(peer_listener, cancellation).open()
    peer = peer_listener.accept()[0]
    peer.settimeout(LONG_S)
    yield stream, peer
    peer.close()
    stream.close()


def ignore_failures(sentence, delay_s):
    pass


def connector(peer_listener, cancellation, on_failure=ignore_failures, **options):
    return TcpConnector("127.0.0.1", peer_listener.getsockname()[1], cancellation, on_failure, **options)


def connect(port, host="127.0.0.1"):
    return socket.create_connection((host, port), timeout=LONG_S)


def reset(peer):
    """Close so that the other side gets a reset."""
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.close()


def read_to_the_end(peer):
    data = bytearray()
    while piece := peer.recv(MEBIBYTE):
        data += piece
    return bytes(data)


def receive(stream, size=65536, timeout_s=LONG_S):
    buffer = bytearray(size)
    return bytes(buffer[: stream.receive_into(memoryview(buffer), timeout_s=timeout_s)])


def fill(stream):
    """Send until the peer, which does not read, takes no more."""
    with pytest.raises(LinkTimeoutError):
        stream.send_all(bytes(16 * MEBIBYTE), 0.05)


class FixedBackoff(Backoff):
    """Always the same delay; counts how often it was asked for."""

    def __init__(self, delay_s):
        super().__init__()
        self.asked = 0
        self._fixed_s = delay_s

    def next_delay_s(self):
        self.asked += 1
        return self._fixed_s


# Both ways round.


def test_connecting_gives_a_stream_both_ways(connected):
    stream, peer = connected
    assert stream.peer == "{}:{}".format(*peer.getsockname())
    stream.send_all(b"ping", LONG_S)
    assert peer.recv(100) == b"ping"
    peer.sendall(b"pong")
    assert receive(stream) == b"pong"


@pytest.mark.parametrize("host", LOOPBACK)
def test_listening_gives_a_stream_both_ways(cancellation, host):
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


def test_much_data_arrives_whole_at_a_slow_reader(connected):
    stream, peer = connected
    data = os.urandom(4 * MEBIBYTE)
    sending = Task(stream.send_all, data, LONG_S)
    received = bytearray()
    while len(received) < len(data):
        received += peer.recv(300_000)
    sending.result()
    assert received == data


# Ends.


def test_the_end_is_no_bytes_after_all_that_was_sent(connected):
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


def test_closing_twice_is_closing_once(connected):
    stream, peer = connected
    stream.close()
    stream.close()
    assert peer.recv(10) == b""


def test_a_peer_that_sends_nothing_is_given_up(connected):
    stream, _ = connected
    start_s = time.monotonic()
    with pytest.raises(LinkTimeoutError, match=f"{stream.peer} sent nothing for 0.05 s"):
        receive(stream, timeout_s=0.05)
    assert 0.04 < time.monotonic() - start_s < LONG_S


def test_a_peer_that_takes_no_data_is_given_up(connected):
    stream, _ = connected
    with pytest.raises(LinkTimeoutError, match=f"{stream.peer} took no data for 0.05 s"):
        stream.send_all(bytes(16 * MEBIBYTE), 0.05)


# Connecting.


def test_a_peer_that_is_absent_at_first_is_found_when_it_comes(free_port, cancellation):
    failures = []
    failed_twice = threading.Event()

    def on_failure(sentence, delay_s):
        failures.append((sentence, delay_s))
        if len(failures) == 2:
            failed_twice.set()

    opening = Task(TcpConnector("127.0.0.1", free_port, cancellation, on_failure, FixedBackoff(0.02)).open)
    assert failed_twice.wait(LONG_S)
    with socket.create_server(("127.0.0.1", free_port)) as server:
        opening.result().close()
        server.accept()[0].close()
    assert set(failures) == {(f"127.0.0.1:{free_port} can't be reached: Connection refused.", 0.02)}


def test_a_peer_that_accepts_and_closes_is_not_stormed(peer_listener, cancellation):
    backoff = FixedBackoff(0.01)
    link = connector(peer_listener, cancellation, backoff=backoff)
    for count in range(4):
        link.open().close()
        assert backoff.asked == count
    link.close()


@pytest.mark.parametrize("order", [("127.0.0.1", "127.0.0.2"), ("127.0.0.2", "127.0.0.1")])
def test_every_address_of_a_name_is_tried(monkeypatch, peer_listener, cancellation, order):
    resolve_to(monkeypatch, *((socket.AF_INET, host) for host in order))
    link = TcpConnector("localhost", peer_listener.getsockname()[1], cancellation, pytest.fail)
    stream = link.open()
    assert stream.peer == "{}:{}".format(*peer_listener.getsockname())
    stream.close()


@pytest.mark.parametrize("host", LOOPBACK)
def test_localhost_is_reached_when_one_family_listens_only(monkeypatch, cancellation, host):
    families = {"127.0.0.1": socket.AF_INET, "::1": socket.AF_INET6}
    resolve_to(monkeypatch, *((family, name) for name, family in families.items() if name in LOOPBACK))
    with socket.create_server((host, 0), family=families[host]) as server:
        link = TcpConnector("localhost", server.getsockname()[1], cancellation, pytest.fail)
        link.open().close()


def test_a_family_that_is_turned_off_is_passed_over(monkeypatch, peer_listener, cancellation):
    no_such_family = 9999
    resolve_to(monkeypatch, (no_such_family, "::1"), (socket.AF_INET, "127.0.0.1"))
    link = TcpConnector("localhost", peer_listener.getsockname()[1], cancellation, pytest.fail)
    link.open().close()


def resolve_to(monkeypatch, *families_and_hosts):
    def getaddrinfo(host, port, type):
        return [(family, type, 0, "", (name, port)) for family, name in families_and_hosts]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)


@pytest.mark.parametrize(
    ("host", "port"), [("a..b", 1), ("127.0.0.1\0", 1), ("x" * 64 + ".org", 1), ("127.0.0.1", 70000)]
)
def test_what_is_no_address_is_said_and_does_not_hang(cancellation, host, port):
    sentences = []

    def on_failure(sentence, delay_s):
        sentences.append(sentence)
        cancellation.cancel()

    with pytest.raises(LinkCancelledError):
        Task(TcpConnector(host, port, cancellation, on_failure).open).result()
    assert len(sentences) == 1
    assert sentences[0].startswith(f"{host}:{port} can't be reached: ")


def test_a_name_that_nobody_knows_is_said(monkeypatch, cancellation):
    def getaddrinfo(*arguments, **options):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    sentences = []

    def on_failure(sentence, delay_s):
        sentences.append(sentence)
        cancellation.cancel()

    with pytest.raises(LinkCancelledError):
        TcpConnector("testbed", 8000, cancellation, on_failure).open()
    assert sentences == ["testbed:8000 can't be reached: Name or service not known."]


def test_a_peer_that_does_not_answer_is_tried_again(monkeypatch, cancellation, unresponsive_port):
    monkeypatch.setattr(tcp, "CONNECT_TIMEOUT_S", 0.05)
    sentences = []

    def on_failure(sentence, delay_s):
        sentences.append(sentence)
        if len(sentences) == 2:
            cancellation.cancel()

    with pytest.raises(LinkCancelledError):
        TcpConnector("127.0.0.1", unresponsive_port, cancellation, on_failure, FixedBackoff(0)).open()
    assert sentences == 2 * [f"127.0.0.1:{unresponsive_port} can't be reached: no answer for 0.05 s."]


def test_a_port_that_meets_itself_is_no_peer(monkeypatch, free_port, cancellation):
    class Mirror(socket.socket):
        """Takes the port for its own that it then connects to, as may happen by chance with an ephemeral one."""

        def connect(self, address):
            self.bind(address)
            super().connect(address)

    monkeypatch.setattr(socket, "socket", Mirror)
    sentences = []

    def on_failure(sentence, delay_s):
        sentences.append(sentence)
        cancellation.cancel()

    with pytest.raises(LinkCancelledError):
        TcpConnector("127.0.0.1", free_port, cancellation, on_failure).open()
    assert sentences == [f"127.0.0.1:{free_port} can't be reached: nobody listens there."]


# Listening.


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


def test_a_peer_that_has_gone_before_it_was_accepted_is_passed_over(listener):
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


def test_running_out_of_descriptors_is_waited_out(monkeypatch, listener):
    monkeypatch.setattr(tcp, "ACCEPT_RETRY_S", 0.02)
    times_s = []

    class Exhausted:
        def __getattr__(self, name):
            return getattr(server, name)

        def accept(self):
            times_s.append(time.monotonic())
            if len(times_s) < 4:
                raise OSError(errno.EMFILE, "Too many open files")
            return server.accept()

    server = listener._socket
    listener._socket = Exhausted()
    with connect(listener.port):
        listener.open().close()
    assert len(times_s) == 4
    assert times_s[-1] - times_s[0] > 0.05


def test_a_port_that_is_taken_is_said(cancellation, peer_listener):
    port = peer_listener.getsockname()[1]
    with pytest.raises(LinkError) as refusal:
        TcpListener("127.0.0.1", port, cancellation, pytest.fail)
    assert str(refusal.value) == f"Can't listen on 127.0.0.1:{port}: Address already in use."


@pytest.mark.parametrize("host", ["192.0.2.1", "a..b", "1:2:3"])
def test_an_address_that_is_not_ours_is_said(cancellation, host):
    with pytest.raises(LinkError, match=r"Can't listen on \[?" + host + r"\]?:0: .*\.$"):
        TcpListener(host, 0, cancellation, pytest.fail)


@pytest.mark.parametrize("port", [-1, 65536])
def test_a_port_that_is_none_is_said(cancellation, port):
    with pytest.raises(LinkError, match=f"Can't listen on port {port}: it has to be from 0 to 65535"):
        TcpListener("127.0.0.1", port, cancellation, pytest.fail)


# Leaving.


def test_the_last_words_arrive_although_received_data_is_unread(connected):
    stream, peer = connected
    peer.sendall(bytes(50_000))
    select.select([stream._socket], [], [], LONG_S)
    leaving = Task(stream.leave, b"last words", LONG_S)
    assert read_to_the_end(peer) == b"last words"
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
def test_a_peer_that_does_not_close_is_left_in_time(connected, last_words):
    stream, peer = connected
    start_s = time.monotonic()
    Task(stream.leave, last_words, 0.1).result()
    assert 0.09 < time.monotonic() - start_s < 1
    assert read_to_the_end(peer) == last_words


def test_a_peer_that_does_not_read_is_left_in_time(connected):
    stream, _ = connected
    fill(stream)
    start_s = time.monotonic()
    Task(stream.leave, b"last words", 0.1).result()
    assert time.monotonic() - start_s < 1


def test_a_peer_that_never_stops_sending_is_left_in_time(connected):
    stream, peer = connected

    def keep_sending():
        with contextlib.suppress(ConnectionError):
            while True:
                peer.sendall(bytes(100_000))

    sending = Task(keep_sending)
    receive(stream)
    start_s = time.monotonic()
    Task(stream.leave, b"last words", 0.1).result()
    assert time.monotonic() - start_s < 1
    sending.result()


def test_a_peer_that_has_gone_can_be_left(connected):
    stream, peer = connected
    reset(peer)
    start_s = time.monotonic()
    Task(stream.leave, b"last words", LONG_S).result()
    assert time.monotonic() - start_s < LONG_S / 2


# Cancellation, wherever a thread may be waiting.


@pytest.fixture
def unresponsive_port():
    """A port that does not answer: its queue is full, and nobody accepts."""
    with contextlib.ExitStack() as sockets:
        server = sockets.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        while True:
            client = sockets.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(server.getsockname())
            if not select.select([], [client], [], 0.2)[1]:
                break
        yield server.getsockname()[1]


def assert_ends_when_cancelled(task, cancellation):
    assert task.is_running
    start_s = time.monotonic()
    cancellation.cancel()
    with pytest.raises(LinkCancelledError):
        task.result()
    assert time.monotonic() - start_s < CANCELLATION_S


def test_connecting_can_be_cancelled(cancellation, unresponsive_port):
    opening = Task(TcpConnector("127.0.0.1", unresponsive_port, cancellation, pytest.fail).open)
    threading.Event().wait(0.05)  # whether it is in connect by now can't be seen from outside
    assert_ends_when_cancelled(opening, cancellation)


def test_backing_off_can_be_cancelled(cancellation, free_port):
    failed = threading.Event()
    link = TcpConnector("127.0.0.1", free_port, cancellation, lambda *_: failed.set(), FixedBackoff(60))
    opening = Task(link.open)
    assert failed.wait(LONG_S)
    assert_ends_when_cancelled(opening, cancellation)


def test_waiting_to_connect_again_can_be_cancelled(cancellation, peer_listener):
    link = connector(peer_listener, cancellation, backoff=FixedBackoff(60))
    link.open().close()
    assert_ends_when_cancelled(Task(link.open), cancellation)


def test_looking_up_a_name_can_be_cancelled(monkeypatch, cancellation):
    asked, answered = threading.Event(), threading.Event()

    def getaddrinfo(*arguments, **options):
        asked.set()
        answered.wait(LONG_S)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    opening = Task(TcpConnector("far.example", 1, cancellation, pytest.fail).open)
    assert asked.wait(LONG_S)
    assert_ends_when_cancelled(opening, cancellation)
    answered.set()


def test_listening_can_be_cancelled(cancellation, listener):
    assert_ends_when_cancelled(Task(listener.open), cancellation)


def test_refusing_others_can_be_cancelled(cancellation, listener):
    with connect(listener.port):
        stream = listener.open()
        cancellation.cancel()
        start_s = time.monotonic()
        listener.close()  # waits for the thread that refuses
        assert time.monotonic() - start_s < CANCELLATION_S
        stream.close()


def test_receiving_can_be_cancelled(cancellation, connected):
    assert_ends_when_cancelled(Task(receive, connected[0]), cancellation)


def test_receiving_can_be_cancelled_while_data_streams_in(cancellation, connected):
    stream, peer = connected

    def keep_sending():
        with contextlib.suppress(ConnectionError):
            while True:
                peer.sendall(bytes(100_000))

    def keep_receiving():
        while True:
            receive(stream)

    sending, receiving = Task(keep_sending), Task(keep_receiving)
    assert_ends_when_cancelled(receiving, cancellation)
    stream.close()
    sending.result()


def test_sending_to_a_peer_that_does_not_read_can_be_cancelled(cancellation, connected):
    stream, _ = connected
    sending = Task(stream.send_all, bytes(16 * MEBIBYTE))
    assert_ends_when_cancelled(sending, cancellation)


def test_what_begins_after_cancellation_ends_at_once(cancellation, connected, listener, peer_listener):
    cancellation.cancel()
    cancellation.cancel()
    assert cancellation.is_set
    assert cancellation.wait(LONG_S)
    peer_listener.settimeout(0.05)
    for waiting in (
        listener.open,
        connector(peer_listener, cancellation).open,
        lambda: receive(connected[0]),
        lambda: connected[0].send_all(b"x"),
    ):
        with pytest.raises(LinkCancelledError):
            waiting()


def test_waiting_without_cancellation_ends_in_time(cancellation):
    start_s = time.monotonic()
    assert not cancellation.wait(0.05)
    assert 0.04 < time.monotonic() - start_s < LONG_S


def test_many_connections_leave_nothing_behind(cancellation, listener):
    for _ in range(30):
        link = TcpConnector("127.0.0.1", listener.port, cancellation, pytest.fail)
        outgoing = link.open()
        incoming = listener.open()
        outgoing.send_all(b"x")
        assert receive(incoming) == b"x"
        outgoing.close()
        incoming.close()
