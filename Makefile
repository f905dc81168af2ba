# SPDX-License-Identifier: Apache-2.0
# For a machine without ROS. With ROS installed, use rosdep and colcon as for any other package.
# ROS 2 Kilted, or with ROS=jazzy that one, whose wheels are for Python 3.12: make test ROS=jazzy
export ROS
PYTHON ?= $(if $(filter jazzy,$(ROS)),python3.12,python3)
ACTIVATE := . env/activate
WORKERS ?= $(shell echo $$(($$(nproc) * 5)))

# pytest rewrites the test files; unless bytecode is cached, each of its workers would do so again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup view demo demo-all demo-landings demo-worlds demo-fleet demo-any check test coverage lint collect reference docs wheels
.PHONY: shots bench fuzz soak kills signals stalls clean

setup:
	@$(PYTHON) env/make_environment.py

# The landing, live in a browser, as soon as somebody looks, until Ctrl-C. The page's "land on pad" lands once more.
view: setup
	@$(ACTIVATE) && drone-bridge launch landing.launch.xml emulate:=true control:=true rover_pattern:=circular landing_start:=ground view:=true wait_for_viewer:=true

demo: setup
	@$(ACTIVATE) && drone-bridge demo testbed && drone-bridge demo landing
	@echo 'To watch a landing live in a browser: make view'

demo-all: setup
	@$(ACTIVATE) && drone-bridge demo all

# Legacy operators steer vehicles of other protocols through standard topics.
demo-any: setup
	@$(ACTIVATE) && drone-bridge demo any

demo-landings: setup
	@$(ACTIVATE) && drone-bridge demo landings

demo-worlds: setup
	@$(ACTIVATE) && drone-bridge demo worlds

demo-fleet: setup
	@$(ACTIVATE) && drone-bridge demo fleet

# Types are those of Kilted's rclpy.
lint: setup
	@$(ACTIVATE) && ruff check . && ruff format --check . $(if $(filter jazzy,$(ROS)),,&& mypy)

# dist/: what pip installs. TRY=1 installs it in an environment of its own, and flies and lands there.
wheels: setup
	@$(ACTIVATE) && python env/make_wheels.py $(if $(TRY),--try)

# Writes docs/reference/ from what nodes declare and launch files take.
reference: setup
	@$(ACTIVATE) && python docs/make_reference.py

# build/site: the pages and the library's reference as a site, whose links all lead somewhere.
docs:
	@test -x build/docs/bin/pip || $(PYTHON) -m venv build/docs
	@build/docs/bin/pip --disable-pip-version-check --quiet install -r env/requirements_docs.txt
	@NO_MKDOCS_2_WARNING=1 build/docs/bin/mkdocs build --strict

# Takes pictures of the page in four sizes, light and dark, into shots/, and fails where anything lies over something else.
shots: setup
	@$(ACTIVATE) && python docs/make_shots.py shots

# Rewrites the test files once for all workers, while mypy uses the other core.
collect: setup
	@$(ACTIVATE) && pytest --collect-only -q >/dev/null || true

# The quick tests that need neither DDS nor other processes, for use before each commit; or what is asked of one
# protocol, of an installed package's too: make check P=testbed
CHECKED := $(if $(P),test/conformance $(wildcard test/test_$(P)_protocol*.py test/test_$(P)_translation.py) -k $(P),--alone)
check: lint
	@$(ACTIVATE) && pytest $(CHECKED) -q -n $(if $(P),$(WORKERS),2) --dist loadfile --no-loadscope-reorder

# Most tests wait most of the time, so there are more workers than cores; a browser does not, so its tests come first.
# A test that hangs fails after ten minutes.
# Failures are shown, and asked once more one at a time: a machine that is busier than ours must not decide.
TESTS := pytest --timeout 600 --dist loadfile --no-loadscope-reorder
BROWSERS = $(shell grep -lE '^import browser' test/test_*.py)
TESTS_AGAIN := pytest --timeout 600 --last-failed --last-failed-no-failures none
test: setup
	@$(MAKE) --no-print-directory -j 2 lint collect
	@$(ACTIVATE) && { $(TESTS) -n 2 $(BROWSERS) || $(TESTS_AGAIN) $(BROWSERS); } && \
	{ $(TESTS) -n $(WORKERS) $(addprefix --ignore=,$(BROWSERS)) || $(TESTS_AGAIN) $(addprefix --ignore=,$(BROWSERS)); }

# How much of the package the tests run, processes that they start included, in per cent.
coverage: setup
	@$(ACTIVATE) && { $(TESTS) -n $(WORKERS) --cov --cov-report= || $(TESTS_AGAIN); }
	@$(ACTIVATE) && coverage combine --append --quiet || true  # of processes that ended after the tests
	@$(ACTIVATE) && coverage report --format=total

# What the bridges cost; takes about a quarter of an hour.
bench: setup
	@$(ACTIVATE) && for name in testbed simulator telemetry footprint web; do python benchmark/$$name.py || exit; done
	@$(ACTIVATE) && python benchmark/fleet.py --drones 1 10 --robots 1 20 --seconds 5

# Feeds every codec, in every role, mutated captures: make fuzz INPUTS=1000000
INPUTS ?= 10000
fuzz: setup
	@$(ACTIVATE) && python benchmark/fuzz.py --inputs $(INPUTS)

# Disturbs every program at random, each for so long: make soak DURATION=1h
DURATION ?= 10m
soak: setup
	@$(ACTIVATE) && python benchmark/campaign.py soak --duration $(DURATION) --at-once 14

# So often to every program: SIGKILL (kills), SIGINT and SIGTERM (signals), SIGSTOP (stalls)
COUNT ?= 10
kills signals stalls: setup
	@$(ACTIVATE) && python benchmark/campaign.py $@ --count $(COUNT)

clean:
	rm -rf .venv build log demo web/dist web/node_modules
