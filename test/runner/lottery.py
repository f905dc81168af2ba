# SPDX-License-Identifier: Apache-2.0
"""Draw one-line faults over the whole package, and list those that no pure test finds: lottery.py [DRAW] [SEED]

A line is drawn evenly, then one of its mutants, see `mutants.py`; numbers outside of functions are left out. Its tests
are those without processes that run it, by coverage, which is kept in build/lottery for each state of the code. All
are collected once, and a forked child gets the changed functions. Faults outside of functions are imported anew.

A survivor is a missing test, dead code, or equivalent, which is signed in `survivors.py`. Fails if fewer than 80 % of
the faults that tests run are found.
"""

import ast
import functools
import gc
import hashlib
import json
import multiprocessing
import os
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import types
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import coverage
import entries
import mutants
import pytest
import rclpy

ROOT = mutants.TESTS.parent
#: The package as coverage names it.
MEASURED = Path(mutants.drone_bridge.__file__).resolve().parent
FORK = multiprocessing.get_context("fork")
#: Sum of the durations of one fault's tests, with coverage, s.
TESTS_S = 60.0
LEAST_FOUND = 0.8
OPTIONS = ["-q", "-p", "no:cacheprovider", "-p", "no:rerunfailures", "-m", "not exhaustive"]
#: Fixtures of tests that need processes.
NEEDY = {"browser", "domain", "pair", "ros", "start_child"}


class Recorder:
    """Plugin of pytest that records the lines and the duration of each pure test."""

    def __init__(self, name):
        self.name, self.seconds, self.failed = name, defaultdict(float), set()
        self.cover = coverage.Coverage(f"{name}.sqlite", source=[str(MEASURED)], config_file=False)
        self.cover.start()

    def pytest_collection_modifyitems(self, items):
        """Leave out tests that need processes, and let others that start one fail."""
        items[:] = [item for item in items if not NEEDY & {*item.fixturenames}]
        subprocess.Popen.__init__ = rclpy.init = None

    def pytest_runtest_logstart(self, nodeid):
        """Attribute the lines that follow to a test."""
        self.cover.switch_context(nodeid)

    def pytest_runtest_logreport(self, report):
        """Add the duration of a part of a test."""
        self.seconds[report.nodeid] += report.duration
        self.failed |= {report.nodeid} if report.failed else set()

    def pytest_sessionfinish(self):
        """Store all."""
        self.cover.stop()
        self.cover.save()
        passed = {test: duration_s for test, duration_s in self.seconds.items() if test not in self.failed}
        Path(f"{self.name}.json").write_text(json.dumps(passed))


class Cover:
    """Sources, and the tests that run their lines."""

    def __init__(self):
        files = [path for folder in (mutants.PACKAGE, mutants.TESTS) for path in sorted(folder.rglob("*.py"))]
        texts = {path: path.read_text() for path in files}
        self.texts = {path: text for path, text in texts.items() if mutants.PACKAGE in path.parents}
        self.digest = hashlib.sha256("".join(texts.values()).encode()).hexdigest()[:16]
        folder = ROOT / "build" / "lottery" / self.digest
        if not folder.exists():
            folder.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=folder.parent) as name:
                shares = entries.shares(entries.test_files(is_all=False), len(os.sched_getaffinity(0)))
                children = [FORK.Process(target=record, args=(each, f"{name}/{n}")) for n, each in enumerate(shares)]
                for child in children:
                    child.start()
                for child in children:
                    child.join()
                Path(name).rename(folder)
                Path(name).mkdir()
        self.seconds = {test: s for each in folder.glob("*.json") for test, s in json.loads(each.read_text()).items()}
        self._data = [coverage.CoverageData(each) for each in folder.glob("*.sqlite")]
        for data in self._data:
            data.read()

    @functools.cache  # noqa: B019
    def by_line(self, path):
        """Return the tests of each line of a file."""
        found = defaultdict(set)
        for data in self._data:
            for line, tests in data.contexts_by_lineno(str(MEASURED / path.relative_to(mutants.PACKAGE))).items():
                found[line] |= self.seconds.keys() & {*tests}
        return found

    def tests_of(self, path, tree, line):
        """Return the tests of a line: of its folder first, and quick ones first, within TESTS_S."""
        statement, by_line = statement_at(tree, line), self.by_line(path)
        body = getattr(statement, "body", None) or [ast.Pass(lineno=statement.end_lineno + 1)]
        run = {line, *range(statement.lineno, body[0].lineno)} & by_line.keys()
        tests = set().union(*(by_line[each] for each in run))
        if not function_at(tree, line) or (run and not tests):  # by an import: what it defines is used anywhere
            tests = set().union(*by_line.values())
            stored = [each for each in ast.walk(statement) if isinstance(getattr(each, "ctx", None), ast.Store)]
            names = {statement.name} if hasattr(statement, "name") else {getattr(each, "id", "$") for each in stored}
            word = re.compile(rf"\b({'|'.join(names) or '$'})\b")
            for other, text in self.texts.items():
                for number, code in enumerate(text.splitlines(), 1) if word.search(text) else ():
                    tests |= self.by_line(other).get(number, set()) if word.search(code) else set()
        folder, total_s, chosen = f"test/{path.relative_to(mutants.PACKAGE).parts[0]}/", 0.0, []
        for test in sorted(tests, key=lambda test: (not test.startswith(folder), self.seconds[test])):
            total_s += self.seconds[test]
            chosen += [test] if total_s <= TESTS_S or not chosen else []
        return chosen


