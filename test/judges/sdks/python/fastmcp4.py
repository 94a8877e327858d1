"""A client of FastMCP. See told.py."""

import asyncio
from contextlib import AsyncExitStack

import told
from fastmcp import Client as FastMcpClient
from fastmcp.client.transports import SSETransport, StreamableHttpTransport
from mcp.types import Implementation


class Client:
    def __init__(self, stack):
        self.stack = stack

    async def connect(self):
        transport = SSETransport if told.endpoint == "sse" else StreamableHttpTransport
        info = Implementation(name=told.name, version="1.0.0")
        client = FastMcpClient(transport(told.url, headers=told.headers), client_info=info)
        self.client = await self.stack.enter_async_context(client)
        return self.client.protocol_version

    async def list(self):
        return len(await self.client.list_tools())

    async def call(self, tool, on_progress):
        result = await self.client.call_tool(
            tool, {"client": told.name}, timeout=told.call_seconds, progress_handler=on_progress
        )
        return result.content[0].text


async def main():
    async with AsyncExitStack() as stack:
        await told.run(Client(stack))


asyncio.run(main())
