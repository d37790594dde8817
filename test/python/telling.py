"""A server that tells its clients of changes, on one of three Python libraries: telling.py LIBRARY PORT"""

import sys

LIBRARY, PORT = sys.argv[1:]

if LIBRARY == "mcp1":
    from mcp.server.fastmcp import Context
    from mcp.server.fastmcp import FastMCP as Server
elif LIBRARY == "mcp2":
    from mcp.server.mcpserver import Context
    from mcp.server.mcpserver import MCPServer as Server
else:
    from fastmcp import Context
    from fastmcp import FastMCP as Server

server = Server(name=f"telling-{LIBRARY}")
subscribed: list[str] = []


@server.resource("note://today")
def note() -> str:
    return "Today"


@server.prompt()
def greet(name: str) -> str:
    return f"Greet {name}."


async def announce(what: str, ctx: Context, uri: str) -> None:
    """In each way that the library has"""
    if LIBRARY == "mcp2":
        await {
            "tools": ctx.notify_tools_changed,
            "prompts": ctx.notify_prompts_changed,
            "resources": ctx.notify_resources_changed,
            "updated": lambda: ctx.notify_resource_updated(uri),
        }[what]()
    session = ctx.session
    await {
        "tools": session.send_tool_list_changed,
        "prompts": session.send_prompt_list_changed,
        "resources": session.send_resource_list_changed,
        "updated": lambda: session.send_resource_updated(uri),
    }[what]()


@server.tool()
async def tell(what: str, ctx: Context, uri: str = "note://today") -> str:
    await announce(what, ctx, uri)
    return what


@server.tool()
def subscriptions() -> str:
    return " ".join(subscribed)


@server.tool()
async def grow(name: str, ctx: Context) -> str:
    """Has one more tool from now on"""

    def grown() -> str:
        return name

    if LIBRARY == "fastmcp":
        from fastmcp.tools import Tool

        server.add_tool(Tool.from_function(grown, name=name))
    else:
        server.add_tool(grown, name=name)
    await announce("tools", ctx, "")
    return name


if LIBRARY == "mcp2":
    from mcp_types import EmptyResult, SubscribeRequestParams, UnsubscribeRequestParams

    async def subscribe(ctx, params: SubscribeRequestParams) -> EmptyResult:
        subscribed.append(str(params.uri))
        return EmptyResult()

    async def unsubscribe(ctx, params: UnsubscribeRequestParams) -> EmptyResult:
        subscribed.remove(str(params.uri))
        return EmptyResult()

    lowlevel = server._lowlevel_server
    lowlevel.add_request_handler("resources/subscribe", SubscribeRequestParams, subscribe)
    lowlevel.add_request_handler("resources/unsubscribe", UnsubscribeRequestParams, unsubscribe)
else:

    @server._mcp_server.subscribe_resource()
    async def subscribe(uri) -> None:
        subscribed.append(str(uri))

    @server._mcp_server.unsubscribe_resource()
    async def unsubscribe(uri) -> None:
        subscribed.remove(str(uri))


if LIBRARY == "fastmcp":
    server.run(transport="http", host="127.0.0.1", port=int(PORT), show_banner=False, log_level="WARNING")
else:
    import uvicorn

    uvicorn.run(server.streamable_http_app(), host="127.0.0.1", port=int(PORT), log_level="warning")
