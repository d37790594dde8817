"""The official Python SDK, line 1. `MODE` is the transport: http or sse."""

from exercise import MODE, URL, exercise, failure, run, tell, text, until
from mcp import ClientSession, types

if MODE == "sse":
    from mcp.client.sse import sse_client as connect
else:
    from mcp.client.streamable_http import streamablehttp_client as connect

updated: list[str] = []


async def elicit(_context, params):
    return types.ElicitResult(action="accept", content={key: "Ada" for key in params.requestedSchema["properties"]})


async def hear(message) -> None:
    notification = getattr(message, "root", None)
    if isinstance(notification, types.ResourceUpdatedNotification):
        updated.append(str(notification.params.uri))


async def main() -> None:
    async with (
        connect(URL) as streams,
        ClientSession(streams[0], streams[1], elicitation_callback=elicit, message_handler=hear) as client,
    ):
        tell(step="connect", saw=(await client.initialize()).protocolVersion)

        async def listed(_words):
            return [tool.name for tool in (await client.list_tools()).tools]

        async def called(words):
            return text(await client.call_tool(words["tool"], words["args"]))

        async def failed(words):
            return await failure(client.call_tool(words["tool"], words["args"]))

        async def read(words):
            return (await client.read_resource(words["uri"])).contents[0].text

        async def progress(words):
            heard = []

            async def note(step, _total, _message):
                heard.append(step)

            result = await client.call_tool(words["tool"], words["args"], progress_callback=note)
            return {"count": len(heard), "text": text(result)}

        async def change(words):
            await client.subscribe_resource(words["uri"])
            return await until(lambda: updated and updated[0], lambda: called(words))

        await exercise(
            {
                "list": listed,
                "call": called,
                "error": failed,
                "read": read,
                "progress": progress,
                "question": called,
                "change": change,
            }
        )


run(main)
