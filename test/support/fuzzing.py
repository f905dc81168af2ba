# SPDX-License-Identifier: Apache-2.0
"""Fuzzing of every codec, in both roles, with mutations of conversations and captures, split anywhere.

Each input must give events or RemoteProtocolError, and terminate. Any failure is recorded with the seed that
reproduces it.
"""

import contextlib
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from repository import CAPTURES

from drone_bridge.kind import ProtocolKind, Side, kinds, load
from drone_bridge.wire.events import NEED_DATA, ConnectionClosed, LocalProtocolError, RemoteProtocolError

MAX_EVENTS = 10_000  # of one input: more than its bytes can encode
MAX_INPUT_BYTES = 4096  # of a stream: a window of a capture, which is much longer
MAX_SLICES = 8
INTERESTING = (0, 1, 0x7F, 0x80, 0xFE, 0xFF)


@dataclass(frozen=True)
class Seed:
    """Input of one end, and the messages that it had sent by then."""

    read: tuple[bytes, ...]  # one for a stream, or datagrams
    sent: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Target:
    """One end of a protocol."""

    name: str
    connect: Callable[[], Any]
    seeds: tuple[Seed, ...]
    is_stream: bool = True

    def make(self, seed: Seed) -> Any:
        """Return a connection that has sent all that it may before reading."""
        connection = self.connect()
        for message in seed.sent:
            try:
                connection.send(message)
            except LocalProtocolError:
                break
        return connection


def targets() -> Iterator[Target]:
    """Yield both ends of every protocol, with its conversation and its captures to mutate."""
    for kind in kinds().values():
        for side in Side:
            seeds = [_conversation(kind, side)]
            if captured := _captured(kind, side):
                seeds.append(Seed(captured, tuple(_understood(kind, side.other))))
            name = f"{kind.name} {kind.role(side).name}"
            yield Target(name, partial(kind.connect, side), tuple(seeds), kind.is_stream)


def _conversation(kind: ProtocolKind, side: Side) -> Seed:
    connections = {each: kind.connect(each) for each in Side}
    read, sent = [], []
    for each in load(kind.conversation)():
        data = connections[each.side].send(each.message)
        connections[each.side.other].receive_data(data)
        list(connections[each.side.other].events())
        if each.side is side:
            sent.append(each.message)
        else:
            read.append(data)
    return Seed((b"".join(read),) if kind.is_stream else tuple(read), tuple(sent))


def _understood(kind: ProtocolKind, reader: Side) -> Iterator[Any]:
    """Yield the input of one end in its captures, if it is valid without its own messages."""
    connection = kind.connect(reader)
    with contextlib.suppress(RemoteProtocolError):
        for data in _captured(kind, reader):
            connection.receive_data(data)
            yield from connection.events()


def _captured(kind: ProtocolKind, reader: Side) -> tuple[bytes, ...]:
    """Return captured input of one end: the bytes of a stream, or datagrams, one per line."""
    roles = f"{kind.role(reader.other).name}_to_{kind.role(reader).name}"
    if kind.is_stream:
        return tuple(file.read_bytes() for file in CAPTURES.glob(f"{roles}.bin"))
    return tuple(line for file in CAPTURES.glob(f"{roles}*.jsonl") for line in file.read_bytes().splitlines())


def mutated(data: bytes, chance: random.Random) -> bytes:
    """Return the data with some bytes changed, removed, repeated, inserted, or truncated."""
    result = bytearray(data)
    for _ in range(chance.randint(0, 6)):
        place = chance.randrange(len(result) + 1)
        length = chance.choice((1, 1, 2, 4, 8, 64))
        kind = chance.randrange(6)
        if kind == 0:
            del result[place : place + length]
        elif kind == 1:
            result[place:place] = chance.randbytes(length)
        elif kind == 2:
            result[place:place] = result[max(0, place - length) : place]
        elif kind == 3:
            result[place : place + length] = bytes([chance.choice(INTERESTING)]) * length
        elif kind == 4 and place < len(result):
            result[place] ^= 1 << chance.randrange(8)
        elif kind == 5 and chance.random() < 0.3:
            del result[place:]
    return bytes(result)


def pieces(data: bytes, chance: random.Random) -> list[bytes]:
    """Return the data whole, or split at random places."""
    if chance.random() < 0.5:
        return [data]
    cuts = sorted(chance.randrange(len(data) + 1) for _ in range(chance.randint(1, MAX_SLICES)))
    return [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]


def feed(target: Target, seed: Seed, parts: list[bytes]) -> str:
    """Return the outcome: events or refused. Raises any other exception of the codec."""
    connection = target.make(seed)
    count, outcome = 0, "events"
    for part in parts:
        connection.receive_data(part)
        count, outcome = _drain(connection, target, count, outcome)
    if target.is_stream:
        connection.receive_eof()
        count, outcome = _drain(connection, target, count, outcome)
    return outcome


def _drain(connection: Any, target: Target, count: int, outcome: str) -> tuple[int, str]:
    while True:
        try:
            event = connection.next_event()
        except RemoteProtocolError:
            if target.is_stream:
                return count, "refused"
            outcome = "refused"
            continue
        if event is NEED_DATA or isinstance(event, ConnectionClosed):
            return count, outcome
        count += 1
        if count > MAX_EVENTS:
            raise AssertionError(f"more than {MAX_EVENTS} events, and no end")


def run(target: Target, inputs: int, seed: int) -> tuple[int, float, list[str]]:
    """Return the number of refused inputs, the slowest time in s, and failures."""
    refused, slowest_s, wrong = 0, 0.0, []
    for number in range(inputs):
        chance = random.Random(f"{seed} {target.name} {number}")
        source = chance.choice(target.seeds)
        data = chance.choice(source.read)
        if target.is_stream:
            data = data[: chance.randint(1, MAX_INPUT_BYTES)]
        data = mutated(data, chance)
        parts = pieces(data, chance) if target.is_stream else [data]
        started_s = time.perf_counter()
        try:
            refused += feed(target, source, parts) == "refused"
        except Exception as error:  # the faults under test
            wrong.append(f"{target.name}, seed {seed}, input {number}: {type(error).__name__}: {error}; {data.hex()}")
        slowest_s = max(slowest_s, time.perf_counter() - started_s)
    return refused, slowest_s, wrong
