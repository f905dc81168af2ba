# SPDX-License-Identifier: Apache-2.0
"""All that is used here of rclpy's private parts, which its next release may rename or drop.

rclpy keeps Python's lock (GIL) while it publishes, logs or answers. Where the middleware hangs in such a call, and its
`sendto` may for seconds, no thread of the process could say the last word to a vehicle. So here it is done without that
lock, by the functions of rcl that rclpy calls and by those that turn a message into one of C.

- The capsules of a message's type (`_CREATE_ROS_MESSAGE`, `_CONVERT_FROM_PY`, `_DESTROY_ROS_MESSAGE`), and the
  addresses of publishers, services and requests. Where one is missing, rclpy publishes and answers itself.
- `rclpy_logging_rcutils_log`, replaced for the process. Where rclpy calls it no more, it logs itself.
- `Service.send_response`, replaced per service: a response to a client that is only half discovered is lost, and rclpy
  tells nobody. Where nothing calls it, responses are sent once, as rclpy sends them.
- `LifecycleNodeMixin.__change_state`: rclpy tells others of a transition, by the middleware, before it makes it. Where
  there is none, the last word of a node that is deactivated comes after that.
- `LifecycleNode._state_machine`, whose name outlives its node. Where there is none, garbage collection frees it.

test/test_rclpy_hooks.py, test/test_half_discovered_clients.py and test/test_bridge_conventions.py ask for each.
"""

import contextlib
import ctypes
import queue
import threading
import traceback
import warnings
from collections.abc import Callable, Iterable
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

from lifecycle_msgs.msg import Transition
from rclpy.clock import Clock, ClockType  # type: ignore[attr-defined] # where humble has it, too
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.lifecycle import LifecycleNode
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.service import Service

# Calls that may hang, in a thread of their own.


#: How long a caller waits for them: no vehicle notices, and a machine has to be busy to take longer.
PATIENCE_S = 0.05

Call = Callable[[], None]


class _Calls:
    """What is called in turn, and whether that is over."""

    def __init__(self, calls: Iterable[tuple[Any, Call]]) -> None:
        self.calls = calls
        self.is_over = False
        self.done = threading.Lock()
        self.done.acquire()


