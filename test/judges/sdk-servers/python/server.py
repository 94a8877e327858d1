"""The same small server by three SDKs for Python: `server.py sdk1|sdk2|fastmcp` on STDIO.

Over HTTP with a port, and with `http`, `stateless` or `sse`.
"""

import asyncio
import sys

kind, port = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else None
transport = sys.argv[3] if port else "stdio"
address = {"host": "127.0.0.1", "port": port}
stateless = {"stateless_http": True} if transport == "stateless" else {}

if kind == "sdk1":
    from mcp.server.fastmcp import Context, FastMCP

    server = FastMCP("python-sdk-1", "Echo.", **({**address, **stateless} if port else {}))
elif kind == "sdk2":
    from mcp.server.mcpserver import Context, MCPServer

    server = MCPServer("python-sdk-2", instructions="Echo.")
else:
    from fastmcp import Context, FastMCP

    server = FastMCP("fastmcp", "Echo.")


@server.tool()
def echo(text: str) -> str:
    """Says it again"""
    return text


@server.tool()
def fail() -> str:
    raise ValueError("it failed")


@server.tool()
async def wait(count: int, gapMs: float, ctx: Context) -> str:
    for index in range(count):
        await asyncio.sleep(gapMs / 1000)
        await ctx.report_progress(index + 1)
    return "waited"


@server.resource("test://note", mime_type="text/plain")
def note() -> str:
    return "a note"


@server.prompt()
def greet(name: str) -> str:
    return f"Hello {name}"


names = {"http": "streamable-http", "stateless": "streamable-http"}
if kind == "sdk1":
    server.run(names.get(transport, transport))
elif port is None:
    server.run(**({"show_banner": False} if kind == "fastmcp" else {}))
else:
    banner = {"show_banner": False} if kind == "fastmcp" else {}
    server.run(names.get(transport, transport), **address, **stateless, **banner)
