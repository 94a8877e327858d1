"""A client of SDK 2. See told.py."""

import asyncio
from contextlib import AsyncExitStack

import httpx2
import told
from mcp import Client as SdkClient
from mcp import StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import Implementation


class Client:
    def __init__(self, stack):
        self.stack = stack

    async def connect(self):
        if told.endpoint == "stdio":
            transport = stdio_client(StdioServerParameters(command=told.command, args=told.arguments))
        elif told.endpoint == "sse":
            transport = sse_client(told.url, headers=told.headers)
        else:
            timeout = httpx2.Timeout(30, read=300)
            http = await self.stack.enter_async_context(httpx2.AsyncClient(headers=told.headers, timeout=timeout))
            transport = streamable_http_client(told.url, http_client=http)
        info = Implementation(name=told.name, version="1.0.0")
        options = {"mode": told.mode} if told.mode else {}
        self.client = await self.stack.enter_async_context(SdkClient(transport, client_info=info, **options))
        return self.client.protocol_version

    def method(self, name):
        return getattr(self.client, name)

    async def list(self):
        return len((await self.client.list_tools()).tools)

    async def call(self, tool, on_progress):
        result = await self.client.call_tool(tool, {"client": told.name}, told.call_seconds, on_progress)
        return result.content[0].text


async def main():
    async with AsyncExitStack() as stack:
        await told.run(Client(stack))


asyncio.run(main())
