"""Connect a model: what runs on this machine, what somebody types, what is stored of it, and who may."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.test import Client

from dialogs.actions import messages
from dialogs.agents import connecting
from dialogs.context import connected, limits
from dialogs.models import Agent, ConnectedProvider, Dialog, Turn
from dialogs.runtime.driver import drive
from dialogs.templatetags.pages import model_facts
from dominds import outbound_http
from dominds.llm.connect import key_of
from dominds.llm.models import learned
from dominds.llm.provider import AuthFailed, ImagesRefused
from tests.dialogs.browsing import browser_of
from tests.dialogs.factories import AgentFactory, UserFactory, make_dialog, make_operator, send
from tests.dialogs.html_tree import in_one_line
from tests.doubles.brains import Reply
from tests.doubles.chat import ChatDouble
from tests.doubles.local_servers import LlamaCppDouble, LMStudioDouble, OllamaDouble, VLLMDouble
from tests.doubles.serving import Answer

pytestmark = pytest.mark.django_db(transaction=True)

PAGE, USE, REMOVE = "/models/connect/", "/models/connect/use/", "/models/connect/remove/"
KEY = "k-typed-0123456789"


@pytest.fixture(autouse=True)
def minds(tmp_path: Path, settings: Any) -> Iterator[Path]:
    """The folder of ``llm.yaml``. No provider of a test outlives it."""
    settings.MINDS_DIR = tmp_path
    yield tmp_path
    connected.forget()


@pytest.fixture
def browser() -> Client:
    return browser_of(make_operator())


@pytest.fixture
def ollama(settings: Any) -> Iterator[OllamaDouble]:
    """The one server that is looked for."""
    with OllamaDouble() as double:
        settings.LOCAL_SERVERS = [("ollama", double.url)]
        yield double


@pytest.fixture
def cloud() -> Iterator[ChatDouble]:
    with ChatDouble("deepseek", model="gpt-5.6") as double:
        yield double


def typed(double: ChatDouble, **more: str) -> dict[str, str]:
    return {"address": f"{double.url}/v1", "key": KEY, "kind": "", **more}


def notice_of(answer: Any) -> str:
    return in_one_line(answer.content.decode())


# -- On this machine


def test_a_server_on_this_machine_answers_after_one_click(browser: Client, ollama: OllamaDouble) -> None:
    AgentFactory.create(id="demo", is_demo=True, is_default=True)
    page = notice_of(browser.get(PAGE))
    assert ollama.model in page and ollama.url.removeprefix("http://") in page
    answer = browser.post(USE, {"server": f"{ollama.url}/v1", "model": ollama.model})
    agent = Agent.objects.get(is_default=True)
    assert (answer["Location"], agent.model) == (f"/?agent={agent.pk}", ollama.model)
    assert f'value="{agent.pk}" checked' in notice_of(browser.get(answer["Location"]))
    browser.post("/d/new/", {"agent": agent.pk, "text": "Hello", "client_message_id": "1"})
    dialog = Dialog.objects.get()
    drive(dialog.pk)
    assert Turn.objects.filter(dialog=dialog, role="assistant", status="complete").exists()
    browser.post(USE, {"server": f"{ollama.url}/v1", "model": ollama.model})
    assert Agent.objects.filter(model=ollama.model).count() == 1


def test_a_silent_server_keeps_nobody_waiting(browser: Client, settings: Any) -> None:
    settings.LOCAL_SERVERS = [("llamacpp", "http://127.0.0.1:1")]
    assert "Not found: No connection to 127.0.0.1:1: Connection refused" in notice_of(browser.get(PAGE))
    settings.LOCAL_SERVERS = []
    assert "DOMINDS_LOCAL_SERVERS" in notice_of(browser.get(PAGE))


def test_a_model_that_is_not_loaded_says_so(browser: Client, settings: Any) -> None:
    with LMStudioDouble(is_loaded=False) as double:
        settings.LOCAL_SERVERS = [("lmstudio", double.url)]
        assert "has not loaded it" in notice_of(browser.get(PAGE))


def test_only_what_the_server_lists_can_be_used(browser: Client, ollama: OllamaDouble) -> None:
    answer = browser.post(USE, {"server": f"{ollama.url}/v1", "model": "gone"})
    assert answer.status_code == 400
    assert "does not list the model" in notice_of(answer)
    assert not Agent.objects.exists() and not ConnectedProvider.objects.exists()


# -- At an address that somebody types


def test_a_typed_server_is_tested_then_saved_with_its_key_sealed(browser: Client, cloud: ChatDouble) -> None:
    page = browser.post(PAGE, typed(cloud))
    assert "answered: 1 model." in notice_of(page) and page["Cache-Control"] == "no-store"
    assert not ConnectedProvider.objects.exists()
    browser.post(USE, typed(cloud, model="gpt-5.6"))
    row = ConnectedProvider.objects.get()
    assert KEY not in str(ConnectedProvider.objects.values().get())
    assert KEY not in notice_of(browser.get(PAGE)) + notice_of(
        browser.get(f"/admin/dialogs/connectedprovider/{row.pk}/change/")
    )
    agent = Agent.objects.get()
    send(make_dialog(provider=agent.provider, model=agent.model), "Hello")
    assert cloud.requests[-1].account == KEY


def test_an_address_of_this_machine_needs_no_scheme(browser: Client, cloud: ChatDouble) -> None:
    browser.post(USE, typed(cloud, model="gpt-5.6") | {"address": cloud.url.removeprefix("http://")})
    assert ConnectedProvider.objects.get().base_url == f"{cloud.url}/v1"


def test_another_model_without_a_key_keeps_the_one_that_is_stored(browser: Client, cloud: ChatDouble) -> None:
    browser.post(USE, typed(cloud, model="gpt-5.6"))
    browser.post(USE, typed(cloud, model="gpt-5.6", key=""))
    assert key_of(limits.model_of(Agent.objects.get())) == KEY


def test_a_shipped_provider_takes_a_typed_key(browser: Client, minds: Path) -> None:
    """Its address and models are known; a variable that only the shipped file names does not go before the key."""
    (minds / "llm.yaml").write_text("providers: {openai: {models: {gpt-5.6: {optimal_max_tokens: 60000}}}}")
    shipped = limits.catalog().providers["openai"]
    row = ConnectedProvider(provider_id="openai", name="OpenAI", kind="openai", base_url=shipped.base_url)
    connected.save(row, KEY)
    model = limits.catalog().model("openai", "gpt-5.6")
    assert (key_of(model), model.optimal_max_tokens) == (KEY, 60_000)
    assert connecting.Server.at("", shipped.base_url).kind is shipped.kind


def test_a_host_that_begins_like_a_named_one_is_checked(settings: Any) -> None:
    settings.LOCAL_SERVERS, settings.PRIVATE_WEBHOOKS = [("ollama", "http://gpu")], False
    for host in ("gpu", "gpu.example"):
        ConnectedProvider.objects.create(
            provider_id=host, name=host, kind="ollama", base_url=f"http://{host}/v1", model_ids="m"
        )
    connected.forget()
    connected.connected()
    outbound_http.check_found("gpu", ["10.0.0.1"])
    with pytest.raises(outbound_http.Refused):
        outbound_http.check_found("gpu.example", ["10.0.0.1"])


def test_a_changed_signing_key_is_named(browser: Client, cloud: ChatDouble, settings: Any) -> None:
    browser.post(USE, typed(cloud, model="gpt-5.6"))
    agent, old = Agent.objects.get(), settings.SECRET_KEY
    settings.SECRET_KEY = "another"
    connected.forget()
    assert "SECRET_KEY is another one" in limits.unusable_reason(agent)
    assert "SECRET_KEY is another one" in notice_of(browser_of(make_operator()).get(PAGE))
    settings.SECRET_KEY_FALLBACKS = [old]
    connected.forget()
    assert key_of(limits.model_of(agent)) == KEY


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"address": ""}, "This field is required"),
        ({"address": "nonsense"}, "Give a whole web address"),
        ({"address": "api.example.org:8000"}, "Give a whole web address"),  # its key would travel in the clear
        ({"address": "http://[::1/"}, "It is no web address"),
        ({"address": "http://h:99999"}, "It is no web address"),
        ({"address": "ftp://example.org/"}, "Give a whole web address"),
        ({"address": "http://169.254.169.254/latest"}, "special uses"),
        ({"address": "http://[fe80::1]/v1"}, "special uses"),
        ({"address": "http://10.0.0.1/v1"}, "in its own network"),
        ({"address": "http://name:secret@127.0.0.1/v1"}, "Leave name and password out"),
        ({"address": "http://127.0.0.1:1"}, "No connection to 127.0.0.1:1: Connection refused"),
        ({"key": "schlüssel"}, "characters that no key has"),
        ({"kind": "gopher"}, "Select a valid choice"),
    ],
)
def test_what_cannot_be_used_is_refused_with_its_reason(
    browser: Client, settings: Any, given: dict[str, str], reason: str
) -> None:
    settings.PRIVATE_WEBHOOKS = False
    fields = {"address": "http://127.0.0.1:1/v1", "key": "", "kind": "", **given}
    assert reason in notice_of(browser.post(PAGE, fields))
    assert reason in notice_of(browser.post(USE, {**fields, "model": "m"}))
    assert not ConnectedProvider.objects.exists()


def test_the_servers_own_words_are_shown_without_the_key(browser: Client) -> None:
    with ChatDouble("deepseek", model="gpt-5.6") as double:
        double.routes["GET", "/v1/models"] = lambda record: Answer({"error": {"message": f"Bad key {KEY}"}}, 401)
        page = notice_of(browser.post(PAGE, typed(double)))
        assert "refused the request with HTTP 401: Bad key [key]" in page
        double.routes["GET", "/v1/models"] = lambda record: Answer("Welcome")
        assert "not with a list of models" in notice_of(browser.post(PAGE, typed(double)))


# -- Changed afterwards


def test_a_connected_provider_is_changed_once_its_server_answers(browser: Client, cloud: ChatDouble) -> None:
    browser.post(USE, typed(cloud, model="gpt-5.6"))
    row = ConnectedProvider.objects.get()
    page, given = f"/models/connected/{row.pk}/", {"name": "Lab", "address": row.base_url, "key": "k-newer-0123456789"}
    assert f"Agents that use it: {Agent.objects.get()}." in notice_of(browser.get(page))
    assert f'href="{page}"' in notice_of(browser.get("/models/")) and KEY not in notice_of(browser.get(page))
    assert "Saved." in notice_of(browser.post(page, given, follow=True))
    assert cloud.requests[-1].account == "k-newer-0123456789" == key_of(limits.model_of(Agent.objects.get()))
    cloud.routes["GET", "/v1/models"] = lambda record: Answer({"data": [{"id": "gpt-6"}]})
    assert "No longer listed: gpt-5.6." in notice_of(browser.post(page, {**given, "key": ""}, follow=True))
    cloud.routes["GET", "/v1/models"] = lambda record: Answer({"error": {"message": "No"}}, 401)
    before, refused = ConnectedProvider.objects.values().get(), browser.post(page, given)
    assert (refused.status_code, refused["Cache-Control"]) == (400, "no-store") and "Not saved." in notice_of(refused)
    assert ConnectedProvider.objects.values().get() == before


def test_a_refused_key_leads_to_the_page_that_changes_it(browser: Client, cloud: ChatDouble) -> None:
    """From the message that failed, and from the question that the second refusal opens; only who may change it."""
    browser.post(USE, typed(cloud, model="gpt-5.6"))
    agent, page = Agent.objects.get(), f'href="/models/connected/{ConnectedProvider.objects.get().pk}/"'
    cloud.brain = lambda prompt: Reply(error=(401, {"error": {"message": "Incorrect API key provided"}}))
    dialog = messages.create_dialog(make_operator(), agent.pk)
    for state in ("failed", "suspended"):
        dialog = send(dialog, "Hello")
        assert dialog.state == state
        assert page in notice_of(browser_of(dialog.owner).get(f"/d/{dialog.pk}/"))
    dialog.owner.user_permissions.clear()
    assert page not in notice_of(browser_of(dialog.owner).get(f"/d/{dialog.pk}/"))


def test_a_stored_key_is_sent_to_no_other_server(browser: Client, cloud: ChatDouble) -> None:
    browser.post(USE, typed(cloud, model="gpt-5.6"))
    row = ConnectedProvider.objects.get()
    with ChatDouble("deepseek", model="gpt-5.6") as other:
        for address in (other.url, row.base_url.replace("http:", "https:")):
            answer = browser.post(f"/models/connected/{row.pk}/", {"name": "Lab", "address": address})
            assert "Type the key again: the stored one is only sent to" in notice_of(answer)
        assert other.requests == []
        given = {"name": "Lab", "address": other.url, "key": KEY}
        browser.post(f"/models/connected/{row.pk}/", given)
    assert ConnectedProvider.objects.get().base_url == f"{other.url}/v1"


# -- Beside the files, and in other processes


def test_llm_yaml_goes_before_what_is_typed(browser: Client, cloud: ChatDouble, minds: Path) -> None:
    entry = {"name": "Workshop", "apiType": "openai-compatible", "baseUrl": f"{cloud.url}/v1"}
    write(minds, {**entry, "models": {"gpt-5.6": {"context_length": 1000}}})
    browser.post(USE, typed(cloud, model="gpt-5.6"))
    model = limits.model_of(Agent.objects.get())
    assert (model.provider_id, model.context_length, key_of(model)) == ("workshop", 1000, KEY)
    assert "configuration names it too" in notice_of(browser.get(PAGE))
    write(minds, {**entry, "apiKeyEnvVar": "WORKSHOP_KEY"})
    with pytest.raises(AuthFailed, match="WORKSHOP_KEY"):
        key_of(limits.model_of(Agent.objects.get()))
    answer = browser.post(USE, typed(cloud, model="gpt-5.6"))
    assert answer.status_code == 409 and "is in WORKSHOP_KEY, and goes before" in notice_of(answer)


def write(minds: Path, workshop: dict[str, Any]) -> None:
    (minds / "llm.yaml").write_text(yaml.safe_dump({"providers": {"workshop": workshop}}))


def test_a_running_worker_hears_of_a_new_key(browser: Client, cloud: ChatDouble, monkeypatch: Any) -> None:
    browser.post(USE, typed(cloud, model="gpt-5.6"))
    agent = Agent.objects.get()
    dialog = make_dialog(provider=agent.provider, model=agent.model)
    known = connected.connected()
    browser.post(USE, typed(cloud, model="gpt-5.6", key="k-newer-0123456789"))
    monkeypatch.setattr(connected, "_known", connected._Read(known, (), b"the mark of before"))  # as another process is
    send(dialog, "Hello")
    assert cloud.requests[-1].account == "k-newer-0123456789"


@pytest.mark.postgresql  # SQLite looks for such a name, and finds none
def test_a_form_that_postgresql_cannot_hold_is_refused(browser: Client) -> None:
    assert "holds a NUL character" in notice_of(browser.post(REMOVE, {"provider": "a\x00b"}, follow=True))


def test_a_removed_provider_takes_its_key_along(browser: Client, cloud: ChatDouble) -> None:
    browser.post(USE, typed(cloud, model="gpt-5.6"))
    row, agent = ConnectedProvider.objects.get(), Agent.objects.get()
    browser.post(REMOVE, {"provider": row.pk})
    assert not ConnectedProvider.objects.exists()
    assert "There is no provider named" in limits.unusable_reason(agent)
    assert "removed before" in notice_of(browser.post(REMOVE, {"provider": row.pk}, follow=True))


# -- Who


def test_others_find_no_such_page_and_are_offered_none(ollama: OllamaDouble) -> None:
    AgentFactory.create(is_demo=True, is_default=True)
    stranger, admin = UserFactory.create(), UserFactory.create(is_superuser=True)
    assert PAGE not in notice_of(browser_of(stranger).get("/")) + notice_of(browser_of(stranger).get("/models/"))
    assert PAGE in notice_of(browser_of(admin).get("/"))
    client = browser_of(stranger)
    assert client.get(PAGE).status_code == client.post(PAGE, {}).status_code == 404
    assert client.post(USE, {"server": f"{ollama.url}/v1", "model": ollama.model}).status_code == 404
    assert client.post(REMOVE, {"provider": "x"}).status_code == client.get("/models/connected/x/").status_code == 404
    assert Client().get(PAGE)["Location"].startswith("/login/")
    assert not ConnectedProvider.objects.exists()


def test_the_offer_goes_once_a_model_answers(browser: Client, ollama: OllamaDouble) -> None:
    AgentFactory.create(is_demo=True, is_default=True)
    connecting.use(connecting.local_servers()[0], ollama.model)
    assert "prepared scripts" not in notice_of(browser.get("/"))


@pytest.mark.parametrize(("kind", "of"), [("llamacpp", LlamaCppDouble), ("vllm", VLLMDouble)])
def test_a_typed_address_is_taken_for_the_server_that_answers(browser: Client, kind: str, of: Any) -> None:
    with of(window=4_096) as double:
        browser.post(USE, typed(double, model=double.model, key=""))
        row, agent = ConnectedProvider.objects.get(), Agent.objects.get()
        dialog = make_dialog(provider=agent.provider, model=agent.model, context_policy="")
        assert row.kind == kind
        assert limits.thresholds_of(dialog).context_limit == 4_096
        assert limits.policy_of(dialog).policy.rewrite is not None, "a local model has a policy that rewrites"


def test_of_a_model_of_ones_own_no_sight_is_claimed(browser: Client, cloud: ChatDouble) -> None:
    browser.post(USE, typed(cloud, model="gpt-5.6"))
    agent, shipped = Agent.objects.get(), limits.catalog().model("anthropic", "claude-opus-5-5")
    assert "sees images" not in in_one_line(browser.get(f"/agents/{agent.pk}/about/").content.decode())
    assert "sees images" not in model_facts(limits.model_of(agent)) and "sees images" in model_facts(shipped)
    learned.learn(limits.model_of(agent), ImagesRefused("At most 0 image(s) may be provided in one prompt."))
    page = in_one_line(browser.get(f"/models/{agent.provider}/gpt-5.6/").content.decode())
    learned.forget()
    assert "<dt>Reads</dt> <dd>text</dd>" in page


def test_a_person_states_a_window_that_no_server_tells(browser: Client, cloud: ChatDouble) -> None:
    browser.post(USE, typed(cloud, model="gpt-5.6"))
    provider = ConnectedProvider.objects.get().pk
    page = f"/models/{provider}/gpt-5.6/"
    assert "nothing watches how full a context is" in notice_of(browser.get(page))
    assert browser.post(page, {"window": "no number"}).status_code == 400
    assert browser.post(page, {"window": "32000"}).status_code == 302
    connected.forget()
    assert "nothing watches" not in notice_of(browser.get(page))
    dialog = make_dialog(provider=provider, model="gpt-5.6")
    assert limits.thresholds_of(dialog).context_limit == 32_000
    browser.post(page, {"window": ""})
    assert limits.thresholds_of(dialog).context_limit is None
    assert browser_of(UserFactory.create()).post(page, {"window": "5"}).status_code == 404
