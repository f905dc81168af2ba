# SPDX-License-Identifier: Apache-2.0
"""What can go wrong in a conversation, by who did it."""


class ProtocolError(Exception):
    """The protocol was broken; the text is a human-readable sentence."""


class LocalProtocolError(ProtocolError):
    """Our side was about to send what the protocol does not allow. Nothing was sent."""


class RemoteProtocolError(ProtocolError):
    """The peer sent what the protocol does not allow. Its bytes can't be trusted from here on."""
