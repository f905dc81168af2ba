# SPDX-License-Identifier: Apache-2.0
"""Display of wire logs as text. See docs/bags.md."""
