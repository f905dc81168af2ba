# SPDX-License-Identifier: Apache-2.0
"""A single-threaded executor that looks at its nodes' entities once per callback instead of twice."""

import contextlib
from collections.abc import Iterator
from typing import Any

from rclpy.executors import SingleThreadedExecutor, TimeoutException


class FrugalExecutor(SingleThreadedExecutor):
    """Consumes its own wake-ups before it waits for entities.

    After each callback an rclpy executor triggers its guard condition, for other threads that may be waiting. So the
    next wait would return at once, for nothing, and rclpy takes 0.1 ms to prepare and evaluate a wait, 0.15 ms in a
    node with 60 services: about as much as a callback.
    """

    def _wait_for_ready_callbacks(self, *arguments: Any, **options: Any) -> Iterator[Any]:  # type: ignore[override]
        with contextlib.suppress(TimeoutException):
            yield from super()._wait_for_ready_callbacks(0.0, [])  # of no nodes: for the guard condition alone
        yield from super()._wait_for_ready_callbacks(*arguments, **options)
