# SPDX-License-Identifier: Apache-2.0
"""Errors of a conversation, by who caused them."""


class ProtocolError(Exception):
    """A violation of the protocol; the text is a human-readable sentence."""


class LocalProtocolError(ProtocolError):
    """Our side tried to send what the protocol does not allow. Nothing was sent."""


class RemoteProtocolError(ProtocolError):
    """The peer sent what the protocol does not allow. Its later bytes can't be trusted."""
