"""Images of messages, on their way to each dialect's strict double."""

from typing import Any

import pytest

from dialogs.actions import messages, rewrite_requests
from dialogs.actions.attachments import check_files
from dialogs.context import connected
from dialogs.context.view import view_of
from dialogs.errors import Invalid
from dialogs.models import Dialog
from dominds.llm.models import learned
from health.models import HealthSnapshot
from remediation.models import RemediationRun
from tests.doubles.brains import Prompt, Reply
from tests.doubles.images import images_in
from tests.doubles.serving import Double
from tests.flows.conftest import Minds, go_on, say
from tests.flows.doubled import chat, dialog_at, name_server, start
from tests.pixels import picture

pytestmark = pytest.mark.django_db(transaction=True)


SEEING = [
    "anthropic/claude-opus-5-5",
    "openai/gpt-5.6-terra",
    "google/gemini-4-argon",
    "moonshot/kimi-k3",
    "ollama/qwen3",
    "lmstudio/qwen3-14b",
    "llamacpp/default",
    "vllm/qwen3-14b",
]
SEES = {"modalities": ["text", "image"]}


def answer(prompt: Prompt) -> Reply:
    return Reply(f"I read {len(prompt.messages)} messages.")


def send(dialog: Dialog, text: str, *files: tuple[str, bytes]) -> None:
    messages.post_message(dialog.pk, text, attached=check_files(files))
    go_on(dialog)


def newest(double: Double) -> list[Any]:
    return images_in(double.bodies[-1])


@pytest.mark.parametrize("name", SEEING)
def test_an_image_reaches_the_model_and_stays_in_its_place(name: str, minds: Minds, monkeypatch: Any) -> None:
    with start(name, answer) as double:
        dialog = dialog_at(double, minds, monkeypatch, name, SEES)
        send(dialog, "what is this?", ("a photo.jpg", picture("JPEG")), ("b.webp", picture("WEBP", (40, 30))))
        say(dialog, "and what colour?")
        send(dialog, "", ("c.gif", picture("GIF")))
    assert [refusal for refusal in double.refusals if refusal.rule != "path"] == []  # LM Studio is asked what it is
    first, _, last = (images_in(body) for body in double.bodies if body)
    assert [(image.media_type, image.width, image.height) for image in first] == [
        ("image/jpeg", 64, 48),
        ("image/webp", 40, 30),
    ]
    assert [image.data for image in last[:2]] == [image.data for image in first]
    assert last[2].media_type == "image/gif"


def test_a_model_that_sees_nothing_refuses_before_anything_is_stored(minds: Minds, monkeypatch: Any) -> None:
    with chat("deepseek")(answer, "deepseek-flash") as double:
        dialog = dialog_at(double, minds, monkeypatch, "deepseek/deepseek-flash")
        with pytest.raises(Invalid, match="takes no image"):
            send(dialog, "what is this?", ("a.png", picture()))
        assert not dialog.turns.exists() and not dialog.attachments.exists()
        send(dialog, "read this", ("notes.txt", b"Tea at four."))
    assert double.refusals == []
    assert '<file name="notes.txt">\nTea at four.\n</file>' in double.bodies[-1]["messages"][-1]["content"]


SAYING = ["lmstudio/qwen3-14b", "llamacpp/default", "ollama/qwen3"]


@pytest.mark.parametrize("name", SAYING)
def test_a_local_server_says_whether_its_model_sees(name: str, minds: Minds, monkeypatch: Any) -> None:
    with start(name, answer) as double:
        dialog = dialog_at(double, minds, monkeypatch, name)
        send(dialog, "what is this?", ("a.png", picture()))
    assert len(newest(double)) == 1
    with start(name, answer, sees=False) as blind:
        moved = dialog_at(blind, minds, monkeypatch, name)
        with pytest.raises(Invalid, match="takes no image"):
            send(moved, "what is this?", ("a.png", picture()))
        say(dialog, "and what colour?")  # the same dialog, after another model was loaded
        assert "this model sees no images" in str(blind.bodies[-1]["messages"])
        stated = dialog_at(blind, minds, monkeypatch, name, SEES)
        messages.post_message(stated.pk, "what is this?", attached=check_files([("a.png", picture())]))


def test_a_refusal_tells_that_a_model_is_blind(minds: Minds, monkeypatch: Any, client: Any) -> None:
    """A server that does not say so beforehand fails the message that shows an image, and none after it."""
    name = "vllm/qwen3-14b"
    with start(name, answer, sees=False) as blind:
        dialog = dialog_at(blind, minds, monkeypatch, name)
        send(dialog, "what is this?", ("a.png", picture()))
        assert (dialog.state, len(blind.bodies)) == ("failed", 1)
        client.force_login(dialog.owner)
        page = client.get(f"/d/{dialog.pk}/").content.decode()
        assert "The model sees no images." in page and "Choose a model that sees images" in page
        say(dialog, "never mind: what is two and two?")
        assert (dialog.state, len(blind.bodies)) == ("idle", 2)
        assert "“a.png” (64 × 48 pixels) is not shown, since this model sees no images" in str(blind.bodies[-1])
        with pytest.raises(Invalid, match="takes no image"):
            send(dialog, "and this?", ("b.png", picture()))
        name_server(blind, minds, monkeypatch, name, SEES)  # as these words advise where another model is loaded
        messages.post_message(dialog.pk, "and this?", attached=check_files([("b.png", picture())]))


