"""A client of SDK 1. See told.py."""

import asyncio
from contextlib import AsyncExitStack
from datetime import timedelta

import told
from mcp import ClientSession, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client
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
            transport = streamablehttp_client(told.url, headers=told.headers)
        read, write, *_ = await self.stack.enter_async_context(transport)
        info = Implementation(name=told.name, version="1.0.0")
        self.session = await self.stack.enter_async_context(ClientSession(read, write, client_info=info))
        return (await self.session.initialize()).protocolVersion

    def method(self, name):
        return getattr(self.session, name)

    async def list(self):
        return len((await self.session.list_tools()).tools)

    async def call(self, tool, on_progress):
        arguments, limit = {"client": told.name}, timedelta(seconds=told.call_seconds)
        result = await self.session.call_tool(tool, arguments, limit, on_progress)
        return result.content[0].text


async def main():
    async with AsyncExitStack() as stack:
        await told.run(Client(stack))


asyncio.run(main())
