"""Open WebUI: its server with a tool, and its page's part: each message is posted as the page does, with a title, tags
and next questions to be asked for, and the answer comes by its socket."""

import asyncio
import os
import socket
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import Any

import httpx
import socketio
from common import place, report

TOOL = '''
import subprocess

class Tools:
    def run(self, command: str) -> str:
        """
        Run a command of the shell and return what it printed.
        :param command: The command.
        """
        return subprocess.run(command, shell=True, capture_output=True, text=True, check=True, cwd={cwd!r}).stdout
'''
BESIDE = {"title_generation": True, "tags_generation": True, "follow_up_generation": True}
SECONDS = 60


def port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


async def main(url: str) -> list[str]:
    async with httpx.AsyncClient(base_url=url, timeout=SECONDS, trust_env=False) as http:
        token = (await http.post("/api/v1/auths/signin", json={"email": "admin@localhost", "password": "admin"})).json()
        http.headers["Authorization"] = f"Bearer {token['token']}"
        content = TOOL.format(cwd=str(Path.cwd()))
        tool = {"id": "shell", "name": "shell", "content": content, "meta": {"description": "A shell."}}
        (await http.post("/api/v1/tools/create", json=tool)).raise_for_status()
        (await http.get("/api/models")).raise_for_status()
        page = socketio.AsyncClient()
        ended: dict[str, asyncio.Event] = {}

        async def note_end(event: dict[str, Any], *_: Any) -> None:
            data = event["data"]
            if data.get("type") == "chat:completion" and data["data"].get("done"):
                ended[event["message_id"]].set()

        page.on("events", note_end)
        await page.connect(url, socketio_path="/ws/socket.io", auth={"token": token["token"]}, transports=["websocket"])
        await page.emit("user-join", {"auth": {"token": token["token"]}})
        chat, parent, answers = None, None, []
        for text in sys.argv[1:]:
            asked, answer = str(uuid.uuid4()), str(uuid.uuid4())
            ended[answer] = asyncio.Event()
            message = {
                "id": asked,
                "parentId": parent,
                "childrenIds": [],
                "role": "user",
                "content": text,
                "timestamp": int(time.time()),
                "models": [place["MODEL"]],
            }
            body = {
                "stream": True,
                "model": place["MODEL"],
                "messages": [{"role": "user", "content": text}],
                "parent_id": parent,
                "user_message": message,
                "id": answer,
                "session_id": page.get_sid(),
                "chat_id": chat,
                "tool_ids": ["shell"],
                "params": {"function_calling": "native"},
                "features": {},
                "background_tasks": BESIDE,
            }
            done = await http.post(
                "/api/chat/completions",
                json={name: value for name, value in body.items() if name == "parent_id" or value is not None},
            )
            assert done.status_code == 200, done.text
            chat = chat or done.json()["chat_id"]
            await asyncio.wait_for(ended[answer].wait(), SECONDS)
            kept = (await http.get(f"/api/v1/chats/{chat}")).json()["chat"]["history"]["messages"][answer]
            answers.append(kept["content"].split("</details>")[-1].strip())
            parent = answer
            await asyncio.sleep(3)  # what is asked beside the conversation
        await page.disconnect()
        return answers


if __name__ == "__main__":
    number = port()
    environment = {
        **os.environ,
        "DATA_DIR": str(Path.home()),
        "WEBUI_SECRET_KEY": "secret",
        "WEBUI_AUTH": "False",
        "OFFLINE_MODE": "true",
        "ENABLE_OLLAMA_API": "False",
        "OPENAI_API_BASE_URL": f"{place['BASE_URL']}/v1",
        "OPENAI_API_KEY": place["KEY"],
        "BYPASS_EMBEDDING_AND_RETRIEVAL": "true",
        "RAG_EMBEDDING_ENGINE": "openai",
    }
    command = [Path(sys.executable).with_name("open-webui"), "serve", "--host", "127.0.0.1", "--port", str(number)]
    with Path.home().joinpath("log.txt").open("w") as log:
        server = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    try:
        url = f"http://127.0.0.1:{number}"
        for _ in range(600):
            try:
                if httpx.get(f"{url}/health", trust_env=False).status_code == 200:
                    break
            except httpx.HTTPError:
                time.sleep(0.2)
        report(asyncio.run(main(url)))
    finally:
        server.terminate()
        server.wait(timeout=20)
