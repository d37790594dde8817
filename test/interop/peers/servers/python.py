"""The fixture on one of three Python libraries: python.py mcp1|mcp2|fastmcp http|sse|stdio PORT [stateless]"""

import asyncio
import sys

from pydantic import BaseModel

LIBRARY, TRANSPORT, PORT, *FLAGS = sys.argv[1:]

if LIBRARY == "mcp1":
    from mcp.server.fastmcp import Context
    from mcp.server.fastmcp import FastMCP as Server
    from mcp.server.fastmcp.exceptions import ToolError
elif LIBRARY == "mcp2":
    from mcp.server.mcpserver import Context
    from mcp.server.mcpserver import MCPServer as Server
    from mcp.server.mcpserver.exceptions import ToolError
else:
    from fastmcp import Context
    from fastmcp import FastMCP as Server
    from fastmcp.exceptions import ToolError

URI = "note://today"
server = Server(name="interop")


class Name(BaseModel):
    name: str


@server.tool()
def add(a: int, b: int) -> str:
    return str(a + b)


@server.tool()
def fail() -> str:
    raise ToolError("It failed on purpose")


@server.tool()
async def slow(ctx: Context) -> str:
    for step in range(1, 4):
        await ctx.report_progress(step, 3)
        await asyncio.sleep(0.05)
    return "slept"


@server.tool()
async def touch(ctx: Context) -> str:
    if LIBRARY == "mcp2":
        await ctx.notify_resource_updated(URI)
    await ctx.session.send_resource_updated(URI)
    return "touched"


@server.resource(URI)
def today() -> str:
    return "Today"


if LIBRARY == "mcp2":
    from typing import Annotated

    from mcp.server.mcpserver import Elicit, ElicitationResult, Resolve
    from mcp_types import EmptyResult, SubscribeRequestParams, UnsubscribeRequestParams

    def who():
        return Elicit("Who?", Name)

    @server.tool()
    async def ask(name: Annotated[ElicitationResult[Name], Resolve(who)]) -> str:
        return f"Hello {name.data.name}"

    async def accept(_ctx, _params) -> EmptyResult:
        return EmptyResult()

    for method, params in (
        ("resources/subscribe", SubscribeRequestParams),
        ("resources/unsubscribe", UnsubscribeRequestParams),
    ):
        server._lowlevel_server.add_request_handler(method, params, accept)
elif LIBRARY == "mcp1":

    @server.tool()
    async def ask(ctx: Context) -> str:
        return f"Hello {(await ctx.elicit('Who?', Name)).data.name}"

    @server._mcp_server.subscribe_resource()
    async def subscribe(_uri) -> None:
        pass

else:

    @server.tool()
    async def ask(ctx: Context):
        answers = getattr(ctx, "input_responses", None)
        if answers:
            return f"Hello {answers['name'].content['name']}"
        try:
            return f"Hello {(await ctx.elicit('Who?', Name)).data.name}"
        except ToolError:
            # The modern era of FastMCP 4 asks with a result.
            from mcp_types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult

            form = ElicitRequestFormParams(message="Who?", requested_schema=Name.model_json_schema())
            return InputRequiredResult(input_requests={"name": ElicitRequest(params=form)})


if LIBRARY == "fastmcp":
    if TRANSPORT == "stdio":
        server.run(show_banner=False)
    else:
        options = {"stateless_http": True} if "stateless" in FLAGS else {}
        server.run(
            transport=TRANSPORT, host="127.0.0.1", port=int(PORT), show_banner=False, log_level="WARNING", **options
        )
elif TRANSPORT == "stdio":
    server.run()
else:
    import uvicorn

    if LIBRARY == "mcp1":
        server.settings.stateless_http = "stateless" in FLAGS
        app = server.sse_app() if TRANSPORT == "sse" else server.streamable_http_app()
    elif TRANSPORT == "sse":
        app = server.sse_app()
    else:
        app = server.streamable_http_app(stateless_http="stateless" in FLAGS)
    uvicorn.run(app, host="127.0.0.1", port=int(PORT), log_level="warning")
