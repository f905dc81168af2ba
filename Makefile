# SPDX-License-Identifier: Apache-2.0
# For a machine without ROS. Where ROS is installed, use rosdep and colcon as for any other package.
PYTHON ?= python3
ACTIVATE := . env/activate

.PHONY: setup test lint clean

setup:
	@$(PYTHON) env/make_environment.py

lint: setup
	@$(ACTIVATE) && ruff check . && ruff format --check . && mypy

test: lint
	@$(ACTIVATE) && pytest

clean:
	rm -rf .venv build log