def test_a_page_refuses_by_what_a_worker_was_told(minds: Minds, monkeypatch: Any, redis_client: Any) -> None:
    name = "vllm/qwen3-14b"
    with start(name, answer, sees=False) as blind:
        dialog = dialog_at(blind, minds, monkeypatch, name)
        connected.connected()
        of_page = connected._known
        send(dialog, "what is this?", ("a.png", picture()))
        learned.forget()
        connected._known = of_page  # the page's process has not looked since
        with pytest.raises(Invalid, match="takes no image"):
            send(dialog, "and this?", ("b.png", picture()))


def test_a_dialog_moves_to_a_model_that_turns_out_blind(minds: Minds, monkeypatch: Any) -> None:
    name = "vllm/qwen3-14b"
    with start(name, answer) as seeing:
        dialog = dialog_at(seeing, minds, monkeypatch, name)
        send(dialog, "what is this?", ("a.png", picture()))
    with start(name, answer, sees=False) as blind:
        name_server(blind, minds, monkeypatch, name)
        say(dialog, "and what colour?")
        assert (dialog.state, len(blind.bodies)) == ("idle", 2)
        assert "this model sees no images" in str(blind.bodies[-1])


def test_a_model_without_sight_gets_a_line_for_each_image(minds: Minds, monkeypatch: Any, client: Any) -> None:
    with start("anthropic/claude-opus-5-5", answer) as double:
        dialog = dialog_at(double, minds, monkeypatch, "anthropic/claude-opus-5-5")
        send(dialog, "what is this?", ("a.png", picture()))
    with chat("deepseek")(answer, "deepseek-flash") as blind:
        moved = dialog_at(blind, minds, monkeypatch, "deepseek/deepseek-flash")
        Dialog.objects.filter(pk=dialog.pk).update(provider=moved.provider_id, model=moved.model_id)
        say(dialog, "and what colour?")
    assert blind.refusals == []
    client.force_login(dialog.owner)
    page = client.get(f"/d/{dialog.pk}/details/").content.decode()
    assert "This model sees no images: a line stands for each of those of 1 message." in page
    text = blind.bodies[-1]["messages"][1]["content"]
    assert text.startswith(
        "what is this?\n[Image “a.png” (64 × 48 pixels) is not shown, since this model sees no images."
    )


def test_more_images_than_a_request_takes_leave_the_oldest_out(minds: Minds, monkeypatch: Any, client: Any) -> None:
    """Anthropic refuses large ones where there are more than twenty; and what is left out stays out for a while. The
    page says so, and the estimates do without them."""
    large = [("large.png", picture("PNG", (2_400, 8)))] * 7
    with start("anthropic/claude-opus-5-5", answer) as double:
        dialog = dialog_at(double, minds, monkeypatch, "anthropic/claude-opus-5-5")
        client.force_login(dialog.owner)
        for _ in range(2):
            send(dialog, "look", *large)
        assert "no longer sees the oldest images" not in client.get(f"/d/{dialog.pk}/details/").content.decode()
        send(dialog, "look", *large)
        say(dialog, "and what colour?")
        page = client.get(f"/d/{dialog.pk}/details/").content.decode()
    assert "no longer sees the oldest images, those of 2 messages: a request takes at most 100 images (20 where" in page
    estimates = dialog.generations.values_list("est_prompt_tokens", "prompt_tokens")
    shares = [est / reported for est, reported in estimates if est and reported]
    assert len(shares) == 4 and shares == pytest.approx([1.0] * 4, rel=0.2)
    assert double.refusals == []
    assert [len(images_in(body)) for body in double.bodies] == [7, 14, 7, 7]
    assert not HealthSnapshot.objects.filter(reason="truncation_suspected").exists()  # it was us who sent less


def test_a_request_holds_as_many_images_as_its_provider_takes(minds: Minds, monkeypatch: Any) -> None:
    small = [(f"{number}.png", picture("PNG", (8, 8))) for number in range(10)]
    with start("anthropic/claude-opus-5-5", answer) as double:
        dialog = dialog_at(double, minds, monkeypatch, "anthropic/claude-opus-5-5")
        for _ in range(3):
            send(dialog, "look", *small)
    assert double.refusals == []
    assert [len(images_in(body)) for body in double.bodies] == [10, 20, 30]


def test_old_images_give_way_before_words_and_undo_brings_them_back(minds: Minds, monkeypatch: Any) -> None:
    name = "vllm/qwen3-14b"
    with start(name, answer) as double:
        dialog = dialog_at(double, minds, monkeypatch, name, SEES, context_policy="breaking", context_limit=8_000)
        for number in range(6):  # each takes 36 × 36 patches
            send(dialog, f"look at number {number}", (f"{number}.png", picture("PNG", (1_000, 1_000))))
    assert double.refusals == []
    run = RemediationRun.objects.get(dialog=dialog)
    assert [step["strategy"] for step in run.steps] == ["mask_images"]
    last = double.bodies[-1]
    texts = [message["content"] for message in last["messages"] if message["role"] == "user"]
    assert texts[0].startswith("look at number 0\n[Image “0.png” (1,000 × 1,000 pixels) is no longer shown (turn 1). ")
    assert all(f"look at number {number}" in str(texts) for number in range(6))
    left = len(images_in(last))
    assert 0 < left < 6
    assert run.view[-1] == {"turns": [9]}  # by reference: no bytes, and no second copy of anything
    rewrite_requests.undo(run.pk, dialog.owner)
    assert len(images_in_view(dialog)) == 6


def images_in_view(dialog: Dialog) -> list[Any]:
    dialog.refresh_from_db()
    return [part for message in view_of(dialog).messages for part in message.parts]
