"""A client of FastMCP 3 or 4. See told.py."""

import asyncio
from contextlib import AsyncExitStack

import told
from fastmcp import Client as FastMcpClient
from fastmcp.client.transports import SSETransport, StdioTransport, StreamableHttpTransport
from mcp.types import Implementation


class Client:
    def __init__(self, stack):
        self.stack = stack

    async def connect(self):
        if told.endpoint == "stdio":
            transport = StdioTransport(told.command, told.arguments)
        elif told.endpoint == "sse":
            transport = SSETransport(told.url, headers=told.headers)
        else:
            transport = StreamableHttpTransport(told.url, headers=told.headers)
        client = FastMcpClient(transport, client_info=Implementation(name=told.name, version="1.0.0"))
        self.client = await self.stack.enter_async_context(client)
        # Version 3 does not tell the revision of its session elsewhere.
        return getattr(client, "protocol_version", None) or client.initialize_result.protocolVersion

    def method(self, name):
        return getattr(self.client, f"{name}_mcp")

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
