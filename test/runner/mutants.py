# SPDX-License-Identifier: Apache-2.0
"""Change the stop path in one place at a time, and require that a test fails: mutants.py [MODULE...]

Each mutant is compiled in memory, and tested in a child process by the nearest pure tests, the quickest first. A mutant
that passes them survives. It has to be in `survivors.py`, by function and by text of its line, with the reason why it
is equivalent, or with the exhaustive test that finds it, which then runs too. Fails for any other survivor, and for an
entry without one. A comparison of times that differs at one instant only counts as equivalent.

No maintained tool does this: mutmut 3.8 changes neither properties nor the constants of a module, cosmic-ray 8.7
changes the files in place, and neither deletes statements.
"""

import ast
import copy
import importlib
import importlib.abc
import importlib.util
import json
import os
import re
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from functools import partial
from pathlib import Path

import hypothesis
import pytest
from survivors import SURVIVORS as BY_LINE

import drone_bridge

TESTS = Path(__file__).resolve().parent.parent
PACKAGE = TESTS.parent / "drone_bridge"
#: Those of the session of a client with a robot in one class, and its parts.
ROBOT_TESTS = [
    f"robot_class/test_{name}.py"
    for name in (
        *("client_rows", "last_words", "lost_reports", "own_motions", "answers", "serial_session", "class_faults"),
        *("robot", "robot_that_sends_first"),
    )
]
CLIENT = ["client_requests", "client_sender", "client_session", "greeting", "heard_reports", "obedience"]
#: Nearest pure tests by module.
NEAREST = {
    **{f"robot_class/{each}": ROBOT_TESTS for each in CLIENT},
    "net/send_queue": ["net/test_send_queue.py", "net/test_expired_messages.py"],
    "net/last_words_sender": [
        "net/test_last_words_sender.py",
        "net/test_last_words_after_stall.py",
        "net/test_last_words.py",
    ],
    "motion/limits": ["motion/test_limits.py", "session/test_feedback.py", "session/test_who_commands.py"],
    "session/report_watch": ["session/test_report_watch.py"],
    "session/continuous_pose": ["session/test_continuous_pose.py"],
    "session/duplicate_nodes": ["session/test_duplicate_nodes.py"],
    "robot_class/outstanding": ["robot_class/test_answers.py"],
    "ardrone/session/emergency": ["ardrone/test_emergency.py"],
    "session/hold_state": ["session/test_hold_state.py", "session/test_who_commands.py"],
    "session/arbiter": ["session/test_arbiter.py", "session/test_who_commands.py"],
    "net/link_loop": [
        "net/test_link_loop.py",
        "net/test_last_words_after_stall.py",
        "net/test_expired_messages.py",
        "robot_class/test_robot.py",
        "robot_class/test_links.py",
    ],
    "ros/hold/hold": ["ros/test_command_topics.py", "ros/test_hold_file.py", "ros/test_wish_file.py"],
    "ros/node/configured_node": ["ros/test_kept_subscriptions.py"],
    "ros/node/protocol_node": ["ros/test_stall_watch.py", "ros/test_leave.py"],
}
#: Functions of the stop path in modules that do more, whose other parts need processes or concern no motion.
STOP_PATH = {
    "net/link_loop": "turns _tick _now _resume _count_words _lose _answer_all _try end _act _execute _send _arm"
    " _release _decided _unsent",
    "ros/hold/hold": "is_held check admits hold poll_files report take_helm _refuse _take_wish _serve _held _release"
    " _forget_commands",
    "ros/node/configured_node": "clean_up end_subscriptions",
    "ros/node/protocol_node": "leave publish takes_commands check_age",
    "robot_class/client_session": "tick resume lost end last_words neutral_sent _final _stopped _follow _ended"
    " _on _is_busy",
    "robot_class/client_requests": "row_of on stop land",
    "robot_class/client_sender": "take_turn next_packet drive leave last_words",
    "robot_class/heard_reports": "live is_unproven withheld",
}
#: Imported once, as children inherit it. No module of the package, which may import the changed one.
PRELOADED = ("geometry_msgs.msg", "numpy", "rclpy.lifecycle", "sensor_msgs.msg")
#: A mutant may never end. It gets a multiple of the unchanged module's time, by the clock and of CPU, plus some s.
LIMIT_FACTORS, LIMIT_S = (20, 4), 10

#: Some tests wait.
AT_ONCE = 2 * len(os.sched_getaffinity(0))

SURVIVORS = {
    (function, line, change): reason
    for function, lines in BY_LINE.items()
    for line, reasons in lines.items()
    for change, reason in reasons.items()
}

OPPOSITES = {
    **{ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq},
    **{ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In},
    **{ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult},
}
#: Functions whose first two arguments may change places.
SYMMETRIC = {"added", "dot", "isinstance", "math.dist", "math.hypot", "math.isclose", "max", "min"}
EXTREMES = {"min": "max", "max": "min"}
STATEMENTS = ast.Expr | ast.Assign | ast.AugAssign | ast.Raise | ast.Continue | ast.Break


