"""A model that thinks before each answer, and does what it is told."""

from tests.doubles.brains import GUIDANCE, PACKAGE, Call, Prompt, Reply

BOUND = "anthropic/claude-opus-5-5"
YELLOW = (310_000, 5)


class Mind:
    """Thinks before each answer, and does what the newest message says. ``usage`` is what it reports."""

    def __init__(self) -> None:
        self.usage: tuple[int, int] | None = None
        self.thoughts = 0

    def __call__(self, prompt: Prompt) -> Reply:
        self.thoughts += 1
        reasoning = f"Thought {self.thoughts}."
        text, calls = self._act(prompt)
        return Reply(text, calls, reasoning=reasoning, usage=self.usage)

    def _act(self, prompt: Prompt) -> tuple[str, tuple[Call, ...]]:
        if prompt.required_tools or GUIDANCE in prompt.last.text:
            wants_clear = bool(prompt.required_tools) or "please clear" in "".join(m.text for m in prompt.messages[-2:])
            clear = Call("clear_mind", {"reminder_content": PACKAGE})
            return ("", (clear,)) if wants_clear else ("I keep it in mind.", ())
        lines = [(m.role, line) for m in prompt.messages for line in m.text.splitlines() or [""]]
        role, asked = [(role, line) for role, line in lines if role == "tool" or (role, line[:1]) != ("user", "[")][-1]
        if role == "tool":
            return f"Done: {len(prompt.messages)}.", ()
        if "remember" in asked:
            return "I note it.", (Call("add_reminder", {"content": f"fact {self.thoughts}", "position": 0}),)
        if "look" in asked:
            return "", (Call("list_files", {"path": "."}), Call("list_files", {"path": "."}))
        return f"Answer {self.thoughts}.", ()
