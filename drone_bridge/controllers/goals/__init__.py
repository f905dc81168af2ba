# SPDX-License-Identifier: Apache-2.0
"""Goals, as actions: take off, land, go to a pose, follow a path. See docs/controllers.md."""