def changes(node):
    """Yield each changed node in place of a node."""
    if isinstance(node, ast.Compare):
        for index, operator in enumerate(node.ops):
            operators = [*node.ops[:index], OPPOSITES[type(operator)](), *node.ops[index + 1 :]]
            yield ast.Compare(node.left, operators, node.comparators)
    if type(getattr(node, "op", None)) in OPPOSITES:  # binary, or of an assignment
        yield replaced(node, op=OPPOSITES[type(node.op)]())
    if isinstance(node, ast.UnaryOp):
        yield node.operand
    if isinstance(node, ast.BoolOp):
        for value in node.values:
            rest = [each for each in node.values if each is not value]
            yield rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        yield ast.Constant(2 * node.value if node.value > 1 else node.value + 1)
    if isinstance(node, ast.If | ast.IfExp):
        yield from (replaced(node, test=ast.Constant(value)) for value in (True, False))
    if isinstance(node, STATEMENTS) and not isinstance(getattr(node, "value", None), ast.Constant):
        yield ast.Pass()
    if isinstance(node, ast.Return) and node.value and not isinstance(node.value, ast.Constant):
        yield ast.Return(ast.Constant(None))
    if isinstance(node, ast.Call):
        name, words = ast.unparse(node.func), [*map(ast.unparse, node.args[:2])]
        if len(set(words)) == 2 and name not in SYMMETRIC:
            yield replaced(node, args=[node.args[1], node.args[0], *node.args[2:]])
        if name in EXTREMES:
            yield replaced(node, func=ast.Name(EXTREMES[name], ast.Load()))
    yield from without_rows(node)


def without_rows(node):
    """Yield a table, whose rows begin on lines of their own, without each row."""
    rows = node.values if isinstance(node, ast.Dict) else getattr(node, "elts", ())
    if len({row.lineno for row in rows}) == len(rows) > 1:
        for index, row in enumerate(rows):
            lists = {name: [*value] for name, value in ast.iter_fields(node) if isinstance(value, list)}
            for each in lists.values():
                del each[index]
            yield replaced(node, **lists, dropped=row)


def replaced(node, **fields):
    """Return a copy of a node with other fields."""
    changed = copy.copy(node)
    vars(changed).update(fields)
    return changed


def described(node, changed):
    """Return a change as text."""
    if isinstance(changed, ast.Pass):
        return "deleted"
    if row := getattr(changed, "dropped", None):
        return f"dropped {ast.unparse(row)}"
    if isinstance(changed, ast.Return):
        return ast.unparse(changed)
    if isinstance(node, ast.If | ast.IfExp):
        node, changed = node.test, changed.test
    return f"{ast.unparse(node)} -> {ast.unparse(changed)}"


def is_at_one_instant(change):
    """Return whether a change of a comparison with the present time matters at one instant only."""
    before, _, after = change.partition(" -> ")
    is_of_now = re.search(r"\b(now|elapsed|silent)_s\b|monotonic", before)
    return bool(is_of_now) and before.replace("=", "") == after.replace("=", "")


def places(parent, scope=""):
    """Yield (parent, field, index, node, name of its function) for each node that may be changed."""
    for field, value in ast.iter_fields(parent):
        for index, node in enumerate(value if isinstance(value, list) else [value]):
            if field in ("annotation", "returns", "decorator_list") or not isinstance(node, ast.AST):
                continue
            if ast.unparse(node).startswith(("TYPE_CHECKING", "if TYPE_CHECKING", "parameter(")):
                continue  # a parameter's declaration is compared with docs/reference
            name = f"{scope}.{node.name}".lstrip(".") if isinstance(node, ast.FunctionDef | ast.ClassDef) else scope
            yield parent, field, index if isinstance(value, list) else None, node, name
            yield from places(node, name)


def mutants(module, *, is_whole=False):
    """Yield (key in `survivors.py`, changed node, function that returns the tree) for each mutant of a module."""
    text = (PACKAGE / f"{module}.py").read_text()
    lines, tree, counts = text.splitlines(), ast.parse(text), Counter()
    chosen = "" if is_whole else STOP_PATH.get(module, "").split()

    def tree_with(changed, parent, field, index):
        before = getattr(parent, field)
        setattr(parent, field, changed if index is None else [*before[:index], changed, *before[index + 1 :]])
        mutant = ast.fix_missing_locations(copy.deepcopy(tree))
        setattr(parent, field, before)
        return mutant

    for parent, field, index, node, function in places(tree):
        if chosen and function.rpartition(".")[2] not in chosen:
            continue
        for changed in changes(node):
            if isinstance(changed, ast.Pass) and isinstance(parent, ast.Module | ast.ClassDef):
                continue  # it could not even be imported
            place = getattr(changed, "dropped", node)
            key = f"{module} {function}".strip(), lines[place.lineno - 1].strip(), described(node, changed)
            counts[key] += 1
            key = *key[:2], key[2] + (f" ({counts[key]})" if counts[key] > 1 else "")
            yield key, place, partial(tree_with, changed, parent, field, index)


