"""The official Python SDK, line 2. `MODE` is how it settles the era: auto, legacy or 2026-07-28."""

import mcp_types as types
from exercise import MODE, URL, exercise, failure, run, tell, text, until
from mcp import Client

updated: list[str] = []


async def elicit(_context, params):
    return types.ElicitResult(action="accept", content={key: "Ada" for key in params.requested_schema["properties"]})


async def hear(message) -> None:
    if isinstance(message, types.ResourceUpdatedNotification):
        updated.append(str(message.params.uri))


async def main() -> None:
    async with Client(URL, mode=MODE, elicitation_callback=elicit, message_handler=hear) as client:
        tell(step="connect", saw=str(client.protocol_version))

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
            if str(client.protocol_version) != "2026-07-28":
                await client.subscribe_resource(words["uri"])
                return await until(lambda: updated and updated[0], lambda: called(words))
            async with client.listen(resource_subscriptions=[words["uri"]]) as subscription:
                await called(words)
                async for event in subscription:
                    return repr(event)

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
