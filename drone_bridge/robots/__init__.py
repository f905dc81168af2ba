# SPDX-License-Identifier: Apache-2.0
"""Robots that people own, each described in one class: see docs/robots.md."""
