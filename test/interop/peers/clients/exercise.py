"""The frame of every client in Python: see exercise.mjs."""

import asyncio
import json
import os

PEER = json.loads(os.environ["PEER"])
URL, STEPS, WORDS, MODE = PEER["url"], PEER["steps"], PEER["words"], PEER.get("mode")
STEP_SECONDS = 20


def tell(**line) -> None:
    print("@step " + json.dumps(line), flush=True)


def text_of(error: BaseException) -> str:
    """Errors come in groups, whose own words say nothing"""
    if isinstance(error, BaseExceptionGroup):
        return text_of(error.exceptions[0])
    return f"{type(error).__name__}: {error}"[:600]


async def exercise(actions) -> None:
    """Takes the steps after the connection: `actions` has a coroutine for each, which gets the words of the step"""
    for step in STEPS[1:]:
        try:
            tell(step=step, saw=await asyncio.wait_for(actions[step](WORDS[step]), STEP_SECONDS))
        except BaseException as error:
            tell(step=step, error=text_of(error))


def text(result) -> str:
    return " ".join(getattr(part, "text", part.type) for part in result.content)


async def failure(call) -> str:
    """What a tool said when it failed, in a result or in an exception"""
    try:
        result = await call
    except Exception as error:
        return text_of(error)
    failed = getattr(result, "isError", None) or getattr(result, "is_error", None)
    return text(result) if failed else f"no error: {result}"


async def until(seen, act) -> str:
    """Calls `act` until `seen()` gives something: a stream that changes are told on may open a moment later"""
    for attempt in range(40):
        if attempt % 8 == 0:
            await act()
        if seen():
            return seen()
        await asyncio.sleep(0.1)
    raise RuntimeError("no change was told")


def run(main) -> None:
    """Runs the client; one that does not connect says so"""
    try:
        asyncio.run(main())
    except BaseException as error:
        tell(step="connect", error=text_of(error))
