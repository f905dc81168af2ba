# SPDX-License-Identifier: Apache-2.0
"""Draw one-line faults over the whole package, and list those that no pure test finds: lottery.py [DRAW] [SEED]

A line is drawn evenly, then one of its mutants, see `mutants.py`; numbers outside of functions are left out. Its tests
are those without processes that run it, by coverage, which is kept in build/lottery for each state of the code.

A survivor is a missing test, dead code, or equivalent, which is signed in `survivors.py`. Fails if fewer than 80 % of
the faults that tests run are found.
"""

import ast
import functools
import hashlib
import importlib
import json
import multiprocessing
import os
import random
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

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
#: Lives have a night of their own, and take as long as all others.
LIVES = {"test_lives.py", "test_several.py"}
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


def record(files, name):
    """Run the pure tests of some files."""
    pytest.main([*map(str, files), *OPTIONS], [Recorder(name)])


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
                tests = [path for path in entries.test_files(is_all=False) if path.name not in LIVES]
                shares = entries.shares(tests, len(os.sched_getaffinity(0)))
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
        if not is_in_function(tree, line) or (run and not tests):  # by an import: what it defines is used anywhere
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


def statement_at(tree, line):
    """Return the innermost statement."""
    around = [node for node in ast.walk(tree) if isinstance(node, ast.stmt) and node.lineno <= line <= node.end_lineno]
    return min(around, key=lambda node: node.end_lineno - node.lineno)


def is_in_function(tree, line):
    """Return whether a line is in the body of a function."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return any(each.body[0].lineno <= line <= each.end_lineno for each in functions)


class Fault(NamedTuple):
    """One mutant, its line, and its tests."""

    key: tuple[str, str, str]
    line: int
    make_tree: functools.partial
    tests: list[str]

    @property
    def module(self):
        """Return the module's path without its suffix."""
        return self.key[0].split()[0]


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
                if type(getattr(node, "value", 0)) not in (int, float) or is_in_function(tree, node.lineno):
                    places[path][node.lineno].append((key, make_tree))
        if places[path][line]:
            key, make_tree = chance.choice(places[path][line])
            if key not in faults:
                faults[key] = Fault(key, line, make_tree, cover.tests_of(path, tree, line))
    return [*faults.values()]


def code_lines(text):
    """Return the numbers of the lines that are code."""
    expressions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Expr)]
    docs = [node for node in expressions if isinstance(getattr(node.value, "value", None), str)]
    skipped = {line for node in docs for line in range(node.lineno, node.end_lineno + 1)}
    lines = enumerate(map(str.strip, text.splitlines()), 1)
    return [n for n, line in lines if line and not line.startswith("#") and n not in skipped]


def survivors_of(faults, seconds):
    """Return the faults that their tests don't find. Those of the own folder are imported and run first."""
    left, running, survivors = [], {}, []
    for fault in faults:
        folder = fault.tests[0].rpartition("/")[0]
        near = [test for test in fault.tests if test.startswith(folder)]
        left.append((fault, [near, [test for test in fault.tests if test not in near]]))
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "durations").write_text(json.dumps(seconds))
        while left or running:
            if left and len(running) < mutants.AT_ONCE:
                fault, (tests, *rest) = left.pop()
                tests_s = sum(seconds[test] for test in tests)
                limits_s = [mutants.LIMIT_S + round(factor * tests_s) for factor in mutants.LIMIT_FACTORS]
                changed = mutants.Changed(fault.module, fault.make_tree())
                running[mutants.start([*tests, *OPTIONS], Path(folder), limits_s, changed)] = fault, rest
            else:
                pid, status = os.wait()
                fault, rest = running.pop(pid)
                if not status and any(rest):
                    left.append((fault, rest))
                elif not status:
                    survivors.append(fault)
    return survivors


def main():
    """Draw, test and list. Return the exit status."""
    os.chdir(ROOT)
    cover = Cover()
    for name in mutants.PRELOADED:
        importlib.import_module(name)
    count, seed, *_ = [*sys.argv[1:], *(200, cover.digest)[len(sys.argv) - 1 :]]
    drawn = draw(cover, int(count), seed)
    faults = [fault for fault in drawn if fault.tests]
    survivors = survivors_of(faults, cover.seconds)
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
