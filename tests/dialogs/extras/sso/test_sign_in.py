"""Sign-in at an OpenID provider: whose account it is, which groups come with it, and what is refused."""

import http.client
import logging
import re
import socket
import time
from collections.abc import Iterator
from dataclasses import replace
from io import StringIO
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client

from dialogs.extras.sso.views import link_token
from dialogs.models import Identity
from dominds import logs
from dominds.oidc import provider as oidc
from dominds.oidc.registration import Registration
from tests.dialogs.browsing import browser_of
from tests.dialogs.factories import PASSWORD, UserFactory
from tests.dialogs.html_tree import in_one_line
from tests.doubles.oidc import CLIENT, SECRET, Provider, openid_provider

pytestmark = pytest.mark.django_db(transaction=True)

CALLBACK = "http://testserver/login/callback/"
ADA = {"sub": "248289", "preferred_username": "ada", "email": "ada@example.org", "email_verified": True}


@pytest.fixture
def provider(settings: Any) -> Iterator[Provider]:
    UserFactory.create(is_superuser=True, is_staff=True)
    oidc._kept.clear()  # of a server that had the same port
    with openid_provider(CALLBACK, person={**ADA, "groups": []}) as double:
        configure(settings, double.issuer)
        yield double


def configure(settings: Any, issuer: str, **more: Any) -> None:
    settings.OIDC_PROVIDERS = (Registration("Harbour ID", issuer, CLIENT, SECRET, **more),)


def location(address: str) -> str:
    """Where the provider sends a browser that comes to this address."""
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.netloc)
    connection.request("GET", f"{parts.path}?{parts.query}")
    answer = connection.getresponse()
    connection.close()
    assert answer.status == 302, answer.status
    return str(answer.headers["location"])


def sent_back(client: Client, to: str = "") -> str:
    """The address with which the provider sends the browser back."""
    answer = client.get("/login/provider/", {"next": to} if to else {})
    assert answer.status_code == 302, answer.content.decode()
    return location(answer["Location"]).removeprefix("http://testserver")


def sign_in(client: Client, to: str = "") -> Any:
    return client.get(sent_back(client, to))


def is_inside(client: Client) -> bool:
    return bool(client.get("/").status_code == 200)


def assert_refused(answer: Any, client: Client, status: int, sentence: str) -> None:
    """With a sentence, over the form that takes a password; nobody is logged in and nothing was made."""
    page = answer.content.decode()
    assert (answer.status_code, sentence in page, 'name="password"' in page) == (status, True, True), page
    assert not is_inside(client)
    assert not Identity.objects.exists()
    assert User.objects.count() == 1


def test_without_an_issuer_there_is_no_other_sign_in() -> None:
    UserFactory.create(is_superuser=True)
    assert "Sign in with" not in Client().get("/login/").content.decode()
    assert {Client().get(f"/login/{name}/").status_code for name in ("provider", "callback")} == {404}


def test_later_sign_ins_find_the_account_of_the_first(provider: Provider) -> None:
    client = Client()
    button = '<a class="button wide-button" href="/login/provider/1/?next=/q4h/">Sign in with Harbour ID</a>'
    assert button in in_one_line(client.get("/login/", {"next": "/q4h/"}).content.decode())
    assert sign_in(client, "/q4h/")["Location"] == "/q4h/"
    assert is_inside(client)
    ada = User.objects.get(username="ada")
    assert (ada.email, ada.is_staff, ada.is_superuser, ada.has_usable_password()) == (
        "ada@example.org",
        False,
        False,
        False,
    )
    assert "None: you sign in elsewhere." in client.get("/settings/password/").content.decode()
    provider.person |= {"preferred_username": "countess", "email": "ada@elsewhere.example"}
    again = Client()
    assert sign_in(again)["Location"] == "/"
    assert again.get("/").context["user"] == ada
    assert User.objects.count() == 2
    assert sign_in_page_of(again) == "/"  # who is logged in needs no provider


def sign_in_page_of(client: Client) -> str:
    return str(client.get("/login/provider/")["Location"])


def test_the_client_secret_goes_where_the_provider_wants_it(provider: Provider) -> None:
    provider.client_authentication = "client_secret_post"
    assert sign_in(Client())["Location"] == "/"


