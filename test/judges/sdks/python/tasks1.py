"""A client of SDK 1 that asks for tasks (2025-11-25) and collects their results. Arguments: the URL, and the tools to call.

It answers the questions of tasks, and prints a line of JSON for each tool.
"""

import asyncio
import json
import sys

from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client
from mcp.types import CallToolResult, ElicitResult


async def answer(_context, _params):
    return ElicitResult(action="accept", content={"confirm": True})


async def follow(session, tool):
    made = await session.experimental.call_tool_as_task(tool, {})
    task_id = made.task.taskId
    result = await session.experimental.get_task_result(task_id, CallToolResult)
    state = await session.experimental.get_task(task_id)
    return {"status": state.status, "text": result.content[0].text}


async def main():
    url, *tools = sys.argv[1:]
    async with streamablehttp_client(url) as (read, write, *_):
        async with ClientSession(read, write, elicitation_callback=answer) as session:
            await session.initialize()
            for tool in tools:
                try:
                    told = await follow(session, tool)
                except Exception as error:
                    told = {"error": f"{type(error).__name__}: {error}"}
                print(json.dumps(told), flush=True)


asyncio.run(main())
