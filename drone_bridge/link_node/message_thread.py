# SPDX-License-Identifier: Apache-2.0
"""A thread that takes the messages of a few subscriptions which have to be quick.

Before each wait, rclpy's executor collects every subscription, timer, service and event of its node, and afterwards
asks each of them whether it is ready. That takes longer than to receive an image (see benchmark/README.md). Here only
the few are waited for.
"""

import threading
import traceback
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, NamedTuple

from rclpy.callback_groups import CallbackGroup
from rclpy.guard_condition import GuardCondition
from rclpy.impl.implementation_singleton import rclpy_implementation

if TYPE_CHECKING:
    from rclpy.context import Context
    from rclpy.subscription import Subscription

_FOREVER_NS = -1


class MessageThread:
    """Calls the callbacks of its subscriptions, one at a time. They may raise; the next message comes all the same."""

    def __init__(self, name: str, context: "Context", on_failure: Callable[[str], None]) -> None:
        """`on_failure` gets the traceback of what a callback raises."""
        self._context = context
        self._on_failure = on_failure
        self._taken: tuple[_Taken, ...] = ()  # replaced as one
        self._news = GuardCondition(None, None, context=context)
        self._is_stopping = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def add(self, subscription: "Subscription[Any]") -> None:
        """Take a subscription from the executor, whose events, such as those of QoS, are left there.

        Once the executor serves the node, this is for its thread.
        """
        subscription.callback_group = _NotForExecutors()
        callback: Any = subscription.callback  # which may also be one that wants a MessageInfo, says its type
        self._taken = (*self._taken, _Taken(subscription.handle, subscription.msg_type, callback))
        self._news.trigger()

    def start(self) -> None:
        """Begin to call."""
        self._thread.start()

    def stop(self) -> None:
        """Stop, once a call that is under way has returned."""
        if self._thread.is_alive():
            self._is_stopping = True
            self._news.trigger()
            self._thread.join()
        self._news.destroy()

    def _run(self) -> None:
        while not self._is_stopping and self._context.ok():
            self._serve(self._taken)

    def _serve(self, subscriptions: "tuple[_Taken, ...]") -> None:
        """Take the messages of these until stopped, or until there are others."""
        news, context = self._news.handle, self._context.handle
        assert context
        with ExitStack() as held:  # so that nothing is destroyed that is waited for
            for handle in (context, news, *(taken.handle for taken in subscriptions)):
                held.enter_context(handle)
            wait_set = rclpy_implementation.WaitSet(len(subscriptions), 1, 0, 0, 0, 0, context)
            while subscriptions is self._taken and not self._is_stopping and self._context.ok():
                wait_set.clear_entities()
                for taken in subscriptions:
                    wait_set.add_subscription(taken.handle)
                wait_set.add_guard_condition(news)
                wait_set.wait(_FOREVER_NS)
                for index, taken in enumerate(subscriptions):
                    if wait_set.is_ready("subscription", index):
                        self._take(taken)

    def _take(self, taken: "_Taken") -> None:
        try:
            if message := taken.handle.take_message(taken.message_type, False):
                taken.callback(message[0])
        except Exception:
            self._on_failure(traceback.format_exc())


class _Taken(NamedTuple):
    handle: Any  # the subscription's, of rclpy's C++ part
    message_type: type
    callback: Callable[[Any], Any]


class _NotForExecutors(CallbackGroup):
    """Executors wait only for what its group lets them execute."""

    def can_execute(self, entity: Any) -> bool:
        return False

    def beginning_execution(self, entity: Any) -> bool:
        return False

    def ending_execution(self, entity: Any) -> None:
        pass
