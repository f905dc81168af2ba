# SPDX-License-Identifier: Apache-2.0
"""Wire logs, shown as text. See docs/bags.md."""
