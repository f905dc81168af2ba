# SPDX-License-Identifier: Apache-2.0
"""Tasks on the link's thread: generators that yield what they want of the simulator, and a loop that gets it for them.

def spawn_quietly(session, request):
added = yield sim.AddEntity(...)  # the answer; an Error is raised here as RefusedError
yield [sim.SetEntity(added.id, ...), sim.SetEntity(added.id, ...)]  # sent together; a list of answers
yield EntityStream(added.id, 1)  # a desired item, kept across connections; the answer that says its ID
return added.id  # the task's value
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from drone_bridge.bridges.simulator.desired_items import DesiredItem
from drone_bridge.bridges.simulator.link import Outcome
from drone_bridge.bridges.simulator.session import SimulatorSession
from drone_bridge.link_node.link_requests import ServiceResult
from drone_bridge.protocols import simulator as sim
from drone_bridge.protocols.errors import LocalProtocolError
from drone_bridge.translate.simulator_errors import explanation

NO_ANSWER: Final = -1  # code of a result that no Error of the simulator stands behind
_UNIMPLEMENTED: Final = (
    "The CUAUV server does not implement this request: it closes the connection, or gives an undefined answer. For a "
    "server that does implement it, set the parameter unimplemented_requests to send."
)
_EMPTY: Final = (
    "The CUAUV server closes the connection on an empty key, value or class name. For a server that takes it, set the "
    "parameter unimplemented_requests to send."
)


class RefusedError(Exception):
    """The simulator has refused a request, or has not answered it; then the code is NO_ANSWER."""

    def __init__(self, message: str, code: int = NO_ANSWER) -> None:
        super().__init__(message)
        self.code = code


#: What ends a task without success unless the task catches it: refusals, and requests that can't be sent.
TASK_ERRORS: Final = (RefusedError, LocalProtocolError, ValueError)


class Result(NamedTuple):
    """What has come of a task."""

    success: bool
    message: str = ""
    code: int = NO_ANSWER  # of the simulator's Error
    value: Any = None


@dataclass(frozen=True, slots=True)
class AwaitSteps:
    """Wait until the steps of a run are done."""

    mark: int  # from Runs.mark, before the run began
    expected_s: float  # how long the run may show no sign of life


@dataclass(frozen=True, slots=True)
class AwaitHeading:
    """Wait until the vehicle's heading is known, or can't be."""


#: What a task can yield.
Wanted = sim.Request | Sequence[sim.Request] | DesiredItem | AwaitSteps | AwaitHeading
Task = Generator[Wanted, Any, Any]


class TaskRunner:
    """Drives one task, and calls `on_result` once, unless the link's thread is ended by an exception."""

    def __init__(self, session: SimulatorSession, task: Task, on_result: Callable[[Result], None]) -> None:
        self._session = session
        self._task = task
        self._on_result = on_result

    def start(self) -> None:
        """Run the task until it waits for something. Raises what sending raises."""
        self._resume(self._task.send, None)

    def _resume(self, method: Callable[[Any], Wanted], value: Any) -> None:
        try:
            wanted = method(value)
        except StopIteration as end:
            self._on_result(end.value if isinstance(end.value, Result) else Result(True, value=end.value))
        except TASK_ERRORS as error:
            self._on_result(Result(False, str(error), getattr(error, "code", NO_ANSWER)))
        else:
            self._get(wanted)

    def _get(self, wanted: Wanted) -> None:
        try:
            if isinstance(wanted, AwaitSteps):
                self._session.runs.wait(wanted.mark, wanted.expected_s, self._steps_done)
            elif isinstance(wanted, AwaitHeading):
                self._session.when_heading_is_settled(lambda: self._resume(self._task.send, None))
            elif isinstance(wanted, DesiredItem):
                request = wanted.request(self._session.outputs.axes)
                assert request
                self._check(request)
                self._session.reconciler.add(wanted, lambda outcome: self._settle([request], [outcome], is_list=False))
            elif isinstance(wanted, sim.Request):
                self._send([wanted], is_list=False)
            else:
                self._send(wanted, is_list=True)
        except TASK_ERRORS as error:
            self._resume(self._task.throw, error)

    def _send(self, requests: Sequence[sim.Request], *, is_list: bool) -> None:
        outcomes: list[Outcome] = []

        def take(outcome: Outcome) -> None:
            outcomes.append(outcome)
            if len(outcomes) == len(requests):
                self._settle(requests, outcomes, is_list=is_list)

        for request in requests:
            self._check(request)
            self._session.channel_for(request).ask(request, take)

    def _check(self, request: sim.Request) -> None:
        """Raise ValueError for what the CUAUV server would close the connection on, unless it is to be sent."""
        if self._session.sends_unimplemented:
            return
        if not request.is_implemented:
            raise ValueError(_UNIMPLEMENTED)
        if not all(request.texts):
            raise ValueError(_EMPTY)

    def _settle(self, requests: Sequence[sim.Request], outcomes: Sequence[Outcome], *, is_list: bool) -> None:
        for request, outcome in zip(requests, outcomes, strict=True):
            if isinstance(outcome, ServiceResult):
                self._resume(self._task.throw, RefusedError(outcome.message))
                return
            if isinstance(outcome, sim.Error):
                self._resume(self._task.throw, RefusedError(explanation(request, outcome), outcome.code))
                return
        self._resume(self._task.send, outcomes if is_list else outcomes[0])

    def _steps_done(self, problem: str) -> None:
        if problem:
            self._resume(self._task.throw, RefusedError(problem))
        else:
            self._resume(self._task.send, None)