class BoundedCalls:
    """Calls functions in a thread of its own; a caller waits at most PATIENCE_S, and not at all while one hangs.

    What is to be called meanwhile is called afterwards: the newest for each key. Thread-safe.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()  # never held during a call
        self._queue: queue.SimpleQueue[_Calls] = queue.SimpleQueue()
        self._hangs = False
        self._later: dict[Any, Call] = {}
        self._thread: threading.Thread | None = None

    def call(self, calls: Iterable[tuple[Any, Call]]) -> int:
        """Call functions, each with its key; return how many others they replace, which are never called."""
        with self._lock:
            if self._hangs:
                return sum(self._put_off(key, function) for key, function in calls)
            if self._thread is None or not self._thread.is_alive():  # the first one, or in a forked process
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()
            made = _Calls(calls)
            self._queue.put(made)
        if not made.done.acquire(timeout=PATIENCE_S):
            with self._lock:
                self._hangs = not made.is_over
        return 0

    def wait(self, timeout_s: float) -> bool:
        """Wait until all that was to be called has been, for so long at most; return whether it has."""
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                return True
            made = _Calls(())
            self._queue.put(made)
        return made.done.acquire(timeout=timeout_s)

    def _put_off(self, key: Any, function: Call) -> bool:
        replaced = self._later.pop(key, None)
        self._later[key] = function
        return replaced is not None

    def _run(self) -> None:
        while True:
            made = self._queue.get()
            for _, function in made.calls:
                _call(function)
            with self._lock:
                made.is_over = True
                made.done.release()
                later, self._later, self._hangs = self._later, {}, False
            for function in later.values():
                _call(function)


def _call(function: Call) -> None:
    try:
        function()
    except Exception:  # a fault of ours, which must not end the thread
        traceback.print_exc()


#: For publishing from threads that a vehicle waits for.
PUBLISHING = BoundedCalls("publishing")
LOGGING = BoundedCalls("logging")

# The functions of rcl, which take the address of a publisher or service, and release Python's lock; those of a message,
# which keep it.


def _library(name: str) -> ctypes.CDLL | None:
    with contextlib.suppress(OSError):
        return ctypes.CDLL(f"lib{name}.so")  # which rclpy has loaded
    return None


_RCL, _RCUTILS = _library("rcl"), _library("rcutils")
_RET_TIMEOUT = 2
_Address = ctypes.c_void_p


class _Error(ctypes.Structure):
    """rcutils_error_string_t."""

    _fields_ = (("text", ctypes.c_char * 1024),)


class _Location(ctypes.Structure):
    """rcutils_log_location_t."""

    _fields_ = (("function", ctypes.c_char_p), ("file", ctypes.c_char_p), ("line", ctypes.c_size_t))


def _function(library: ctypes.CDLL | None, name: str, *arguments: Any, result: Any = ctypes.c_int) -> Any:
    function = getattr(library, name, None)
    if function is not None:
        function.argtypes, function.restype = arguments, result
    return function


_publish = _function(_RCL, "rcl_publish", _Address, _Address, _Address)
_assert_liveliness = _function(_RCL, "rcl_publisher_assert_liveliness", _Address)
_send_response = _function(_RCL, "rcl_send_response", _Address, _Address, _Address)
_error = _function(_RCUTILS, "rcutils_get_error_string", result=_Error)
_reset_error = _function(_RCUTILS, "rcutils_reset_error", result=None)
_log = _function(_RCUTILS, "rcutils_log", _Address, ctypes.c_int, *[ctypes.c_char_p] * 3, result=None)
_HAS_ALL = all((_publish, _assert_liveliness, _send_response, _error, _reset_error))


class _Functions(NamedTuple):
    """What makes a message of C, fills it from one of Python, and destroys it."""

    create: Callable[[], int]
    convert: Callable[[Any, int], bool]
    destroy: Callable[[int], None]


@cache
def _functions_of(message_type: Any) -> _Functions | None:
    """Return the functions of a type whose support is loaded, or None if rclpy has others."""
    name, pointer = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name.restype, name.argtypes = ctypes.c_char_p, (ctypes.py_object,)
    pointer.restype, pointer.argtypes = _Address, (ctypes.py_object, ctypes.c_char_p)

    def function(capsule: str, result: Any, *arguments: Any) -> Any:
        held = getattr(type(message_type), capsule)
        return ctypes.PYFUNCTYPE(result, *arguments)(pointer(held, name(held)))

    try:
        return _Functions(
            function("_CREATE_ROS_MESSAGE", _Address),
            function("_CONVERT_FROM_PY", ctypes.c_bool, ctypes.py_object, _Address),
            function("_DESTROY_ROS_MESSAGE", None, _Address),
        )
    except (AttributeError, TypeError, ValueError):
        return None


class _MessageOfC:
    """A message of C, made from one of Python, for as long as this lives."""

    def __init__(self, functions: _Functions, message: Any) -> None:
        self._destroy = functions.destroy
        self.address = functions.create()
        functions.convert(message, self.address)

    def __del__(self) -> None:
        self._destroy(self.address)


def _check(status: int, what: str) -> None:
    if status:
        text = _error().text.decode(errors="replace")
        _reset_error()
        raise rclpy_implementation.RCLError(f"{what}: {text}")


if TYPE_CHECKING:
    _Publisher = Publisher[Any]
else:
    _Publisher = Publisher  # a generic class since Kilted


class UnlockedPublisher(_Publisher):
    """A publisher that lets other threads run while the middleware sends."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        kind: Any = self.msg_type
        self._functions = _functions_of(kind) if _HAS_ALL else None
        self._address: int = getattr(self.handle, "pointer", 0)

    def publish(self, msg: Any) -> None:
        """Publish a message. Raises TypeError, RCLError and InvalidHandle."""
        self.prepared(msg)()

    def prepared(self, msg: Any) -> Call:
        """Return what publishes the message as it is now. Raises TypeError."""
        if self._functions and self._address and isinstance(msg, self.msg_type):
            return partial(self._send, _MessageOfC(self._functions, msg))
        return partial(super().publish, msg)

    def _send(self, message: _MessageOfC) -> None:
        with self.handle:
            _check(_publish(self._address, message.address, None), "Failed to publish")

    def assert_liveliness(self) -> None:
        """Tell subscribers that it is alive. Raises RCLError and InvalidHandle."""
        if not (_HAS_ALL and self._address):
            super().assert_liveliness()
            return
        with self.handle:
            _check(_assert_liveliness(self._address), "Failed to assert liveliness")


# Log lines, which go to the topic /rosout as well.


def _log_unlocked(severity: int, name: str, message: str, *location: Any) -> None:
    function, file, line = location
    where = _Location(function.encode(), file.encode(), line)
    arguments = (ctypes.byref(where), int(severity), name.encode(), b"%s", message.encode(errors="replace"))
    # A key of its own: no line replaces another. How many there can be is limited where they are made.
    LOGGING.call([(object(), partial(_log, *arguments))])


