"""A client of FastMCP that declares tasks (2026-07-28). Arguments: the URL, and the tools to call.

It follows each task to its end, answers its questions, and prints a line of JSON for each tool.
"""

import asyncio
import json
import sys

from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult
from fastmcp_tasks.client import call_tool_task


async def answer(*_):
    return ElicitResult(action="accept", content={"confirm": True})


async def follow(client, tool):
    task = await call_tool_task(client, tool)
    result = await task.result()
    return {"status": (await task.status()).status, "text": result.content[0].text}


async def main():
    url, *tools = sys.argv[1:]
    async with Client(url, elicitation_handler=answer) as client:
        for tool in tools:
            try:
                told = await follow(client, tool)
            except Exception as error:
                told = {"error": f"{type(error).__name__}: {error}"}
            print(json.dumps(told), flush=True)


asyncio.run(main())