def test_nobody_is_sent_to_another_site_afterwards(provider: Provider) -> None:
    assert sign_in(Client(), "https://evil.example/")["Location"] == "/"


def test_what_the_browser_keeps_is_its_own_and_short_lived(provider: Provider, settings: Any) -> None:
    settings.SESSION_COOKIE_SECURE = True
    client = Client()
    address = client.get("/login/provider/")["Location"]
    cookie = client.cookies["sessionid_sign_in"]
    assert (cookie["path"], cookie["httponly"], cookie["secure"], cookie["samesite"]) == ("/login/", True, True, "Lax")
    query = parse_qs(urlsplit(address).query)
    assert (query["code_challenge_method"], query["redirect_uri"]) == (["S256"], [CALLBACK])
    assert "sessionid" not in client.cookies
    settings.PUBLIC_URL = "https://dominds.example.org"
    query = parse_qs(urlsplit(Client().get("/login/provider/")["Location"]).query)
    assert query["redirect_uri"] == ["https://dominds.example.org/login/callback/"]


def test_claimed_groups_are_followed_and_an_operators_stay(provider: Provider) -> None:
    harbour, pilots, given = (Group.objects.create(name=name) for name in ("harbour", "pilots", "given"))
    provider.person["groups"] = ["harbour", "pilots", "no such group", "given", 7]
    sign_in(Client())
    ada = User.objects.get(username="ada")
    assert set(ada.groups.all()) == {harbour, pilots, given}
    ada.groups.remove(given)
    provider.person["groups"] = ["harbour"]
    sign_in(Client())
    ada.groups.add(given)  # now by an operator, before the claim names it again
    provider.person["groups"] = ["given"]
    sign_in(Client())
    assert set(ada.groups.all()) == {given}
    del provider.person["groups"]  # no claim names none
    sign_in(Client())
    assert set(ada.groups.all()) == {given}
    provider.user_info = {"groups": ["pilots"]}  # where small ID tokens leave them
    sign_in(Client())
    assert set(ada.groups.all()) == {given, pilots}


@pytest.mark.parametrize("name", ["ada", "Ada"])
def test_an_equal_name_or_mail_address_takes_over_no_account(provider: Provider, name: str) -> None:
    local = UserFactory.create(username=name, email="ada@example.org")
    client = Client()
    sign_in(client)
    person = client.get("/").context["user"]
    assert (person.username, person == local) == ("ada-2", False)
    assert not local.identities.exists()
    assert User.objects.get(pk=local.pk).password == local.password


def test_answering_links_go_to_verified_addresses_alone(provider: Provider) -> None:
    provider.person |= {"email_verified": False, "preferred_username": None}
    sign_in(Client())
    assert User.objects.get(identities__subject=ADA["sub"]).email == ""


UNTRUSTED: dict[str, dict[str, Any]] = {
    "nonce of another sign-in": {"wrong": {"nonce": "another"}},
    "no nonce": {"wrong": {"nonce": None}},
    "another audience": {"wrong": {"aud": "another client"}},
    "another party": {"wrong": {"aud": [CLIENT, "another client"], "azp": "another client"}},
    "another issuer": {"wrong": {"iss": "https://id.example.org"}},
    "expired": {"wrong": {"exp": int(time.time()) - 3600}},
    "no end": {"wrong": {"exp": None}},
    "of the future": {"wrong": {"iat": int(time.time()) + 3600}},
    "no subject": {"wrong": {"sub": None}},
    "empty subject": {"wrong": {"sub": ""}},
    "another key": {"signing_key": "another"},
    "no signature": {"algorithm": "none"},
    "signed with the secret": {"algorithm": "HS256"},
    "info of another subject": {"wrong": {"groups": None}, "user_info": {"sub": "another"}},
}


@pytest.mark.parametrize("bent", UNTRUSTED)
def test_a_token_that_proves_nothing_is_refused(provider: Provider, bent: str) -> None:
    for name, value in UNTRUSTED[bent].items():
        setattr(provider, name, value)
    client = Client()
    assert_refused(
        sign_in(client), client, 502, "Harbour ID gave an answer that cannot be trusted. Tell your operator."
    )


