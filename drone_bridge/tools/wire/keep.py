# SPDX-License-Identifier: Apache-2.0
"""drone-bridge wire keep: the last minute of a log without what is private, for others.

What is taken out becomes x and 0 of the same length, so that messages stay messages. Texts are found by what stands
before them, such as `serial` or `password`. Whatever else is private has to be named by --remove.
"""

import argparse
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from drone_bridge.kind import Side
from drone_bridge.net.connector import RECEIVED, SENT, LinkError
from drone_bridge.net.wire_log import HEAD_BYTES, MINUTE_S, facts_of
from drone_bridge.net.wire_log_file import CONNECTIONS, Entry, WireLogFile
from drone_bridge.tools.wire.log_file import LogEntry, LogSource, WireError

_IS = rb"[\"' :=,]{1,64}"  # between a name and its value
#: What is taken out: the group of its pattern.
PRIVATE = {
    "logins": rb"(?i)(?:(?:pass(?:word|wd|phrase)?|psk|login|user(?:name)?|token)" + _IS + rb"|^(?:wifi|ap) \S+ )"
    rb"([^\s\"';,]+)",
    "addresses": rb"((?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.])|(?<!\w)(?:[\dA-Fa-f]{2}[:-]){5}[\dA-Fa-f]{2}(?!\w))",
    "serial numbers": rb"(?i)(?:serial(?:[ _]?n\w{0,32})?|\b(?:sn|uuid|udid))" + _IS + rb"([\w-]{4,})",
    "network names": rb"(?i)(?:\be?ssid\w{0,32}" + _IS + rb"|^(?:wifi|ap) )([^\r\n\"';,]+)",
}
#: A request for a serial number, by text. The next packet of the robot is one.
ASKS_SERIAL = re.compile(rb"(?i)\b(?:sn|serial\w*) *\?")
#: A picture in a datagram, also in base64.
PICTURE = re.compile(rb"\xff\xd8\xff|/9j/[A-Za-z\d+/]{100}")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("name", help="of the new file NAME.mcap, such as tello_firmware_2_5")
    parser.add_argument("--remove", action="append", default=[], metavar="TEXT", help="take this out, too")


def keep(source: LogSource, entries: Iterable[LogEntry], options: argparse.Namespace) -> Iterator[str]:
    """Write the minute. Yield sentences about it. Raises WireError and OSError."""
    path = Path(f"{options.name}.mcap")
    if path.exists():
        raise WireError(f"{path} exists: remove it, or give another name.")
    found = Counter[str]()
    patterns = PRIVATE | {repr(each): b"(" + re.escape(each.encode()) + b")" for each in options.remove}
    kept = _last_minute([each for each in entries if not _is_picture(each, found)])
    kept = _without_private(_without_serials(kept, found), patterns, found)
    # Texts among a node's parameters are addresses, places and names.
    told = {name: value for name, value in source.parameters.items() if name == "role" or not isinstance(value, str)}
    try:
        file = WireLogFile(path.parent, path.stem, facts_of(source.kind.name, source.side, path.stem, told), 0.0)
    except LinkError as error:
        raise WireError(str(error)) from None
    problem = file.write(_file_entries(source, kept), 1 << 30)
    file.close()
    file.path.rename(path)
    taken = ", ".join(f"{number} {what}" for what, number in found.items() if number) or "nothing"
    yield problem or f"{path} has {len(kept)} entries of {source.kind.name}. Taken out, beside hosts: {taken}."
    yield "Look at it before you send it, by `drone-bridge wire show` with --raw."


def _is_picture(entry: LogEntry, found: Counter[str]) -> bool:
    is_one = not entry.connection.is_conversation or bool(PICTURE.search(entry.data) and not entry.connection.is_stream)
    found["pictures"] += is_one
    return is_one


def _last_minute(entries: Sequence[LogEntry]) -> list[LogEntry]:
    """Return the last minute and the beginning of each connection, as a saved minute has them."""
    begin_ns = entries[-1].time_ns - MINUTE_S * 10**9 if entries else 0
    heads, gaps, kept = Counter[int](), dict[tuple[int, Side], LogEntry](), list[LogEntry]()
    for entry in entries:
        key, size = (entry.connection.number, entry.sender), len(entry.data) + entry.omitted
        heads[key[0]] += size
        if entry.time_ns < begin_ns and heads[key[0]] > HEAD_BYTES:
            gap = gaps.setdefault(key, entry._replace(data=b"", omitted=0, is_gap=True))
            gaps[key] = gap._replace(omitted=gap.omitted + size)
            continue
        if entry.time_ns >= begin_ns:
            kept += gaps.values()
            gaps.clear()
        kept.append(entry)
    return kept


def _without_serials(entries: Iterable[LogEntry], found: Counter[str]) -> Iterator[LogEntry]:
    """Yield entries with blank answers to requests for serial numbers."""
    asked = set[int]()
    for entry in entries:
        number, is_answer = entry.connection.number, entry.sender is Side.VEHICLE and entry.connection.number in asked
        if entry.sender is Side.OPERATOR and ASKS_SERIAL.search(entry.data):
            asked.add(number)
        asked -= {number} if is_answer else set()
        found["serial numbers"] += is_answer
        yield entry._replace(data=_blank(entry.data)) if is_answer else entry


def _without_private(entries: Iterable[LogEntry], patterns: dict[str, bytes], found: Counter[str]) -> list[LogEntry]:
    """Return entries with blanks for what matches. A stream is searched as a whole."""
    kept, pieces = list(entries), defaultdict[object, list[int]](list)
    for number, entry in enumerate(kept):
        pieces[(entry.connection.number, entry.sender) if entry.connection.is_stream else number].append(number)
    for numbers in pieces.values():
        data = bytearray(b"".join(kept[each].data for each in numbers))
        for what, pattern in patterns.items():
            for match in re.finditer(pattern, bytes(data), re.MULTILINE):
                data[match.start(1) : match.end(1)] = _blank(match[1])
                found[what] += 1
        for each in numbers:
            size = len(kept[each].data)
            kept[each] = kept[each]._replace(data=bytes(data[:size]))
            del data[:size]
    return kept


def _blank(data: bytes) -> bytes:
    return re.sub(rb"[A-Za-z]", b"x", re.sub(rb"\d", b"0", data))


def _file_entries(source: LogSource, entries: Sequence[LogEntry]) -> Iterator[Entry]:
    """Yield the entries of a file, without hosts, with times from 0 on."""
    begun = set[int]()
    for entry in entries:
        time_ns, (number, transport, *ends, _) = entry.time_ns - entries[0].time_ns, entry.connection
        if number not in begun:
            begun.add(number)
            own, peer = (f":{each.rpartition(':')[2] if transport != 'serial' else ''}" for each in ends)
            said = {"number": number, "transport": transport, "own": f"ours{own}", "peer": f"theirs{peer}"}
            yield time_ns, time_ns, CONNECTIONS, number, json.dumps(said).encode()
        data = (-entry.omitted if entry.is_gap else entry.omitted) or entry.data
        yield time_ns, time_ns, SENT if entry.sender is source.side else RECEIVED, number, data
