"""A legacy client that calls the tool `slow` once: resuming.py URL

Prints a line for each progress that it hears of, and one for the tool's text.
"""

import asyncio
import sys

from mcp import ClientSession
from mcp.client import streamable_http

connect = getattr(streamable_http, "streamablehttp_client", None) or streamable_http.streamable_http_client


async def heard(step: float, _total, _message) -> None:
    print(f"progress {step:g}", flush=True)


async def main() -> None:
    async with connect(sys.argv[1]) as (read, write, *_):
        async with ClientSession(read, write) as session:
            await session.initialize()
            result = await session.call_tool("slow", {}, progress_callback=heard)
            print(result.content[0].text, flush=True)


asyncio.run(asyncio.wait_for(main(), 30))
