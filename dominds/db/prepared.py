"""SQL that each process builds only once.

Django needs about a millisecond to build a statement, and PostgreSQL a tenth of that to run it. So the statements of
every generation are built once from their querysets and models, and then run with new values.
"""

from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from inspect import get_annotations
from operator import attrgetter, itemgetter, methodcaller
from typing import Any, Generic, TypeVar, cast
from uuid import UUID

from django.core.exceptions import ObjectDoesNotExist
from django.db import DEFAULT_DB_ALIAS, connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import (
    BooleanField,
    CharField,
    Expression,
    Field,
    FloatField,
    ForeignKey,
    IntegerField,
    Model,
    QuerySet,
    TextField,
)
from django.db.models.expressions import DatabaseDefault
from django.db.models.query import (
    FlatValuesListIterable,
    ModelIterable,
    NamedValuesListIterable,
)

Row = TypeVar("Row")
Result = TypeVar("Result")
_fetch_all: Callable[[Any], list[Sequence[Any]]] = methodcaller("fetchall")
_row_count: Callable[[Any], int] = attrgetter("rowcount")
BATCH_ROWS = 50
_Convert = tuple[int, Sequence[Callable[..., Any]], Any]  # a column's index, its converters to Python, its expression


class Select(Generic[Row]):
    """A query that is built once and run with different values: ``Select(build)(*values)``.

    ``build`` makes the queryset from its parameters. Each is annotated as UUID, int or str, and must reach the query
    unchanged. The queryset may follow foreign keys by ``select_related``, and yields models, tuples or named tuples.
    """

    def __init__(self, build: Callable[..., QuerySet[Any, Row]]) -> None:
        self._build = build
        self._stand_ins = tuple(_stand_in(n, kind) for n, kind in enumerate(_parameters(build)))
        self._made: dict[str, _Made] = {}

    def __call__(self, *values: Any) -> list[Row]:
        db = _database()
        made = self._made.get(db.vendor)
        if made is None:  # two threads may build it at once, with the same result
            made = self._made[db.vendor] = _Made(self._build(*self._stand_ins), self._stand_ins)
        return cast("list[Row]", made.rows(_fetch_rows(db, made.sql, made.params(values, db)), db))

    def first(self, *values: Any) -> Row | None:
        return next(iter(self(*values)), None)

    def one(self, *values: Any) -> Row:
        """Return the first row. Raises ``ObjectDoesNotExist``, which names the values, if there is none."""
        for row in self(*values):
            return row
        raise ObjectDoesNotExist(f"{self._build.__name__.strip('_')} finds nothing for {', '.join(map(str, values))}.")


class _Made:
    """The SQL of one queryset on one kind of database, and the conversion of its rows to what the queryset yields."""

    def __init__(self, queryset: QuerySet[Any, Any], stand_ins: Sequence[Any]) -> None:
        compiler = queryset.query.get_compiler(connection=connection)
        self.sql, params = compiler.as_sql()
        self._params = tuple(_place(param, stand_ins) for param in params)
        columns = [column for column, _, _ in compiler.select]
        self._converters: list[_Convert] = [
            (index, converters, expression)
            for index, (converters, expression) in compiler.get_converters(columns).items()
        ]
        self._shape = _shape_of(queryset, compiler)

    def params(self, values: Sequence[Any], db: BaseDatabaseWrapper) -> list[Any]:
        ready = values if db.features.has_native_uuid_field else [_without_uuid(value) for value in values]
        return [ready[place] if place is not None else fixed for fixed, place in self._params]

    def rows(self, results: Sequence[Sequence[Any]], db: BaseDatabaseWrapper) -> list[Any]:
        if not self._converters:
            return list(map(self._shape, results))
        return [self._shape(self._convert(row, db)) for row in results]

    def _convert(self, row: Sequence[Any], db: BaseDatabaseWrapper) -> Sequence[Any]:
        values: list[Any] | None = None
        for index, converters, expression in self._converters:
            value = row[index]
            if value is None:  # this is the usual case, since most JSON columns of most rows are empty
                continue
            for convert in converters:
                value = convert(value, expression, db)
            values = list(row) if values is None else values
            values[index] = value
        return row if values is None else values


def _shape_of(queryset: Any, compiler: Any) -> Callable[[Sequence[Any]], Any]:
    iterable = queryset._iterable_class
    if issubclass(iterable, ModelIterable):
        return _model_shape(compiler.klass_info, compiler.select, tuple(compiler.annotation_col_map.items()))
    if issubclass(iterable, FlatValuesListIterable):
        return itemgetter(0)
    if issubclass(iterable, NamedValuesListIterable):
        row: Any = namedtuple("Row", queryset._fields)  # type: ignore[misc]
        return cast("Callable[[Sequence[Any]], Any]", row._make)
    return tuple


