# SPDX-License-Identifier: Apache-2.0
"""Actions: take off, land, go to a pose, follow a path. See docs/controllers.md."""
