"""Google's Agent Development Kit with its ``DatabaseSessionService``, and LiteLLM for a server of chat completions."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.benchmarks.frameworks import adapter
from tests.benchmarks.frameworks.adapter import INSTRUCTIONS, MODEL, Servers

APP, PERSON, AGENT = "bench", "person", "bench_agent"


class OfADK:
    def __init__(self, runner: Any, sessions: Any) -> None:
        self.runner, self.sessions = runner, sessions

    async def store(self, dialog: str, exchanges: list[tuple[str, str]]) -> None:
        from google.adk.events import Event
        from google.genai.types import Content, Part

        session = await self.sessions.create_session(app_name=APP, user_id=PERSON, session_id=dialog)
        for number, texts in enumerate(exchanges):
            for author, role, text in zip(("user", AGENT), ("user", "model"), texts, strict=True):
                content = Content(role=role, parts=[Part(text=text)])
                event = Event(invocation_id=f"e-{number}", author=author, content=content)
                await self.sessions.append_event(session, event)

    async def answer(self, dialog: str, text: str, window: int | None) -> str:
        from google.adk.agents.run_config import RunConfig, StreamingMode
        from google.adk.sessions.base_session_service import GetSessionConfig
        from google.genai.types import Content, Part

        newest = None if window is None else GetSessionConfig(num_recent_events=window)
        config = RunConfig(streaming_mode=StreamingMode.SSE, get_session_config=newest)
        message = Content(role="user", parts=[Part(text=text)])
        answer = ""
        async for event in self.runner.run_async(
            user_id=PERSON, session_id=dialog, new_message=message, run_config=config
        ):
            if event.is_final_response() and not event.partial:
                answer = event.content.parts[0].text
        return answer


@asynccontextmanager
async def opened(servers: Servers) -> AsyncIterator[OfADK]:
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # it would fetch prices from the network
    os.environ["LITELLM_TELEMETRY"] = "False"
    from google.adk.agents import LlmAgent
    from google.adk.models.lite_llm import LiteLlm
    from google.adk.runners import Runner
    from google.adk.sessions import DatabaseSessionService

    model = LiteLlm(model=f"openai/{MODEL}", api_base=servers.model_url, api_key="none")
    agent = LlmAgent(name=AGENT, model=model, instruction=INSTRUCTIONS)
    sessions = DatabaseSessionService(servers.asyncpg_url)
    yield OfADK(Runner(app_name=APP, agent=agent, session_service=sessions), sessions)
    await sessions.close()


def main() -> None:
    adapter.main(opened, ["google-adk", "litellm", "sqlalchemy", "asyncpg"], __doc__)


if __name__ == "__main__":
    main()
