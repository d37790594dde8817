"""A server whose tools ask the client, on one of three Python libraries: server.py LIBRARY PORT [stateless] [json] [sse]"""

import asyncio
import sys
import uuid
from typing import Annotated

from pydantic import BaseModel, Field

LIBRARY, PORT, *FLAGS = sys.argv[1:]

if LIBRARY == "mcp1":
    from mcp.server.fastmcp import Context
    from mcp.server.fastmcp import FastMCP as Server
    from mcp.shared.exceptions import UrlElicitationRequiredError
elif LIBRARY == "mcp2":
    from mcp.server.mcpserver import Context
    from mcp.server.mcpserver import MCPServer as Server
    from mcp.shared.exceptions import UrlElicitationRequiredError
else:
    from fastmcp import Context
    from fastmcp import FastMCP as Server
    from mcp.shared.exceptions import UrlElicitationRequiredError

if LIBRARY == "mcp2":
    from mcp_types import ElicitRequestURLParams, SamplingMessage, TextContent, Tool
else:
    from mcp.types import ElicitRequestURLParams, SamplingMessage, TextContent, Tool

server = Server(name=f"asking-{LIBRARY}")
counts: dict[str, int] = {}


def ran(tool: str) -> None:
    counts[tool] = counts.get(tool, 0) + 1


class Name(BaseModel):
    name: str = Field(description="Your name")


class Colour(BaseModel):
    colour: str


class Consent(BaseModel):
    agreed: bool


async def elicit(ctx: Context, message: str, schema: type[BaseModel]):
    if LIBRARY == "fastmcp":
        return await ctx.elicit(message, response_type=schema)
    return await ctx.elicit(message, schema)


def said(answer) -> str:
    if answer.action != "accept":
        return f"({answer.action})"
    return ",".join(str(value) for value in answer.data.model_dump().values())


async def log(ctx: Context, message: str) -> None:
    await ctx.info(message)


@server.tool()
def runs(tool: str) -> str:
    """How often a tool was run"""
    return str(counts.get(tool, 0))


@server.tool()
async def ask_name(ctx: Context) -> str:
    ran("ask_name")
    return f"Hello {said(await elicit(ctx, 'What is your name?', Name))}."


@server.tool()
async def ask_both(ctx: Context) -> str:
    ran("ask_both")
    answers = await asyncio.gather(elicit(ctx, "Name?", Name), elicit(ctx, "Colour?", Colour))
    return " ".join(said(answer) for answer in answers)


@server.tool()
async def interview(ctx: Context) -> str:
    ran("interview")
    answers = []
    for step, (message, schema) in enumerate([("Name?", Name), ("Colour?", Colour), ("Agreed?", Consent)], 1):
        await ctx.report_progress(step, 4, message)
        await log(ctx, f"before {message}")
        answers.append(said(await elicit(ctx, message, schema)))
    await ctx.report_progress(4, 4, "Done")
    await log(ctx, "after all")
    return " ".join(answers)


@server.tool()
async def visit(url: str, ctx: Context) -> str:
    ran("visit")
    owner = ctx.session if LIBRARY == "fastmcp" else ctx
    answer = await owner.elicit_url("Please visit", url, str(uuid.uuid4()))
    return f"Visited: {answer.action}."


@server.tool()
async def connect(url: str, ctx: Context) -> str:
    ran(f"connect {url}")
    if counts[f"connect {url}"] == 1:
        page = ElicitRequestURLParams(
            mode="url", message="Connect", url=url, **{"elicitationId" if LIBRARY != "mcp2" else "elicitation_id": "c-1"}
        )
        raise UrlElicitationRequiredError([page])
    return "Connected."


async def create_message(ctx: Context, prompt: str, **more):
    messages = [SamplingMessage(role="user", content=TextContent(type="text", text=prompt))]
    related = {} if LIBRARY == "mcp2" else {"related_request_id": ctx.request_id}
    return await ctx.session.create_message(messages, max_tokens=50, **related, **more)


