# SPDX-License-Identifier: Apache-2.0
"""WaitingMessages: polled subscription without DDS."""


class WaitingMessages:
    """Subscription and its handle, with untaken messages."""

    raw = False

    def __init__(self, msg_type, qos_profile, messages):
        self.msg_type, self.qos_profile, self.handle = msg_type, qos_profile, self
        self._messages = messages

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def take_message(self, msg_type, raw):
        message = self._messages.pop(0) if self._messages else None
        return message if message is None or isinstance(message, tuple) else (message, {})  # perhaps with its info
