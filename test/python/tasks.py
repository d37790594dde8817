"""Tools that run as tasks of the extension, on FastMCP: tasks.py PORT"""

import asyncio
import sys
from datetime import timedelta

import mcp_types
from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.utilities.tasks import TaskConfig
from fastmcp_tasks import TasksExtension

server = FastMCP(name="tasks", version="1.0.0")
server.add_extension(TasksExtension(url="memory://"))

OFTEN = timedelta(milliseconds=100)
OPTIONAL = TaskConfig(mode="optional", poll_interval=OFTEN)
REQUIRED = TaskConfig(mode="required", poll_interval=OFTEN)
FORM = {"type": "object", "properties": {"value": {"type": "string"}}, "required": ["value"]}


@server.tool(task=OPTIONAL)
async def count(to: int) -> str:
    """May run as a task"""
    await asyncio.sleep(0.2)
    return f"counted to {to}"


@server.tool(task=REQUIRED)
async def crunch(dataset: str) -> str:
    """Has to run as a task"""
    await asyncio.sleep(0.2)
    return f"crunched {dataset}"


@server.tool(task=REQUIRED)
async def wait() -> str:
    """Does not end by itself"""
    await asyncio.sleep(600)
    return "waited"


@server.tool(task=REQUIRED)
async def refuse() -> str:
    """Fails"""
    raise ToolError("out of paper")


@server.tool(task=REQUIRED)
async def greet(ctx: Context):
    """Asks for a name"""
    answers = ctx.input_responses
    if not answers:
        params = mcp_types.ElicitRequestFormParams(message="Your name?", requested_schema=FORM)
        return mcp_types.InputRequiredResult(
            input_requests={"name": mcp_types.ElicitRequest(params=params)},
        )
    answer = answers["name"]
    return f"{answer.action} {answer.content['value'] if answer.content else ''}".strip()


server.run(
    transport="http",
    host="127.0.0.1",
    port=int(sys.argv[1]),
    path="/mcp",
    show_banner=False,
    uvicorn_config={"log_level": "error"},
)