@server.tool()
async def sample(prompt: str, ctx: Context) -> str:
    ran("sample")
    if LIBRARY == "fastmcp":
        return f"Model: {(await ctx.sample(prompt)).text}"
    return f"Model: {(await create_message(ctx, prompt)).content.text}"


@server.tool()
async def sample_tools(prompt: str, ctx: Context) -> str:
    """Sampling with a tool that the model uses"""
    ran("sample_tools")
    if LIBRARY == "fastmcp":

        def double(number: int) -> int:
            """Doubles a number"""
            return 2 * number

        return f"Model: {(await ctx.sample(prompt, tools=[double])).text}"
    schema = {"type": "object", "properties": {"number": {"type": "integer"}}}
    tool = Tool(name="double", **{"input_schema" if LIBRARY == "mcp2" else "inputSchema": schema})
    content = (await create_message(ctx, prompt, tools=[tool])).content
    blocks = content if isinstance(content, list) else [content]
    return "Model: " + ",".join(f"{block.name}({block.input})" if block.type == "tool_use" else block.text for block in blocks)


@server.tool()
async def roots(ctx: Context) -> str:
    ran("roots")
    found = await ctx.list_roots() if LIBRARY == "fastmcp" else (await ctx.session.list_roots()).roots
    return ",".join(str(root.uri) for root in found)


if LIBRARY == "mcp2":
    from mcp.server.mcpserver import ElicitationResult, Elicit, ListRoots, Resolve, Sample
    from mcp_types import CreateMessageResult, ListRootsResult

    def ask_for_name():
        return Elicit("What is your name?", Name)

    def ask_for_colour():
        return Elicit("Colour?", Colour)

    def ask_for_consent(name: Annotated[ElicitationResult[Name], Resolve(ask_for_name)]):
        return Elicit(f"Do you agree, {said(name)}?", Consent)

    def ask_model(prompt: str):
        return Sample([SamplingMessage(role="user", content=TextContent(type="text", text=prompt))], max_tokens=50)

    def ask_roots():
        return ListRoots()

    @server.tool()
    async def resolved_name(name: Annotated[ElicitationResult[Name], Resolve(ask_for_name)]) -> str:
        ran("resolved_name")
        return f"Hello {said(name)}."

    @server.tool()
    async def resolved_all(
        prompt: str,
        name: Annotated[ElicitationResult[Name], Resolve(ask_for_name)],
        colour: Annotated[ElicitationResult[Colour], Resolve(ask_for_colour)],
        consent: Annotated[ElicitationResult[Consent], Resolve(ask_for_consent)],
        model: Annotated[CreateMessageResult, Resolve(ask_model)],
        where: Annotated[ListRootsResult, Resolve(ask_roots)],
    ) -> str:
        ran("resolved_all")
        return f"{said(name)} {said(colour)} {said(consent)} {model.content.text} {where.roots[0].uri}"


options = {"stateless_http": "stateless" in FLAGS, "json_response": "json" in FLAGS}
if "sse" in FLAGS and LIBRARY != "fastmcp":
    import uvicorn

    if LIBRARY == "mcp1":
        server.settings.sse_path = "/mcp"
        app = server.sse_app()
    else:
        app = server.sse_app(sse_path="/mcp")
    uvicorn.run(app, host="127.0.0.1", port=int(PORT), log_level="warning")
elif "sse" in FLAGS:
    server.run(transport="sse", path="/mcp", host="127.0.0.1", port=int(PORT), show_banner=False, log_level="WARNING")
elif LIBRARY == "mcp1":
    import uvicorn

    server.settings.stateless_http = options["stateless_http"]
    server.settings.json_response = options["json_response"]
    uvicorn.run(server.streamable_http_app(), host="127.0.0.1", port=int(PORT), log_level="warning")
elif LIBRARY == "mcp2":
    import uvicorn

    uvicorn.run(server.streamable_http_app(**options), host="127.0.0.1", port=int(PORT), log_level="warning")
else:
    server.run(transport="http", host="127.0.0.1", port=int(PORT), show_banner=False, log_level="WARNING", **options)