def record(files, name):
    """Run the pure tests of some files."""
    pytest.main([*map(str, files), *OPTIONS], [Recorder(name)])


def statement_at(tree, line):
    """Return the innermost statement."""
    around = [node for node in ast.walk(tree) if isinstance(node, ast.stmt) and node.lineno <= line <= node.end_lineno]
    return min(around, key=lambda node: node.end_lineno - node.lineno)


def function_at(tree, line):
    """Return the function in whose body a line is, or None."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return next((each for each in functions if each.body[0].lineno <= line <= each.end_lineno), None)


def codes_of(tree):
    """Return the code of each function in a tree, by name, line, and number among those of the same."""
    found, left = {}, [compile(tree, "", "exec")]
    while left:
        for each in left.pop().co_consts:
            if isinstance(each, types.CodeType):
                left.append(each)
                key = each.co_name, each.co_firstlineno
                found[(*key, sum(other[:2] == key for other in found))] = each
    return found


@dataclass
class Fault:
    """One mutant, its place, and its tests."""

    key: tuple[str, str, str]
    line: int
    make_tree: functools.partial
    before: ast.Module
    tests: list[str]
    seconds: float

    @property
    def module(self):
        """Return the module's path without its suffix."""
        return self.key[0].split()[0]

    def limits_s(self):
        """Return the limits of time and of CPU."""
        return [mutants.LIMIT_S + round(factor * self.seconds) for factor in mutants.LIMIT_FACTORS]

    def changed_codes(self):
        """Return (code before, code) of each changed function. None if functions can't be changed in place."""
        before, after = codes_of(self.before), codes_of(self.make_tree())
        pairs = [(before.get(key), code) for key, code in after.items() if before.get(key) != code]
        is_same = all(old and old.co_freevars == code.co_freevars for old, code in pairs)
        return pairs if function_at(self.before, self.line) and is_same else None


def draw(cover, count, seed):
    """Return different faults."""
    chance, faults, places = random.Random(seed), {}, {}
    pool = [(path, line) for path, text in cover.texts.items() for line in code_lines(text)]
    while len(faults) < count:
        path, line = chance.choice(pool)
        tree, module = ast.parse(cover.texts[path]), str(path.relative_to(mutants.PACKAGE).with_suffix(""))
        if path not in places:
            places[path] = defaultdict(list)
            for key, node, make_tree in mutants.mutants(module, is_whole=True):
                if type(getattr(node, "value", 0)) not in (int, float) or function_at(tree, node.lineno):
                    places[path][node.lineno].append((key, make_tree))
        if places[path][line]:
            key, make_tree = chance.choice(places[path][line])
            if key not in faults:
                tests = cover.tests_of(path, tree, line)
                seconds = sum(cover.seconds[test] for test in tests)
                faults[key] = Fault(key, line, make_tree, tree, tests, seconds)
    return [*faults.values()]