if _log:
    rclpy_implementation.rclpy_logging_rcutils_log = _log_unlocked  # type: ignore[assignment] # positional only


# Service responses that survive a half-discovered client.


RETRY_PERIOD_S = 0.2  # each attempt blocks the executor for 0.1 s
MAX_RETRIES = 25  # after which the client is assumed to be gone

Send = Callable[[Any, Any], None]


def resend_lost_responses(node: Node) -> None:
    """Make all existing services of a node resend responses that could not be delivered."""
    for service in node.services:
        resend_if_lost(node, service)


def resend_if_lost(node: Node, service: "Service[Any, Any]") -> None:
    """Make a service resend a response that could not be delivered because its reader was not discovered yet."""
    send: Send = _unlocked(service) or service.send_response

    def send_now_or_later(response: Any, header: Any) -> None:
        if not _is_sent(send, response, header):
            _Retry(node, send, response, header)

    service.send_response = send_now_or_later  # type: ignore[method-assign] # rclpy's executor offers no hook


def _unlocked(service: "Service[Any, Any]") -> Send | None:
    """Return what sends a response and lets other threads run meanwhile, or None."""
    kind: Any = getattr(service, "srv_type", None)
    functions = _functions_of(kind.Response) if kind and _HAS_ALL and hasattr(service.handle, "pointer") else None
    if functions is None:
        return None
    original = service.send_response

    def send(response: Any, header: Any) -> None:
        request = _address_of_request(header)
        if request is None or not isinstance(response, kind.Response):
            original(response, header)
            return
        message = _MessageOfC(functions, response)
        with service.handle:
            status = _send_response(service.handle.pointer, request, message.address)
            _check(status, "failed to send response" + ": client will not receive response" * (status == _RET_TIMEOUT))

    return send


def _address_of_request(header: Any) -> int | None:
    """Return the address of the rmw_request_id_t that a header wraps, if it is seen to be there."""
    request = getattr(header, "request_id", header)
    if not isinstance(request, rclpy_implementation.rmw_request_id_t):
        return None
    # An object of pybind11 has, after Python's part, the address of what it wraps. There is the number of the request,
    # after a GUID of 16 bytes, or of 24 on humble.
    address = _Address.from_address(id(request) + object.__basicsize__).value
    numbers = (ctypes.c_int64 * 4).from_address(address) if address else ()
    return address if request.sequence_number in numbers[2:] else None


def _is_sent(send: Send, response: Any, header: Any) -> bool:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RuntimeWarning)
        try:
            send(response, header)
        except rclpy_implementation.RCLError as error:
            if "will not receive response" not in str(error):
                raise
            return False
    return not any("failed to send response" in str(warning.message) for warning in caught)


class _Retry:
    """Resends one response until it is delivered, or until nobody can be waiting for it."""

    def __init__(self, node: Node, send: Send, response: Any, header: Any) -> None:
        self._node = node
        self._attempt = (send, response, header)
        self._left = MAX_RETRIES
        # Discovery does not depend on ROS time.
        clock = Clock(clock_type=ClockType.STEADY_TIME)
        self._timer = node.create_timer(RETRY_PERIOD_S, self._try, clock=clock)

    def _try(self) -> None:
        self._left -= 1
        if _is_sent(*self._attempt):
            self._node.destroy_timer(self._timer)
        elif self._left == 0:
            self._node.destroy_timer(self._timer)
            self._node.get_logger().warning("A response could not be sent: its client was never fully discovered.")


# Lifecycle nodes: the last word before anything is said about it, and the name.

_CHANGE_STATE = "_LifecycleNodeMixin__change_state"
_ENDS = (Transition.TRANSITION_DEACTIVATE, Transition.TRANSITION_ACTIVE_SHUTDOWN)


def before_end(node: LifecycleNode, call: Call) -> None:
    """Have a function called when an active node is to be deactivated or shut down, before anybody is told."""
    change_state = getattr(node, _CHANGE_STATE, None)
    if change_state is None:
        return

    def change(transition_id: int) -> Any:
        if transition_id in _ENDS:
            call()
        return change_state(transition_id)

    setattr(node, _CHANGE_STATE, change)


def free_name(node: LifecycleNode) -> None:
    """Free the name of a destroyed node, which rcl otherwise has in use for /rosout until garbage is collected."""
    if machine := getattr(node, "_state_machine", None):
        machine.destroy_when_not_in_use()
