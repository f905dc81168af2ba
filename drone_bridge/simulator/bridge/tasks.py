# SPDX-License-Identifier: Apache-2.0
"""Tasks on the link's thread: generators that yield requests, and a runner that sends back the answers.

def spawn_quietly(session, request):
added = yield sim.AddEntity(...)  # the answer; an Error is raised here as RefusedError
yield [sim.SetEntity(added.id, ...), sim.SetEntity(added.id, ...)]  # sent together; a list of answers
yield EntityStream(added.id, 1)  # a desired item, kept across connections; the answer that says its ID
return added.id  # the task's value
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from drone_bridge.ros.link_requests import ServiceResult
from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.bridge.desired_items import DesiredItem
from drone_bridge.simulator.bridge.link import Outcome
from drone_bridge.simulator.bridge.session import SimulatorSession
from drone_bridge.simulator.topics.errors import explanation
from drone_bridge.wire.events import LocalProtocolError

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
    """The simulator has refused a request or, with the code NO_ANSWER, has not answered it."""

    def __init__(self, message: str, code: int = NO_ANSWER) -> None:
        super().__init__(message)
        self.code = code


#: What ends a task without success unless the task catches it: refusals, and requests that can't be sent.
TASK_ERRORS: Final = (RefusedError, LocalProtocolError, ValueError)


class Result(NamedTuple):
    """The outcome of a task."""

    success: bool
    message: str = ""
    code: int = NO_ANSWER  # of the simulator's Error
    value: Any = None


@dataclass(frozen=True, slots=True)
class AwaitSteps:
    """Wait for the end of a run."""

    mark: int  # from Runs.mark, before the run began
    expected_s: float  # how long the run may show no sign of life


@dataclass(frozen=True, slots=True)
class AwaitHeading:
    """Wait until the vehicle's heading is known, or can't be learned."""


#: What a task can yield.
Step = sim.Request | Sequence[sim.Request] | DesiredItem | AwaitSteps | AwaitHeading
Task = Generator[Step, Any, Any]


class TaskRunner:
    """Runs one task, and calls `on_result` once, unless an exception ends the link's thread."""

    def __init__(self, session: SimulatorSession, task: Task, on_result: Callable[[Result], None]) -> None:
        self._session = session
        self._task = task
        self._on_result = on_result

    def start(self) -> None:
        """Run the task until it waits. Raises what sending raises."""
        self._resume(self._task.send, None)

    def _resume(self, method: Callable[[Any], Step], value: Any) -> None:
        try:
            step = method(value)
        except StopIteration as end:
            self._on_result(end.value if isinstance(end.value, Result) else Result(True, value=end.value))
        except TASK_ERRORS as error:
            self._on_result(Result(False, str(error), getattr(error, "code", NO_ANSWER)))
        else:
            self._get(step)

    def _get(self, step: Step) -> None:
        try:
            if isinstance(step, AwaitSteps):
                self._session.runs.wait(step.mark, step.expected_s, self._steps_done)
            elif isinstance(step, AwaitHeading):
                self._session.when_heading_is_settled(lambda: self._resume(self._task.send, None))
            elif isinstance(step, DesiredItem):
                request = step.request(self._session.outputs.axes)
                assert request
                self._check(request)
                self._session.reconciler.add(step, lambda outcome: self._settle([request], [outcome], is_list=False))
            elif isinstance(step, sim.Request):
                self._send([step], is_list=False)
            else:
                self._send(step, is_list=True)
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
        """Raise ValueError for a request on which the CUAUV server closes the connection, unless it is to be sent."""
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
