"""What the clients in Python share: lines on stdin say what to do, and a line of JSON is the answer to each.

Arguments: `mcp`, `sse` or `stdio`, the URL or the server's command, the key, the client's name, and the mode of version 2,
which is empty for its default.
"""

import asyncio
import json
import sys

endpoint, url, key, name, mode = sys.argv[1:6]
command, *arguments = url.split(" ")
headers = {"Authorization": f"Bearer {key}"}
# The limit of a call; the SDKs have none of their own.
call_seconds = 15

# How each SDK asks for what a line names. FastMCP has the same names with a suffix.
methods = {
    "tools/list": lambda of, _: of("list_tools")(),
    "prompts/list": lambda of, _: of("list_prompts")(),
    "resources/list": lambda of, _: of("list_resources")(),
    "resources/templates/list": lambda of, _: of("list_resource_templates")(),
    "tools/call": lambda of, params: of("call_tool")(params["name"], params["arguments"]),
    "prompts/get": lambda of, params: of("get_prompt")(params["name"], params["arguments"]),
    "resources/read": lambda of, params: of("read_resource")(params["uri"]),
}


async def run(client):
    """`client` has connect, list, call(tool, on_progress), and method(name) for `methods`."""
    while line := await asyncio.to_thread(sys.stdin.readline):
        try:
            answer = await step(client, *line.strip().split(" ", 1))
        except BaseException as error:  # SDKs raise groups of exceptions
            answer = {"error": text_of(error)}
        print(json.dumps(answer), flush=True)


async def step(client, word, asked=""):
    if word == "connect":
        return {"revision": await client.connect()}
    if word == "list":
        return {"tools": await client.list()}
    if word == "ask":
        asked = json.loads(asked)
        result = await methods[asked["method"]](client.method, asked["params"])
        return {"result": result.model_dump(mode="json", by_alias=True, exclude_none=True)}
    told = 0

    async def on_progress(*_):
        nonlocal told
        told += 1

    if word == "cancel":
        called = asyncio.create_task(client.call("hold", on_progress))
        await asyncio.sleep(0.5)
        called.cancel()
        await asyncio.wait([called])
        return {}
    return {"text": await client.call("count" if word == "count" else "echo", on_progress), "progress": told}


def text_of(error):
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(text_of(one) for one in error.exceptions)
    return f"{type(error).__name__}: {error}"
