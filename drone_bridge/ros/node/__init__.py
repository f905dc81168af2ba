# SPDX-License-Identifier: Apache-2.0
"""Lifecycle nodes of bridges and servers: base class, program, parameters, links and reports."""
