# SPDX-License-Identifier: Apache-2.0
"""Viewers' requests run on the executor's thread, and viewers wait for that."""

import asyncio

from drone_bridge.tools.web.inbox import Inbox


class Node:
    """Runs the callback of a guard condition on request of the test."""

    def get_logger(self):
        return None

    def create_guard_condition(self, run):
        self.run = run
        return self

    def trigger(self):
        self.triggered = True


def test_a_viewer_waits_until_the_executor_has_run_what_was_put_before():
    node, ran = Node(), []
    inbox = Inbox(node)

    async def request():
        inbox.put(lambda: ran.append("request"))
        waiting = asyncio.create_task(inbox.done())
        await asyncio.sleep(0)
        assert not waiting.done()
        await asyncio.get_running_loop().run_in_executor(None, node.run)
        await waiting
        assert ran == ["request"]

    asyncio.run(request())


def test_viewers_that_ask_without_end_leave_turns_to_the_node():
    node, ran = Node(), []
    inbox = Inbox(node)

    def work():
        ran.append("request")
        if len(ran) < 1000:
            inbox.put(work)  # as another thread does meanwhile

    inbox.put(work)
    node.triggered = False
    node.run()
    assert ran == ["request"]
    assert node.triggered
    node.run()
    assert ran == ["request"] * 2