def test_who_comes_back_must_have_left_in_this_browser(provider: Provider) -> None:
    client, other, victim = Client(), Client(), Client()
    begun = "This sign-in was not begun in this browser, or more than 10 minutes ago."
    back = sent_back(other)
    assert_refused(victim.get(back), victim, 400, begun)  # a link to somebody else's sign-in
    sent_back(client)
    assert_refused(client.get(back), client, 400, begun)  # after one's own was begun
    client.cookies["sessionid_sign_in"] = client.cookies["sessionid_sign_in"].value + "x"
    assert_refused(client.get("/login/callback/?state="), client, 400, begun)
    assert not provider.codes[parse_qs(urlsplit(back).query)["code"][0]].used


def test_a_code_that_was_stolen_signs_nobody_in(provider: Provider) -> None:
    """Put into the thief's own sign-in it meets another verifier."""
    stolen = parse_qs(urlsplit(sent_back(Client())).query)["code"][0]
    thief = Client()
    own = parse_qs(urlsplit(sent_back(thief)).query)
    answer = thief.get("/login/callback/", {"code": stolen, "state": own["state"][0]})
    assert_refused(answer, thief, 400, "Harbour ID no longer takes this sign-in")
    assert provider.refusals == ["invalid_grant"]


def test_a_code_works_once_and_for_a_while(provider: Provider) -> None:
    client = Client()
    provider.code_seconds = 0
    assert_refused(sign_in(client), client, 400, "it was used before, or took too long. Begin again.")
    provider.code_seconds = 60
    back = sent_back(client)
    kept = client.cookies["sessionid_sign_in"].value
    assert client.get(back).status_code == 302
    again = Client()
    again.cookies["sessionid_sign_in"] = kept
    assert again.get(back).status_code == 400
    assert not is_inside(again)


def test_what_the_operators_did_not_agree_on_is_said(provider: Provider, settings: Any) -> None:
    client = Client()
    settings.OIDC_PROVIDERS = (replace(settings.OIDC_PROVIDERS[0], client_secret="another secret"),)
    assert_refused(sign_in(client), client, 502, "Harbour ID refused this server, not you.")
    assert provider.refusals == ["invalid_client"]
    provider.redirect_uris = ("https://elsewhere.example/login/callback/",)
    connection = http.client.HTTPConnection(urlsplit(provider.issuer).netloc)
    connection.request("GET", client.get("/login/provider/")["Location"].removeprefix(provider.issuer))
    assert connection.getresponse().status == 400
    oidc._kept.clear()
    configure(settings, provider.issuer.replace("127.0.0.1", "localhost"))
    assert_refused(client.get("/login/provider/"), client, 502, "cannot be trusted")


def test_a_denied_sign_in_ends_on_the_login_page(provider: Provider) -> None:
    provider.denies, client = True, Client()
    assert_refused(sign_in(client, "/q4h/"), client, 403, "Harbour ID did not sign you in. Begin again.")
    back = sent_back(client) + "&iss=https://id.example.org"  # mixed up with another provider
    assert_refused(client.get(back), client, 502, "cannot be trusted")


def test_accounts_are_made_only_where_that_is_allowed(provider: Provider, settings: Any) -> None:
    configure(settings, provider.issuer, makes_accounts=False)
    client = Client()
    assert_refused(sign_in(client), client, 403, "Ask your operator for one, and name the subject 248289.")
    root = browser_of(User.objects.get(is_superuser=True))
    page = root.get("/admin/dialogs/identity/add/").content.decode()
    assert f'value="{provider.issuer}"' in page
    local = UserFactory.create(username="lovelace")
    given = {"user": local.pk, "issuer": provider.issuer, "subject": ADA["sub"]}
    assert root.post("/admin/dialogs/identity/add/", given).status_code == 302
    sign_in(client)
    assert client.get("/").context["user"] == local
    local.is_active = False
    local.save()
    answer = sign_in(again := Client())
    assert (answer.status_code, is_inside(again)) == (403, False)
    assert "Your account here is switched off." in answer.content.decode()