def _model_shape(
    info: Mapping[str, Any], select: Sequence[Any], annotations: Sequence[tuple[str, int]] = ()
) -> Callable[[Sequence[Any]], Model | None]:
    """Return a function that makes a model of a row, as querysets do, or None of an outer join without a row."""
    model, columns = info["model"], info["select_fields"]
    start, stop = columns[0], columns[-1] + 1
    # A mapping, since Django looks for each of a model's columns among these names if some are missing.
    names = dict.fromkeys(select[column][0].target.attname for column in columns)
    key = start + list(names).index(model._meta.pk.attname)
    related = [
        (_model_shape(other, select), other["local_setter"], other["remote_setter"])
        for other in info.get("related_klass_infos", ())
    ]

    def shape(row: Sequence[Any]) -> Model | None:
        if row[key] is None:
            return None
        instance = cast("Model", model.from_db(DEFAULT_DB_ALIAS, names, row[start:stop]))
        for shape_of_other, set_other, set_this in related:
            other = shape_of_other(row)
            set_other(instance, other)
            if other is not None:
                set_this(other, instance)
        for name, column in annotations:
            setattr(instance, name, row[column])
        return instance

    return shape


def update(model: type[Model], where: Mapping[str, Any], columns: Mapping[str, Any]) -> int:
    """Set ``columns`` in the rows that match ``where``, both by attribute names, and return the number of rows."""
    expressions = tuple((name, value) for name, value in columns.items() if isinstance(value, Expression))
    db = _database()
    sql, places = _update_sql(db.vendor, model, tuple(where), tuple(columns), expressions)
    given = {**columns, **{f"where {name}": value for name, value in where.items()}}
    values = [fixed if column is None else column.value(given[fixed], db) for column, fixed in places]
    return _count_changed(db, sql, values)


def run_sql(sql: str, params: Sequence[Any]) -> int:
    """Run SQL that models cannot express, and return the number of rows that it changed."""
    return _count_changed(_database(), sql, params)


@cache
def _update_sql(
    vendor: str,
    model: type[Model],
    where: tuple[str, ...],
    names: tuple[str, ...],
    expressions: tuple[tuple[str, Expression], ...],
) -> tuple[str, tuple[tuple["_Column | None", Any], ...]]:
    """Return the SQL and its placeholders: each is a column and the name of its value, or None and a constant."""
    made = dict(expressions)
    query = model._base_manager.all().query
    compiler = query.get_compiler(connection=connection)
    parts: list[str] = []
    places: list[tuple[_Column | None, Any]] = []
    for name in names:
        field, part = _field(model, name), "%s"
        if name in made:
            part, params = compiler.compile(made[name].resolve_expression(query, allow_joins=False, for_save=True))
            places += [(None, param) for param in params]
        else:
            places.append((_column(vendor, field), name))
        parts.append(f"{_quote(field)} = {part}")
    places += [(_column(vendor, _field(model, name)), f"where {name}") for name in where]
    condition = " AND ".join(f"{_quote(_field(model, name))} = %s" for name in where)
    table = connection.ops.quote_name(model._meta.db_table)
    sql = f"UPDATE {table} SET {', '.join(parts)} WHERE {condition}"  # nosec B608: names alone
    return sql, tuple(places)


def insert(*rows: Model) -> None:
    """Store new rows of one model. As by ``save``, keys and database defaults are then set on them."""
    model = type(rows[0])
    names = tuple(
        field.attname
        for field in model._meta.concrete_fields
        if not (field.primary_key and rows[0].pk is None)
        and not isinstance(getattr(rows[0], field.attname), DatabaseDefault)
    )
    db = _database()
    sql, columns, returned = _insert_sql(db.vendor, model, names, len(rows))
    values = [column.value(column.field.pre_save(row, True), db) for row in rows for column in columns]
    for row, filled in zip(rows, _fetch_rows(db, sql, values), strict=True):
        for field, value in zip(returned, filled, strict=True):
            setattr(row, field.attname, _convert(value, field, db))
        row._state.adding, row._state.db = False, DEFAULT_DB_ALIAS


def insert_many(rows: Sequence[Model]) -> None:
    """Store any number of new rows, as ``insert`` does, in batches of one size: each size is a statement of its own."""
    for start in range(0, len(rows), BATCH_ROWS):
        insert(*rows[start : start + BATCH_ROWS])


