"""AutoGen's assistant, who speaks under a name, with its tool and the history of all turns."""

import asyncio
import sys

from autogen_agentchat.agents import AssistantAgent
from autogen_core.models import ModelFamily
from autogen_ext.models.openai import OpenAIChatCompletionClient
from common import place, report, run

INFO = {
    "vision": False,
    "function_calling": True,
    "json_output": True,
    "structured_output": True,
    "family": ModelFamily.UNKNOWN,
}


async def main() -> None:
    client = OpenAIChatCompletionClient(
        model=place["MODEL"], base_url=f"{place['BASE_URL']}/v1", api_key=place["KEY"], model_info=INFO
    )
    agent = AssistantAgent("worker", client, tools=[run], reflect_on_tool_use=True, system_message="Be brief.")
    answers = [(await agent.run(task=text)).messages[-1].content for text in sys.argv[1:]]
    await client.close()
    report(answers)


asyncio.run(main())
