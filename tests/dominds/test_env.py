"""The environment is read once, by typed readers that name what is wrong."""

from pathlib import Path

import pytest

from dominds import env

NAME = "DOMINDS_TEST_VALUE"


@pytest.mark.parametrize(
    ("value", "meaning"),
    [("1", True), ("TRUE", True), ("on", True), ("0", False), ("no", False), ("  ", True), ("", True)],
)
def test_a_flag_reads_the_usual_words_and_empty_means_the_default(
    value: str, meaning: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(NAME, value)
    assert env.flag(NAME, default=True) is meaning


@pytest.mark.parametrize("value", ["maybe", "2", "yes please"])
def test_a_bad_flag_is_named_with_value_and_remedy(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, value)
    with pytest.raises(env.BadEnvironment, match=f"{NAME} is '{value}', but should be one of .* start again"):
        env.flag(NAME, default=False)


@pytest.mark.parametrize("value", ["-1", "3.5", "many", "0x10", "²"])
def test_a_bad_number_is_refused(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, value)
    with pytest.raises(env.BadEnvironment, match="whole number of at least 0"):
        env.number(NAME, default=7)


def test_words_are_split_at_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, " a.example.org, ,b.example.org ")
    assert env.words(NAME, ["localhost"]) == ["a.example.org", "b.example.org"]


def test_model_servers_are_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    assert env.servers(NAME, "ollama=http://127.0.0.1:11434") == [("ollama", "http://127.0.0.1:11434")]
    monkeypatch.setenv(NAME, "vllm=http://gpu:8000, lmstudio=http://127.0.0.1:1234")
    assert env.servers(NAME, "") == [("vllm", "http://gpu:8000"), ("lmstudio", "http://127.0.0.1:1234")]
    monkeypatch.setenv(NAME, "off")
    assert env.servers(NAME, "ollama=http://127.0.0.1:11434") == []


@pytest.mark.parametrize("value", ["http://127.0.0.1:1234", "gopher=http://127.0.0.1:70", "ollama=", "ollama=11434"])
def test_a_bad_model_server_is_refused(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, value)
    with pytest.raises(env.BadEnvironment, match="KIND=ADDRESS"):
        env.servers(NAME, "")


def test_default_folders_lie_in_the_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert env.folder(NAME, "var", base=Path("/checkout")) == Path("/checkout/var")
    monkeypatch.setenv(NAME, "here")
    assert env.folder(NAME, "var", base=Path("/checkout")) == tmp_path.resolve() / "here"


def test_a_folder_that_cannot_even_be_asked_for_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """As one in somebody else's home; a name that is too long fails alike, also for root."""
    monkeypatch.setenv(NAME, "/tmp/" + "x" * 300)
    with pytest.raises(env.BadEnvironment, match="a folder that this user may open"):
        env.folder(NAME, "var", base=Path("/checkout"))


def test_a_file_is_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv(NAME, str(tmp_path / "file"))
    with pytest.raises(env.BadEnvironment, match="a folder, not a file"):
        env.folder(NAME, "var", base=tmp_path)


def test_a_database_address_is_taken_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, "postgres://ada:p%40ss@%2Fvar%2Frun:5433/talks")
    described = env.database(NAME, default=Path("unused"))
    assert (described["USER"], described["PASSWORD"], described["HOST"]) == ("ada", "p@ss", "/var/run")
    assert (str(described["PORT"]), described["NAME"]) == ("5433", "talks")


@pytest.mark.parametrize("given", ["mysql://root:hunter2@db/talks", "postgres://ada:hunter2@db", "hunter2"])
def test_a_bad_database_address_is_refused_without_showing_its_password(
    given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(NAME, given)
    with pytest.raises(env.BadEnvironment) as caught:
        env.database(NAME, default=Path("unused"))
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("value", ["http://cache", "redis://", "cache:6379"])
def test_a_bad_redis_address_is_refused(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, value)
    with pytest.raises(env.BadEnvironment, match="redis://HOST:PORT/NUMBER"):
        env.redis_url(NAME)


def test_a_data_folder_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(env.BadEnvironment, match=r"DOMINDS_DATA_DIR is .* a folder that can be made"):
        env.make_folder("DOMINDS_DATA_DIR", tmp_path / "file" / "var")
    with pytest.raises(env.BadEnvironment, match="DOMINDS_DATA_DIR is '/sys/kernel', but"):
        env.make_folder("DOMINDS_DATA_DIR", Path("/sys/kernel"))


@pytest.mark.parametrize(
    ("given", "port", "secured"),
    [
        ("smtp://mail.example.org", 25, {}),
        ("smtp+tls://ann%40example.org:a%2Fb@mail.example.org", 587, {"EMAIL_USE_TLS": True}),
        ("smtp+ssl://ann:b@mail.example.org:4650", 4650, {"EMAIL_USE_SSL": True}),
    ],
)
def test_a_mail_server_is_an_address(
    given: str, port: int, secured: dict[str, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(NAME, given)
    read = env.mail(NAME)
    assert (read["EMAIL_HOST"], read["EMAIL_PORT"]) == ("mail.example.org", port)
    assert {name: value for name, value in read.items() if name.startswith("EMAIL_USE")} == secured
    if "%40" in given:
        assert (read["EMAIL_HOST_USER"], read["EMAIL_HOST_PASSWORD"]) == ("ann@example.org", "a/b")


@pytest.mark.parametrize("value", ["mail.example.org", "http://mail.example.org", "smtps://h", "smtp://"])
def test_what_is_no_mail_server_is_refused_without_its_password(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, value)
    with pytest.raises(env.BadEnvironment, match="USER:PASSWORD@HOST:PORT"):
        env.mail(NAME)


def test_mails_need_a_sender(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(env.BadEnvironment, match="that mails come from"):
        env.mail_sender(NAME)
    monkeypatch.setenv(NAME, "Dominds <dominds@example.org>")
    assert env.mail_sender(NAME) == "Dominds <dominds@example.org>"


@pytest.mark.parametrize(
    "value", ["dominds.example.org", "ftp://x", "https://", "https://x.example/path", "https://x:y"]
)
def test_what_is_no_public_address_is_refused(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, value)
    with pytest.raises(env.BadEnvironment, match="without a path"):
        env.web_address(NAME)
    monkeypatch.setenv(NAME, "https://dominds.example.org:8443/")
    assert env.web_address(NAME) == "https://dominds.example.org:8443"


@pytest.mark.parametrize(
    "value",
    ["id.example.org", "http://id.example.org", "https://id.example.org/?x=1", "https://id.example.org/#x", "https://"],
)
def test_what_is_no_issuer_is_refused(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, value)
    with pytest.raises(env.BadEnvironment, match="the issuer of an OpenID provider"):
        env.issuer(NAME)
    for good in ("https://id.example.org/realms/main", "https://id.example.org/", "http://127.0.0.1:8080"):
        monkeypatch.setenv(NAME, good)
        assert env.issuer(NAME) == good