@cache
def _insert_sql(
    vendor: str, model: type[Model], names: tuple[str, ...], number: int
) -> tuple[str, tuple["_Column", ...], tuple["Field[Any, Any]", ...]]:
    given = tuple(_field(model, name) for name in names)
    filled = tuple(field for field in model._meta.concrete_fields if field.attname not in names) or (model._meta.pk,)
    columns = ", ".join(_quote(field) for field in given)
    row = f"({', '.join(['%s'] * len(given))})"
    returned = ", ".join(_quote(field) for field in filled)
    table, rows = connection.ops.quote_name(model._meta.db_table), ", ".join([row] * number)
    sql = f"INSERT INTO {table} ({columns}) VALUES {rows} RETURNING {returned}"  # nosec B608: names alone
    return sql, tuple(_column(vendor, field) for field in given), filled


@dataclass(frozen=True, slots=True)
class _Column:
    """A field with a fast converter for values of its usual type ``kind``. Django's own makes ten calls."""

    field: "Field[Any, Any]"
    kind: type | None
    made: Callable[[Any], Any] | None

    def value(self, value: Any, db: BaseDatabaseWrapper) -> Any:
        if value is None:  # every field stores None as NULL
            return None
        if type(value) is self.kind:  # exactly this type, and no subclass
            return value if self.made is None else self.made(value)
        return self.field.get_db_prep_save(value, db)


@cache
def _column(vendor: str, field: "Field[Any, Any]") -> _Column:
    """Return the column of a field on one ``vendor``'s database.

    How Django converts one example shows how it converts all values of that type.
    """
    target = field
    while isinstance(target, ForeignKey):
        target = target.target_field
    for field_type, example in _EXAMPLES:
        if isinstance(target, field_type):
            made = field.get_db_prep_save(example, connection)
            return _Column(field, type(example), None if made is example else type(made))
    return _Column(field, None, None)


# Fields whose values Django passes on unchanged, or only wrapped in a type of the driver.
_EXAMPLES: tuple[tuple[type["Field[Any, Any]"], Any], ...] = (
    (IntegerField, 1),
    (BooleanField, True),
    (FloatField, 1.5),
    (CharField, "text"),
    (TextField, "text"),
)


def _convert(value: Any, field: "Field[Any, Any]", db: BaseDatabaseWrapper) -> Any:
    column = field.cached_col
    for convert in (*db.ops.get_db_converters(column), *field.get_db_converters(db)):
        value = convert(value, column, db)
    return value


def _quote(field: "Field[Any, Any]") -> str:
    return connection.ops.quote_name(field.column or "")


def _field(model: type[Model], attname: str) -> "Field[Any, Any]":
    return next(field for field in model._meta.concrete_fields if field.attname == attname)


def _parameters(build: Callable[..., Any]) -> list[type]:
    return [kind for name, kind in get_annotations(build, eval_str=True).items() if name != "return"]


def _stand_in(number: int, kind: type) -> Any:
    """Return a value that no query contains otherwise, so that it can be found among the parameters of the SQL."""
    if kind is UUID:
        return UUID(int=0xD1A106_0000 + number)
    return 2_000_100_000 + number if kind is int else f"stand-in {number} of a value that comes later"


def _place(param: Any, stand_ins: Sequence[Any]) -> tuple[Any, int | None]:
    """Return a constant parameter and None, or None and the number of the value that will replace the parameter."""
    for number, stand_in in enumerate(stand_ins):
        if param == stand_in or (isinstance(stand_in, UUID) and param == stand_in.hex):
            return None, number
    return param, None


def _without_uuid(value: Any) -> Any:
    return value.hex if isinstance(value, UUID) else value


def _database() -> BaseDatabaseWrapper:
    return connections[DEFAULT_DB_ALIAS]  # ``connection`` would look this up at each access to an attribute


def _fetch_rows(db: Any, sql: str, params: Sequence[Any]) -> list[Sequence[Any]]:
    return _execute(db, sql, params, _fetch_all)


def _count_changed(db: Any, sql: str, params: Sequence[Any]) -> int:
    return _execute(db, sql, params, _row_count)


def _execute(db: Any, sql: str, params: Sequence[Any], result: Callable[[Any], Result]) -> Result:
    """Execute on the driver's cursor without Django's layers, unless statements are logged or wrapped."""
    if db.execute_wrappers or db.queries_logged:
        with db.cursor() as cursor:
            cursor.execute(sql, params)
            return result(cursor)
    db.ensure_connection()
    db.validate_no_broken_transaction()
    with db.wrap_database_errors:
        return result(db.run(sql, params))
