# SPDX-License-Identifier: Apache-2.0
# For a machine without ROS. With ROS installed, use rosdep and colcon as for any other package.
# ROS 2 Kilted, or with ROS=jazzy that one, whose wheels are for Python 3.12: make test ROS=jazzy
export ROS
PYTHON ?= $(if $(filter jazzy,$(ROS)),python3.12,python3)
ACTIVATE := . env/activate

# Into virtual environments, also where pip installs for the user by default.
export PIP_USER := 0

# pytest rewrites the test files; unless bytecode is cached, each of its workers would do so again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup setup_tests view demo check test coverage lint reference docs wheels
.PHONY: shots bench campaign clean

setup:
	@$(PYTHON) env/make_environment.py

# What checks, tests and wheels need beside it.
setup_tests:
	@$(PYTHON) env/make_environment.py --tests

# The landing, live in a browser, as soon as somebody looks, until Ctrl-C, which is a good end: bash -m has it sent to the
# launch alone, and not to make. The page's "land on pad" lands once more.
view: setup
	@$(ACTIVATE) && bash -mc 'drone-bridge launch telemetry.launch.xml emulate:=true control:=true rover_pattern:=circular landing_start:=ground view:=true wait_for_viewer:=true; status=$$?; [ $$status = 130 ] || exit $$status'

demo: setup
	@$(ACTIVATE) && drone-bridge demo testbed && drone-bridge demo landing
	@echo 'To watch a landing live in a browser: make view'

# Types are those of Kilted's rclpy.
lint: setup_tests
	@$(ACTIVATE) && ruff check . && ruff format --check . $(if $(filter jazzy,$(ROS)),,&& mypy)

# dist/: what pip installs. TRY=1 installs it in an environment of its own, and flies and lands there.
wheels: setup_tests
	@$(ACTIVATE) && python env/make_wheels.py $(if $(TRY),--try)

# Writes docs/reference/ from what nodes declare and launch files take, and draws docs/architecture.svg.
reference: setup_tests
	@$(ACTIVATE) && python docs/make_reference.py && python docs/make_picture.py

# build/site: the pages and the library's reference as a site, whose links all lead somewhere.
docs:
	@test -x build/docs/bin/pip || $(PYTHON) -m venv build/docs
	@build/docs/bin/pip --disable-pip-version-check --quiet install -r env/requirements_docs.txt
	@NO_MKDOCS_2_WARNING=1 build/docs/bin/mkdocs build --strict

# Takes pictures of the page in all sizes, light and dark, into shots/, and fails where anything lies over something else.
# Only in some: make shots SIZES='1280x720 390x844'
shots: setup_tests
	@$(ACTIVATE) && python docs/make_shots.py shots $(SIZES)

# All tests that need neither DDS nor other processes, for use before each commit; or all of one protocol, an installed
# package's too: make check P=testbed
check: lint
	@$(ACTIVATE) && $(if $(P),pytest $(wildcard test/$(P)) test/conformance -k $(P) -q,python test/runner/run.py '^unit_')

# All tests, or those entries whose name matches: make test T=robot. `colcon test` runs the same ones.
test: lint
	@$(ACTIVATE) && python test/runner/run.py $(T)

# How much of the package the tests run, processes that they start included, in per cent.
coverage: setup_tests
	@$(ACTIVATE) && rm -rf build/coverage && DRONE_BRIDGE_COVERAGE=$(CURDIR)/build/coverage python test/runner/run.py
	@$(ACTIVATE) && coverage combine --quiet build/coverage && coverage report --format=total

# What the bridges cost; takes about half an hour. Only one of them: make bench B=testbed
bench: setup_tests
	@$(ACTIVATE) && for name in $(or $(B),testbed simulator telemetry robot dronegui robot_class footprint web); do python benchmark/$$name.py || exit; done

# Kills, stalls, broken peers, several machines, flights by the clock, throughput, memory: prints figures, and fails only
# where a vehicle moved that should not have or did not stop. Half an hour at most: make campaign SHORT=1
# Only some of it: make campaign STEPS='kills hosts'; python campaign/run.py --list names all.
campaign: setup_tests
	@$(ACTIVATE) && python campaign/run.py $(if $(SHORT),--short) $(STEPS)

# All that is made in this folder. What lies outside of it is named.
clean:
	rm -rf .venv build log demo dist web/dist web/node_modules
	@echo 'Left outside of this folder, if they exist: ~/.cache/drone_bridge, the caches of uv, pip and npm'
	@echo '(~/.cache/uv, ~/.cache/pip, ~/.npm), ~/.ros/log, ~/.ros/held, and your recordings in ~/drone_bridge/bags.'
