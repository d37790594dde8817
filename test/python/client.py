"""A client that answers whatever it is asked during one call of the tool `ask`: client.py LINE URL ARGUMENTS [sse]

Prints one JSON object: the era's revision, what was asked, the progress heard of, and the tool's text.
"""

import asyncio
import json
import sys

LINE, URL, ARGUMENTS = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
SSE = "sse" in sys.argv[4:]
asked: list[str] = []
progress: list[float] = []

if LINE == "1":
    from mcp import ClientSession, types
    from mcp.client.sse import sse_client
    from mcp.client.streamable_http import streamablehttp_client
else:
    import mcp_types as types
    from mcp import Client
    from mcp.client.sse import sse_client


async def elicit(_context, params):
    mode = getattr(params, "mode", None) or "form"
    asked.append(mode)
    if mode == "url":
        return types.ElicitResult(action="accept")
    schema = params.requestedSchema if LINE == "1" else params.requested_schema
    return types.ElicitResult(action="accept", content={key: "from Python" for key in schema["properties"]})


async def sample(_context, _params):
    asked.append("sampling")
    content = types.TextContent(type="text", text="sampled")
    return types.CreateMessageResult(role="assistant", model="m", content=content)


async def roots(_context):
    asked.append("roots")
    return types.ListRootsResult(roots=[types.Root(uri="file:///python")])


async def heard(step: float, _total, _message) -> None:
    progress.append(step)


CALLBACKS = {"elicitation_callback": elicit, "sampling_callback": sample, "list_roots_callback": roots}


async def call(client, revision: str) -> None:
    result = await client.call_tool("ask", ARGUMENTS, progress_callback=heard)
    told = {"revision": revision, "asked": asked, "progress": progress, "answers": json.loads(result.content[0].text)}
    print(json.dumps(told))


async def main() -> None:
    if LINE == "2":
        async with Client(sse_client(URL) if SSE else URL, **CALLBACKS) as client:
            await call(client, client.protocol_version)
        return
    open_streams = sse_client if SSE else streamablehttp_client
    async with open_streams(URL) as (read, write, *_), ClientSession(read, write, **CALLBACKS) as client:
        initialized = await client.initialize()
        await call(client, initialized.protocolVersion)


asyncio.run(main())
