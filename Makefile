# SPDX-License-Identifier: Apache-2.0
# For a machine without ROS. With ROS installed, use rosdep and colcon as for any other package.
# ROS 2 Jazzy, or with ROS=kilted that one: make test ROS=kilted
export ROS
PYTHON ?= python3
ACTIVATE := . env/activate

# Installs into virtual environments, even if pip installs for the user by default.
export PIP_USER := 0

# pytest rewrites the test files. Without cached bytecode, each of its workers would repeat that.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup setup_tests view demo check test test_all test_other lives mutants coverage lint reference docs wheels
.PHONY: shots measure clean

setup:
	@$(PYTHON) env/make_environment.py

# Additional requirements of checks, tests and wheels.
setup_tests:
	@$(PYTHON) env/make_environment.py --tests

# A landing, live in a browser, which starts when the page is opened. The page's "land on pad" starts another one.
# Ctrl-C ends it without an error: by bash -m, only the launch receives it, and not make.
view: setup
	@$(ACTIVATE) && bash $$(test -t 0 && echo -m) -c 'drone-bridge launch telemetry.launch.xml emulate:=true control:=true rover_pattern:=circular landing_start:=ground view:=true wait_for_viewer:=true; status=$$?; [ $$status = 130 ] || exit $$status'

demo: setup
	@$(ACTIVATE) && drone-bridge demo testbed && drone-bridge demo landing
	@echo 'To watch a landing live in a browser: make view'

# Type arguments of rclpy's classes are only checked with Kilted: Jazzy's classes have none.
lint: setup_tests
	@$(ACTIVATE) && ruff check . && ruff format --check . && mypy $(if $(filter kilted,$(ROS)),--enable-error-code type-arg)

# Wheels for pip in dist/. TRY=1 installs them into a separate environment, and flies and lands there.
wheels: setup_tests
	@$(ACTIVATE) && python env/make_wheels.py $(if $(TRY),--try)

# Writes docs/reference/ from the declarations of nodes and launch files, and draws docs/architecture.svg.
reference: setup_tests
	@$(ACTIVATE) && python docs/make_reference.py && python docs/make_picture.py

# The pages and the library's reference as a web site in build/site. Fails for broken links.
docs:
	@test -x build/docs/bin/pip || $(PYTHON) -m venv build/docs
	@build/docs/bin/pip --disable-pip-version-check --quiet install -r env/requirements_docs.txt
	@NO_MKDOCS_2_WARNING=1 build/docs/bin/mkdocs build --strict

# Screenshots of the page in all sizes, light and dark, in shots/. Fails if elements overlap.
# Some sizes only: make shots SIZES='1280x720 390x844'. The guide's pictures of a first flight go into docs/first_flight.
shots: setup_tests
	@$(ACTIVATE) && python docs/make_first_flight.py docs/first_flight && python docs/make_shots.py shots $(SIZES)

# All tests that need neither DDS nor other processes, for use before each commit. Or all tests of one protocol,
# including those of installed packages: make check P=testbed
check: lint
	@$(ACTIVATE) && $(if $(P),pytest $(wildcard test/$(P)) test/conformance -k $(P) -q -m 'not exhaustive',python test/runner/run.py '^unit_')

# The gate for every change: all tests but those marked as exhaustive, in ten minutes on two idle cores. Or its entries
# with a matching name: make test T=robot. `colcon test` runs the same entries.
test: lint
	@$(ACTIVATE) && python test/runner/run.py $(T)

# All tests, each night and for each release, and those that use rclpy again on the other distribution.
test_all: lint
	@$(ACTIVATE) && python test/runner/run.py --all $(T); failed=$$?; $(MAKE) test_other && exit $$failed

# Tests that use rclpy, or T's, on the other distribution: in a worktree with all changes of tracked files.
OTHER := $(if $(filter kilted,$(ROS)),jazzy,kilted)
test_other:
	@test -e build/$(OTHER)/.git || git worktree add --quiet --force --detach build/$(OTHER)
	@git -C build/$(OTHER) checkout --quiet --force --detach $$(git stash create | grep . || git rev-parse HEAD)
	@cd build/$(OTHER) && unset MAKEFLAGS && export ROS=$(OTHER) && $(MAKE) setup_tests && \
	$(ACTIVATE) && python test/runner/run.py --all '$(or $(T),^(ros|tools|conformance|launch|web)_)'

# Hours of use in virtual time, of each kind, by new seeds: make lives HOURS=8. A life again: make lives K=robot SEED=7.
# Several actors at once, each with a clock of his own: make lives SEVERAL=1.
lives: setup_tests
	@$(ACTIVATE) && python test/life/night.py --hours $(or $(HOURS),1) $(if $(SEED),--seed $(SEED)) $(if $(LIMIT),--limit $(LIMIT)) \
		$(if $(HEALTHY),--healthy) $(if $(SEVERAL),--several) $(K)

# Whether the tests of the stop path are sharp: each one-line fault put into it has to be found by the nearest pure tests,
# or to be signed in test/runner/survivors.py. Some modules only: make mutants M='net/send_queue motion/limits'
# Faults drawn over the whole package, of which those that no pure test finds are listed: make mutants DRAW=200 SEED=7
mutants: setup_tests
	@$(ACTIVATE) && python test/runner/$(if $(DRAW),lottery.py $(DRAW) $(SEED),mutants.py $(M))

# Share of the package that the tests run, including the processes that they start, in percent.
coverage: setup_tests
	@$(ACTIVATE) && rm -rf build/coverage && DRONE_BRIDGE_COVERAGE=$(CURDIR)/build/coverage python test/runner/run.py --all
	@$(ACTIVATE) && coverage combine --quiet build/coverage && coverage report --format=total

# Kills, stalls, broken peers, several machines, landings, reports that lie, CPU. Prints figures, and fails only if
# a vehicle moved without permission, or did not stop. Half an hour at most: make measure SHORT=1
# Some steps only: make measure STEPS='kills hosts'; python measure/run.py --list names all.
measure: setup_tests
	@$(ACTIVATE) && python measure/run.py $(if $(SHORT),--short) $(STEPS)

# Removes all generated files in this folder, and lists those outside.
clean:
	rm -rf .venv build log demo dist web/dist web/node_modules
	@echo 'Left outside of this folder, if they exist: ~/.cache/drone_bridge, the caches of uv, pip and npm'
	@echo '(~/.cache/uv, ~/.cache/pip, ~/.npm), ~/.ros/log, ~/.ros/held, and your recordings in ~/drone_bridge_bags.'