def test_keys_that_changed_are_fetched_again(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    sign_in(Client())
    asked = provider.asked.count("/keys")
    provider.key_id = "second"
    assert sign_in(Client()).status_code == 502  # within 30 s: nobody makes us ask for each token
    assert provider.asked.count("/keys") == asked
    monkeypatch.setattr(oidc, "FRESH_SECONDS", 0)
    assert sign_in(Client()).status_code == 302


def test_passwords_work_while_the_provider_is_away(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    root, client = UserFactory.create(is_superuser=True), Client()
    monkeypatch.setattr(oidc, "DEADLINE_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes connections and says nothing
        configure(settings, f"http://127.0.0.1:{silent.getsockname()[1]}")
        for _ in range(2):
            answer = client.get("/login/provider/", {"next": "/q4h/"})
            assert_refused(answer, client, 502, "Harbour ID cannot be reached now.")
            monkeypatch.undo()
            silent.close()  # and then refuses them
    assert 'name="next" value="/q4h/"' in answer.content.decode()
    for _ in range(29):
        answer = client.get("/login/provider/")
    assert (answer.status_code, int(answer["Retry-After"]) > 0) == (429, True)
    assert client.post("/login/", {"username": root.username, "password": PASSWORD}).status_code == 302


def test_no_log_holds_what_signs_in(provider: Provider) -> None:
    stream = StringIO()
    root, level, handlers = logging.getLogger(), logging.getLogger().level, []
    for formatter in (logs.json_formatter(), logs.console_formatter()):
        handlers.append(logging.StreamHandler(stream))
        handlers[-1].setFormatter(formatter)
        root.addHandler(handlers[-1])
    root.setLevel(logging.DEBUG)
    client = Client()
    try:
        back = sent_back(client)
        kept = client.cookies["sessionid_sign_in"].value
        client.get(back)
        for address in (back, back.replace("callback/", "callback/1/")):
            Client().get(address)
    finally:
        root.setLevel(level)
        for handler in handlers:
            root.removeHandler(handler)
    query = parse_qs(urlsplit(back).query)
    text = stream.getvalue()
    assert "signed_in" in text and "/login/callback/?[redacted]" in text and "/login/callback/1/?[redacted]" in text
    for secret in (query["code"][0], query["state"][0], kept, SECRET, *provider.tokens, "eyJ"):
        assert secret not in text


# -- Several providers, and several sign-ins of one person -------------------------------------------------------------

SECOND_CALLBACK = "http://testserver/login/callback/2/"


@pytest.fixture
def second(provider: Provider, settings: Any) -> Iterator[Provider]:
    with openid_provider(SECOND_CALLBACK, person={"sub": "p-7", "preferred_username": "pilot", "groups": []}) as double:
        settings.OIDC_PROVIDERS += (Registration("Pilots", double.issuer, CLIENT, SECRET, number=2),)
        yield double


def came_back(client: Client, address: str) -> Any:
    """From the provider to which this address of ours leads."""
    left = client.get(address)
    assert left.status_code == 302, left.content.decode()
    return client.get(location(left["Location"]).removeprefix("http://testserver"), follow=True)


def settings_page(client: Client) -> str:
    return in_one_line(client.get("/settings/password/").content.decode())


def address_to_link(client: Client, name: str) -> str:
    match = re.search(rf'<a class="button" href="([^"]+)">Link {name}</a>', settings_page(client))
    assert match is not None
    return match[1]


def test_each_provider_has_its_button_and_its_people(second: Provider, provider: Provider) -> None:
    page = in_one_line(Client().get("/login/").content.decode())
    assert page.index("Sign in with Harbour ID") < page.index('"/login/provider/2/">Sign in with Pilots')
    sign_in(Client())
    client = Client()
    came_back(client, "/login/provider/2/")
    assert client.get("/").context["user"].username == "pilot"
    assert set(Identity.objects.values_list("issuer", flat=True)) == {provider.issuer, second.issuer}
    assert Client().get("/login/provider/3/").status_code == Client().get("/login/callback/3/").status_code == 404


def test_an_answer_of_one_provider_is_not_taken_for_anothers(second: Provider, provider: Provider) -> None:
    """A provider that turned evil asks the browser to bring it the code of the other one."""
    client = Client()
    back = sent_back(client)
    assert_refused(client.get(back.replace("callback/", "callback/2/")), client, 400, "was not begun in this browser")
    client.get("/login/provider/2/")
    assert_refused(client.get(back), client, 400, "was not begun in this browser")
    assert not provider.tokens and not second.tokens


def test_a_person_links_another_sign_in_to_their_account(second: Provider) -> None:
    person, client = UserFactory.create(username="lovelace"), Client()
    client.login(username="lovelace", password=PASSWORD)
    assert "You log in with your password alone." in settings_page(client)
    page = came_back(client, address_to_link(client, "Pilots")).content.decode()
    assert "Pilots signs you in from now on." in page and "account p-7" in page and "Link Harbour ID" in page
    assert "Link Pilots" not in page
    again = Client()
    came_back(again, "/login/provider/2/")
    assert again.get("/").context["user"] == person
    assert User.objects.filter(username="pilot").count() == 0


def test_a_sign_in_of_somebody_else_is_not_taken_over(second: Provider) -> None:
    came_back(Client(), "/login/provider/2/")
    pilot = User.objects.get(username="pilot")
    client = browser_of(UserFactory.create())
    page = came_back(client, address_to_link(client, "Pilots")).content.decode()
    assert "belongs to somebody else here" in page and 'aria-labelledby="sign-ins-title"' in page
    assert Identity.objects.get().user == pilot


def test_only_the_person_themselves_begins_a_link_and_ends_it(second: Provider) -> None:
    """No other site sends them off to link something, and whoever is logged in when they come back gets nothing."""
    client, other = browser_of(UserFactory.create()), UserFactory.create()
    for token in ("", "forged", link_token(other)):
        assert client.get("/login/provider/2/", {"link": token})["Location"] == "/"
    left = client.get(address_to_link(client, "Pilots"))["Location"]
    client.force_login(other)
    page = client.get(location(left).removeprefix("http://testserver"), follow=True).content.decode()
    assert "was not begun in this browser" in page
    assert not Identity.objects.exists()


def test_the_last_way_in_cannot_be_unlinked(second: Provider, settings: Any) -> None:
    harbour = Group.objects.create(name="harbour")
    second.person["groups"] = ["harbour"]
    client = Client()
    sign_in(client)
    ada = client.get("/").context["user"]
    first = Identity.objects.get()
    address = f"/settings/sign-ins/{first.pk}/unlink/"
    assert "you could not log in any more" in client.post(address, follow=True).content.decode()
    came_back(client, address_to_link(client, "Pilots"))
    assert set(ada.groups.all()) == {harbour}
    assert "There is no such page" not in browser_of(UserFactory.create()).post(address, follow=True).content.decode()
    assert Identity.objects.count() == 2  # somebody else unlinks nothing
    other = Identity.objects.exclude(pk=first.pk).get()
    both, settings.OIDC_PROVIDERS = settings.OIDC_PROVIDERS, settings.OIDC_PROVIDERS[:1]
    assert "could not log in" in client.post(address, follow=True).content.decode()  # the other leads nowhere now
    settings.OIDC_PROVIDERS = both
    page = client.post(f"/settings/sign-ins/{other.pk}/unlink/", follow=True).content.decode()
    assert "Pilots does not sign you in any more." in page
    assert not ada.groups.exists()  # that it alone brought
    ada.set_password(PASSWORD)
    ada.save()
    client.force_login(ada)
    assert "does not sign you in any more" in client.post(address, follow=True).content.decode()
    assert not Identity.objects.exists()


def test_a_group_that_two_providers_name_is_left_with_the_second(second: Provider, provider: Provider) -> None:
    harbour = Group.objects.create(name="harbour")
    provider.person["groups"] = second.person["groups"] = ["harbour"]
    client = Client()
    sign_in(client)
    ada = client.get("/").context["user"]
    came_back(client, address_to_link(client, "Pilots"))
    provider.person["groups"] = []
    sign_in(Client())
    assert set(ada.groups.all()) == {harbour}
    second.person["groups"] = []
    came_back(Client(), "/login/provider/2/")
    assert not ada.groups.exists()
