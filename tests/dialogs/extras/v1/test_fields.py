"""Every field that the official clients can send is honoured, refused by its name, or known to change nothing here.
What a new version of theirs adds is in none of these lists, and fails here first."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, NotRequired, Required, Union, get_args, get_origin

import pytest
import typing_extensions
from typing_extensions import get_type_hints, is_typeddict

from dialogs.extras.v1.errors import ApiError
from tests.dialogs.extras.v1.client_fields import KINDS, UNREAD
from tests.dialogs.extras.v1.field_kinds import Kind

API = Path(__file__).parents[4] / "docs" / "api.md"
REQUIRED: tuple[Any, ...] = (Required, typing_extensions.Required)
WRAPPED = (*REQUIRED, NotRequired, typing_extensions.NotRequired)
JUDGED = {type_.__name__ for kind in KINDS.values() for type_ in kind.types}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_each_field_is_honoured_refused_or_harmless(kind: Kind) -> None:
    judged = {*kind.always_given, *kind.honoured, *kind.refused, *kind.harmless}
    assert {name for type_ in kind.types for name in type_.__annotations__} <= judged, "fields that nobody judged"
    plain = kind.read()
    assert {name for name, value in kind.honoured.items() if kind.read(**{name: value}) == plain} == set()
    assert {name for name, value in kind.harmless.items() if kind.read(**{name: value}) != plain} == set()
    for name, value in kind.refused.items():
        with pytest.raises(ApiError) as refused:
            kind.read(**{name: value})
        assert refused.value.status == 400
        assert name in f"{refused.value.param} {refused.value.message}"


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_what_a_read_field_may_hold_is_judged_or_refused(kind: Kind) -> None:
    """Walks the clients' own types: whatever stands in a field that is read has a judgement, or is refused."""
    passed_over = []
    for type_ in kind.types:
        hints = get_type_hints(type_)
        for name in {*kind.always_given, *kind.honoured} & hints.keys():
            for held, is_in_list in _objects_in(hints[name]):
                if held.__name__ in JUDGED | UNREAD.keys():
                    continue
                value = _least(held)
                try:
                    kind.read(**{name: [value, *kind.beside(name)] if is_in_list else value})
                except ApiError as refused:
                    told = f"{refused.param} {refused.message}"
                    assert refused.status in (400, 404)
                    assert name in told or str(value.get("type")) in told, told
                else:
                    passed_over.append(f"{type_.__name__}.{name}: {held.__name__}")
    assert passed_over == []


def _objects_in(hint: Any, *, is_in_list: bool = False) -> Iterator[tuple[Any, bool]]:
    """Yield the kinds of objects that a field may hold, and whether in a list."""
    if is_typeddict(hint):
        yield hint, is_in_list
    for one in get_args(hint):
        many = isinstance(get_origin(hint), type) and issubclass(get_origin(hint), Iterable)
        yield from _objects_in(one, is_in_list=is_in_list or many)


def _least(hint: Any) -> Any:
    """Return the least value of a type: of an object its required fields alone."""
    if is_typeddict(hint):
        hints = get_type_hints(hint, include_extras=True)
        required = [name for name, type_ in hints.items() if name == "type" or get_origin(type_) in REQUIRED]
        return {name: _least(hints[name]) for name in required}
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal or origin is typing_extensions.Literal:
        return arguments[0]
    if origin in WRAPPED or (origin and arguments and not isinstance(origin, type)) or origin is Union:
        return _least(next(one for one in arguments if one is not type(None)))
    if origin is not None:
        return {} if issubclass(origin, dict) else []
    return {str: "x", int: 1, float: 0.5, bool: True}.get(hint, {})


def test_what_is_passed_over_is_documented() -> None:
    message = API.read_text()
    fields = {name for kind in KINDS.values() for name in kind.harmless}
    assert {name for name in fields if f"`{name}`" not in message} == set()
