# SPDX-License-Identifier: Apache-2.0
"""Many vehicles behind bridges in one process, from one YAML file. See docs/fleet.md."""
