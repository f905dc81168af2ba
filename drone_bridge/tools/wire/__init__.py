# SPDX-License-Identifier: Apache-2.0
"""Wire logs: shown, played to a peer, and made from captures. See docs/wire_log.md."""
