"""LlamaIndex's agent with a memory that holds as many tokens as WIRE says, and drops older messages."""

import asyncio
import sys

from common import place, report, run
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.workflow import Context
from llama_index.llms.openai_like import OpenAILike


async def answers() -> list[str]:
    model = OpenAILike(
        model=place["MODEL"],
        api_base=f"{place['BASE_URL']}/v1",
        api_key=place["KEY"],
        is_chat_model=True,
        is_function_calling_model=True,
        max_retries=0,
    )
    agent = FunctionAgent(tools=[run], llm=model)
    memory, context = ChatMemoryBuffer.from_defaults(token_limit=int(place["WIRE"])), Context(agent)
    return [str(await agent.run(text, memory=memory, ctx=context)) for text in sys.argv[1:]]


report(asyncio.run(answers()))
