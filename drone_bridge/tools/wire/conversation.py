# SPDX-License-Identifier: Apache-2.0
"""A recorded conversation from any source: its two sides, and the data of both directions in order."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

from drone_bridge.kind import ProtocolKind, Side, kinds


class WireError(Exception):
    """What was asked for can't be done; the text is a sentence."""


class Entry(NamedTuple):
    """A piece of a stream or a datagram, as it went over the wire; without a sender, a note of the log itself."""

    time_ns: int  # since 1970
    sender: Side | None
    peer: str  # of the node that wrote the log
    data: bytes | memoryview  # none at all is the end of a stream
    is_left_out: bool = False  # pixels that the log is without: zeros in their place

    @property
    def note(self) -> str:
        return str(self.data, errors="replace")


@dataclass(frozen=True, slots=True)
class Connection:
    """The two ends of a connection, and what is needed to decode it."""

    protocol: str
    transport: str  # tcp or udp
    side: Side  # who wrote the log
    own: str = ""  # addresses
    peer: str = ""
    name: str = ""
    started: str = ""  # ISO 8601
    part: int = 1
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_stream(self) -> bool:
        """Whether what goes over the wire in pieces is one stream in each direction."""
        return self.transport == "tcp"

    @property
    def kind(self) -> ProtocolKind:
        return kinds()[self.protocol]

    def role(self, side: Side) -> str:
        """Return what the protocol calls a side."""
        return self.kind.role(side).name

    def side_of(self, role: str) -> Side:
        """Return the side of a role. Raises WireError."""
        for side in Side:
            if role in (side.value, self.role(side)):
                return side
        operator, vehicle = map(self.role, Side)
        raise WireError(f"The {self.protocol} protocol has no role {role!r}, only {operator} and {vehicle}.")

    def facts(self) -> dict[str, str]:
        """Return the metadata of a file."""
        facts = {each.name: getattr(self, each.name) for each in fields(self)}
        return {
            **facts,
            "side": self.side.value,
            "parameters": json.dumps(dict(self.parameters)),
            "part": str(self.part),
        }

    @classmethod
    def from_facts(cls, facts: Mapping[str, str]) -> "Connection":
        """Read what `facts` has written. Raises WireError."""
        try:
            protocol, transport = facts["protocol"], facts["transport"]
            if protocol not in kinds() or transport not in ("tcp", "udp"):
                raise WireError(f"The log is of {protocol!r} over {transport!r}, which is not supported here.")
            texts = {each.name: facts[each.name] for each in fields(cls)}
            side, parameters, part = Side(facts["side"]), json.loads(facts["parameters"]), int(facts["part"])
            return cls(**{**texts, "side": side, "parameters": parameters, "part": part})
        except (KeyError, ValueError) as error:
            raise WireError(f"The log does not say whose bytes it holds ({type(error).__name__}: {error}).") from error