class Changed(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Importer of one module from a tree."""

    def __init__(self, module, tree):
        self.name = f"drone_bridge.{module.replace('/', '.')}".removesuffix(".__init__")
        self.path = str(Path(drone_bridge.__file__).parent / f"{module}.py")  # as it is imported: tracebacks have it
        self.code = compile(tree, self.path, "exec")

    def find_spec(self, name, path, target=None):
        """Return how to import the module."""
        return importlib.util.spec_from_file_location(name, self.path, loader=self) if name == self.name else None

    def is_package(self, name):
        """Return whether the module is a folder's, so that others in it can be imported."""
        return self.path.endswith("__init__.py")

    def exec_module(self, module):
        """Execute the tree."""
        exec(self.code, module.__dict__)


class QuickestFirst:
    """Plugin of pytest that orders tests by their durations, or measures them."""

    def __init__(self, path):
        self.path, self.durations = path, json.loads(path.read_text()) if path.exists() else {}

    def pytest_configure(self):
        """Let hypothesis not search for the smallest example of a fault."""
        phases = [hypothesis.Phase.explicit, hypothesis.Phase.generate]
        hypothesis.settings.register_profile("mutants", hypothesis.settings.default, phases=phases)
        hypothesis.settings.load_profile("mutants")

    def pytest_collection_modifyitems(self, items):
        """Sort tests."""
        items.sort(key=lambda item: self.durations.get(item.nodeid, 0.0))

    def pytest_runtest_logreport(self, report):
        """Measure a test."""
        self.durations[report.nodeid] = self.durations.get(report.nodeid, 0.0) + report.duration

    def pytest_sessionfinish(self):
        """Store the durations of the unchanged module."""
        if not self.path.exists():
            self.path.write_text(json.dumps(self.durations))


def start(tests, folder, limits_s=None, changed=None):
    """Start tests, by arguments of pytest, in a child process. Return its pid."""
    if pid := os.fork():
        return pid
    if limits_s:
        signal.alarm(limits_s[0])
        resource.setrlimit(resource.RLIMIT_CPU, (limits_s[1], resource.RLIM_INFINITY))
    os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
    output = os.open(folder / f"{os.getpid()}.txt", os.O_WRONLY | os.O_CREAT)
    os.dup2(output, 1)
    os.dup2(output, 2)
    if changed:
        sys.meta_path.insert(0, changed)
    order = QuickestFirst(folder / "durations")
    os._exit(pytest.main([*tests, "-x", "-q", "-p", "no:cacheprovider"], [order]))


def survivors_of(module, folder):
    """Return the keys of the mutants that survive, of those that never ended, and the number of all."""
    tests, began_s = [*(str(TESTS / name) for name in NEAREST[module]), "-m", "not exhaustive"], time.monotonic()
    pid = start(tests, folder)
    _, status, used = os.wait4(pid, 0)
    if status:
        sys.exit(f"The tests of {module} fail without a change:\n{(folder / f'{pid}.txt').read_text()}")
    unchanged_s = time.monotonic() - began_s, used.ru_utime + used.ru_stime
    limits_s = [LIMIT_S + round(factor * each) for factor, each in zip(LIMIT_FACTORS, unchanged_s, strict=True)]
    running, survivors, hung, count = {}, set(), set(), 0

    def wait():
        pid, status = os.wait()
        key = running.pop(pid)
        if not status and not is_at_one_instant(key[2]):
            survivors.add(key)
            if key not in SURVIVORS:
                print(f"    Not found and not signed: {key}", flush=True)
        elif os.waitstatus_to_exitcode(status) in (-signal.SIGALRM, -signal.SIGXCPU):
            hung.add(key)

    for key, _, tree in mutants(module):
        if len(running) == AT_ONCE:
            wait()
        signature = SURVIVORS.get(key, "")
        chosen = [signature] if signature.startswith("test/") else tests
        running[start(chosen, folder, limits_s, Changed(module, tree()))] = key
        count += 1
    while running:
        wait()
    return survivors, hung, count


def main():
    """Test the mutants of all modules, or of some. Return the exit status."""
    for name in PRELOADED:
        importlib.import_module(name)
    os.chdir(TESTS.parent)
    status = 0
    for module in sys.argv[1:] or NEAREST:
        began_s = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            survivors, hung, count = survivors_of(module, Path(folder))
        signed = {key for key, reason in SURVIVORS.items() if key[0].partition(" ")[0] == module}
        equivalent = {key for key in signed if not SURVIVORS[key].startswith("test/")}
        duration_s = time.monotonic() - began_s
        print(
            f"{module}: {count} mutants, of which {len(survivors)} survive and {len(hung)} were ended by their time; "
            f"{len(signed)} are signed; {duration_s:.0f} s",
            flush=True,
        )
        for key in sorted(equivalent - survivors):
            print(f"    Signed as equivalent, but found: {key}", flush=True)
        status |= survivors != equivalent
    return status


if __name__ == "__main__":
    sys.exit(main())
