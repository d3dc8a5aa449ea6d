"""Finding texts by words: full-text search on PostgreSQL, plain word match on SQLite. Callers see no difference but rank."""

from functools import reduce
from operator import and_, or_
from typing import Any

from django.contrib.postgres.search import SearchQuery, SearchRank, SearchVector, SearchVectorExact
from django.db import connections
from django.db.models import Case, FloatField, IntegerField, Q, QuerySet, Value, When
from django.db.models.functions import Left

CONFIG = "english"  # stems are harmless to other languages, since texts and words are treated alike
# Full-text search reads so much of a text: 1 MB takes PostgreSQL 0.1 s, and of much more it refuses to make a vector.
READ_CHARS = 20_000


def matching(rows: QuerySet[Any], words: list[str], *, every: bool = False) -> QuerySet[Any]:
    """The rows whose ``text`` holds any of the words, or ``every`` one, best first, newest first among equals.

    A word is held where its letters stand, also inside an identifier or a path, which full-text search would miss; on
    PostgreSQL also where another form of it stands. There are as many steps as words, so callers bound their number.

    No index: over 10,000 turns of 500 characters a search takes 0.6 s, and a GIN index was larger (9.3 MB) than their
    whole table (7.7 MB), which every message would pay for.
    """
    is_full_text = connections[rows.db].vendor == "postgresql"
    held = [_held(word, is_full_text) for word in words]
    # One vector for all words, where a row holds none of them by its letters: making vectors is what takes time.
    wanted = reduce(and_, held) if every else _any_of(words, is_full_text)
    number = sum((Case(When(one, then=1), default=0, output_field=IntegerField()) for one in held), Value(0))
    rank = SearchRank(_vector(), _any_query(words)) if is_full_text else Value(0.0, FloatField())
    found: QuerySet[Any] = rows.filter(wanted).annotate(matched=number, rank=rank)
    return found.order_by("-matched", "-rank", "-id")


def _held(word: str, is_full_text: bool) -> Q:
    letters = Q(text__icontains=word)
    return letters | Q(SearchVectorExact(_vector(), _query(word))) if is_full_text else letters


def _any_of(words: list[str], is_full_text: bool) -> Q:
    letters = reduce(or_, (Q(text__icontains=word) for word in words))
    return letters | Q(SearchVectorExact(_vector(), _any_query(words))) if is_full_text else letters


def _any_query(words: list[str]) -> SearchQuery:
    return reduce(or_, (_query(word) for word in words))


def _query(word: str) -> SearchQuery:
    return SearchQuery(word, config=CONFIG)


def _vector() -> SearchVector:
    return SearchVector(Left("text", READ_CHARS), config=CONFIG)
