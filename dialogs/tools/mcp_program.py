"""MCP servers that are programs. Each message is a line on standard input or output.

Lines are bounded while they are read, since the SDK's own transport for programs accepts a line of any length.
"""

import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import TextIO

import anyio
import orjson
from anyio.abc import ByteSendStream, ObjectReceiveStream, ObjectSendStream, Process
from anyio.streams.buffered import BufferedByteReceiveStream
from mcp.client.stdio import get_default_environment
from mcp.os.posix.utilities import terminate_posix_process_tree
from mcp.shared.message import SessionMessage
from mcp.types import PARSE_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter

from dialogs.tools.mcp_config import Server, resolve_values
from dominds import budgets
from dominds.llm.json_text import dump

LONGEST_QUOTE = 1_000  # characters of an answer, in an error about it
EXIT_SECONDS = 2  # for a program to end after its input was closed, and again after SIGTERM

Received = SessionMessage | Exception
GONE = (anyio.ClosedResourceError, anyio.BrokenResourceError, OSError)


@asynccontextmanager
async def run_program(
    server: Server, stderr: TextIO, over_budget: Callable[[str], None], ended: Callable[[], None]
) -> AsyncIterator[tuple[ObjectReceiveStream[Received], ObjectSendStream[SessionMessage]]]:
    """Yield the streams of messages from the program and to it.

    ``over_budget`` is called with the reason if a line is too long, and ``ended`` when there are no more messages.
    """
    to_session, received = anyio.create_memory_object_stream[Received](0)
    sending, from_session = anyio.create_memory_object_stream[SessionMessage](0)
    process = await anyio.open_process(
        [server.command, *server.args],
        env=get_default_environment() | resolve_values(server.env),
        cwd=server.cwd or None,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
        start_new_session=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    with received, sending:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_read, BufferedByteReceiveStream(process.stdout), to_session, over_budget, ended)
            tasks.start_soon(_write, process.stdin, from_session, to_session)
            try:
                yield received, sending
            finally:
                with anyio.CancelScope(shield=True):
                    await _stop(process)
                tasks.cancel_scope.cancel()


async def _read(
    lines: BufferedByteReceiveStream,
    to_session: ObjectSendStream[Received],
    over_budget: Callable[[str], None],
    ended: Callable[[], None],
) -> None:
    """Read until the program ends. Output after the end of the session is dropped, so that the program never blocks."""
    async with to_session:
        try:
            while True:
                line = await lines.receive_until(b"\n", budgets.TOOL_BYTES.most)
                with suppress(*GONE):
                    await to_session.send(_parse(line))
        except anyio.DelimiterNotFound:
            over_budget(budgets.TOOL_BYTES.sentence("it answered with"))
            await lines.aclose()
        except (anyio.IncompleteRead, *GONE):
            pass  # the program has ended, or is being ended
        finally:
            ended()


def _parse(line: bytes) -> Received:
    """Parse a line. One that is no message is reported to the session, which goes on. A malformed answer to a request
    becomes an error of that request, so that nobody waits for another answer.
    """
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError as error:
        try:
            answer = orjson.loads(line)
        except orjson.JSONDecodeError:
            return error
        if not isinstance(answer, dict) or "method" in answer or type(answer.get("id")) not in (int, str):
            return error
        words = f"its answer has not the form of the protocol: {dump(answer).decode()[:LONGEST_QUOTE]}"
        refusal = JSONRPCError(jsonrpc="2.0", id=answer["id"], error=ErrorData(code=PARSE_ERROR, message=words))
        return SessionMessage(refusal)


async def _write(
    stdin: ByteSendStream,
    from_session: ObjectReceiveStream[SessionMessage],
    to_session: ObjectSendStream[Received],
) -> None:
    """Write messages. If the program no longer reads, its session ends."""
    try:
        async for sent in from_session:
            await stdin.send(sent.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
    except GONE:
        await to_session.aclose()


async def _stop(process: Process) -> None:
    """Stop the program as the protocol asks: close its input, wait, and then kill it with all its children."""
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(*GONE):
        await process.stdin.aclose()
    with anyio.move_on_after(EXIT_SECONDS):
        await process.wait()
    await terminate_posix_process_tree(process, EXIT_SECONDS)
    with suppress(*GONE):
        await process.stdout.aclose()