def code_lines(text):
    """Return the numbers of the lines that are code."""
    expressions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Expr)]
    docs = [node for node in expressions if isinstance(getattr(node.value, "value", None), str)]
    skipped = {line for node in docs for line in range(node.lineno, node.end_lineno + 1)}
    lines = enumerate(map(str.strip, text.splitlines()), 1)
    return [n for n, line in lines if line and not line.startswith("#") and n not in skipped]


class Server:
    """Plugin of pytest that collects all tests, and runs those of each fault in a child process."""

    pytest_configure = mutants.QuickestFirst.pytest_configure

    def __init__(self, faults, found):
        self.faults, self.found, self.is_child = faults, found, False

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session):
        """Test all faults."""
        if self.is_child:
            return None
        functions, items = defaultdict(list), {item.nodeid: item for item in session.items}
        for each in gc.get_objects():
            if type(each) is types.FunctionType:
                functions[each.__code__.co_filename, each.__code__].append(each)
        gc.freeze()
        for fault in self.faults:
            if not (child := os.fork()):
                self.is_child, status = True, 1
                try:
                    change(fault, functions)
                    session.items[:] = [items[test] for test in fault.tests if test in items]
                    session.testscollected = len(session.items)
                    session.config.hook.pytest_runtestloop(session=session)
                    status = bool(session.testsfailed)
                finally:
                    os._exit(status)
            self.found[fault.key] = os.waitpid(child, 0)[1]
        return True


def change(fault, functions):
    """Change functions of a module that is imported; another one will be imported with the fault. Limit the time."""
    os.setpgid(0, 0)
    real_s, cpu_s = fault.limits_s()
    signal.alarm(real_s)
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, resource.RLIM_INFINITY))
    changed = mutants.Changed(fault.module, fault.make_tree())
    if changed.name.removesuffix(".__init__") not in sys.modules:
        sys.meta_path.insert(0, changed)
    for before, code in fault.changed_codes():
        for function in functions[changed.path, before]:
            function.__code__ = code


def tested(faults):
    """Return the status of the process that ran the tests of each fault, by its key: 0 if it was not found."""
    found, in_place = {}, [fault for fault in faults if fault.changed_codes() is not None]
    with tempfile.TemporaryDirectory() as folder:
        for fault in (each for each in faults if each not in in_place):
            changed = mutants.Changed(fault.module, fault.make_tree())
            child = mutants.start([*fault.tests, *OPTIONS], Path(folder), fault.limits_s(), changed)
            found[fault.key] = os.waitpid(child, 0)[1]
        os.environ["TMPDIR"] = tempfile.tempdir = folder
        files = sorted({test.partition("::")[0] for fault in in_place for test in fault.tests})
        pytest.main([*files, *OPTIONS, "-x"], [Server(in_place, found)])
    return found


def main():
    """Draw, test and list. Return the exit status."""
    os.chdir(ROOT)
    cover = Cover()
    count, seed, *_ = [*sys.argv[1:], *(200, cover.digest)[len(sys.argv) - 1 :]]
    drawn = draw(cover, int(count), seed)
    faults = [fault for fault in drawn if fault.tests]
    found = tested(faults)
    survivors = [fault for fault in faults if not found[fault.key]]
    signed = [each for each in survivors if each.key in mutants.SURVIVORS or mutants.is_at_one_instant(each.key[2])]
    for title, listed in (
        ("Run by no pure test", [fault for fault in drawn if not fault.tests]),
        ("Not found and not signed", [fault for fault in survivors if fault not in signed]),
    ):
        print(f"\n{title}: {len(listed)}")
        for fault in listed:
            print(f"    {fault.module}.py:{fault.line}: {fault.key}")
    share = 1 - len(survivors) / max(1, len(faults))
    print(f"\nSeed {seed}: {count} drawn, {len(faults)} run, {share:.0%} of them found, {len(signed)} others signed.")
    return int(share < LEAST_FOUND)


if __name__ == "__main__":
    sys.exit(main())
