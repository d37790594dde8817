"""The client of FastMCP for Python, 3 and 4."""

from exercise import MODE, URL, exercise, failure, run, tell, text, until
from fastmcp import Client

updated: list[str] = []


async def elicit(_message, response_type, _params, _context):
    return response_type(**{field: "Ada" for field in response_type.__dataclass_fields__})


async def hear(message) -> None:
    notification = getattr(message, "root", message)
    if getattr(notification, "method", "") == "notifications/resources/updated":
        updated.append(str(notification.params.uri))


async def main() -> None:
    options = {} if MODE is None else {"mode": MODE}
    async with Client(URL, elicitation_handler=elicit, message_handler=hear, **options) as client:
        tell(step="connect", saw=str(getattr(client, "protocol_version", "")))

        async def listed(_words):
            return [tool.name for tool in await client.list_tools()]

        async def called(words):
            return text(await client.call_tool(words["tool"], words["args"]))

        async def failed(words):
            return await failure(client.call_tool(words["tool"], words["args"]))

        async def read(words):
            return (await client.read_resource(words["uri"]))[0].text

        async def progress(words):
            heard = []

            async def note(step, _total, _message):
                heard.append(step)

            result = await client.call_tool(words["tool"], words["args"], progress_handler=note)
            return {"count": len(heard), "text": text(result)}

        async def change(words):
            await client.session.subscribe_resource(words["uri"])
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
