"""Data classes like the standard `dataclasses`, but without code compiled at import.

The standard library compiles up to six methods for each class. With its decorator, `ptt report` of
a small trace takes 1.24 times and `ptt check` 1.14 times the processor time (28 to 33 ms more;
medians of 15 pairs with Python 3.11). Here all classes share their methods, and `__init__` of a
class is compiled for its first object.

The functions of `dataclasses` work for these classes too. Classes that need `kw_only`, `init` or
`__post_init__` use the decorator of the standard library.
"""

from __future__ import annotations

from _operator import attrgetter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import dataclass, field, replace
    from typing import Any

__all__ = ["dataclass", "field", "replace"]

_set = object.__setattr__


class _Sign:
    """A named sentinel."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


_MISSING = _Sign("<missing>")
_FACTORY = _Sign("<factory>")


class _Field:
    """A field: its default value or factory, and whether `repr` and comparisons use it."""

    def __init__(
        self,
        default: Any = _MISSING,
        default_factory: Callable[[], Any] | None = None,
        *,
        repr: bool = True,  # noqa: A002 -- as in the standard library
        compare: bool = True,
    ) -> None:
        self.default = default
        self.default_factory = default_factory
        self.repr = repr
        self.compare = compare
        self.annotation = ""


class _Made:
    """The fields of a data class, and its `__init__`, compiled on first use.

    Args:
        cls: The class.
        fields: The fields of the class and of its bases, by name.
        frozen: Whether objects refuse assignments.
    """

    def __init__(self, cls: type, fields: dict[str, _Field], *, frozen: bool) -> None:
        self.cls = cls
        self.fields = fields
        self._frozen = frozen
        names = [name for name, each in fields.items() if each.compare]
        # attrgetter returns a tuple only for two names or more.
        self.values: Callable[[object], Any] = attrgetter(*(names * 2)[: max(2, len(names))])

    def init(self) -> Callable[..., None]:
        """Compile `__init__` and set it in the class."""
        names: dict[str, Any] = {"_set": _set, "_factory": _FACTORY}
        parameters, lines = ["self"], []
        for name, each in self.fields.items():
            value = name
            if each.default_factory is not None:
                names[f"_make_{name}"] = each.default_factory
                parameters.append(f"{name}=_factory")
                value = f"_make_{name}() if {name} is _factory else {name}"
            elif each.default is not _MISSING:
                names[f"_default_{name}"] = each.default
                parameters.append(f"{name}=_default_{name}")
            else:
                parameters.append(name)
            lines.append(
                f"_set(self, {name!r}, {value})" if self._frozen else f"self.{name} = {value}"
            )
        text = f"def __init__({', '.join(parameters)}):\n " + "\n ".join(lines or ["pass"])
        exec(text, names)  # noqa: S102 -- the text has only names of fields
        made: Callable[..., None] = names["__init__"]
        made.__qualname__ = f"{self.cls.__qualname__}.__init__"
        annotations = {name: each.annotation for name, each in self.fields.items()}
        made.__annotations__ = {**annotations, "return": None}
        self.cls.__init__ = made  # type: ignore[misc]
        return made


class _StandardFields:
    """Computes `__dataclass_fields__`, which the functions of `dataclasses` read."""

    def __get__(self, instance: object, cls: type) -> dict[str, Any]:
        import dataclasses

        standard = [
            (
                name,
                each.annotation,
                dataclasses.field(
                    **({} if each.default is _MISSING else {"default": each.default}),
                    **({"default_factory": each.default_factory} if each.default_factory else {}),
                    repr=each.repr,
                    compare=each.compare,
                ),
            )
            for name, each in cls.__made__.fields.items()  # type: ignore[attr-defined]
        ]
        made: Any = dataclasses.make_dataclass(cls.__name__, standard)
        return {field.name: field for field in dataclasses.fields(made)}


class _Signature:
    """Computes `__signature__`, which documentation tools read."""

    def __get__(self, instance: object, cls: type) -> Any:
        if instance is not None:
            raise AttributeError("__signature__")
        from inspect import signature

        of_init = signature(cls.__made__.init())  # type: ignore[attr-defined]
        return of_init.replace(parameters=list(of_init.parameters.values())[1:])


def _init(made: _Made) -> Callable[..., None]:
    def __init__(self: object, *values: Any, **named: Any) -> None:  # noqa: N807
        made.init()(self, *values, **named)

    return __init__


def _repr(self: Any) -> str:
    fields = self.__made__.fields.items()
    shown = (f"{name}={getattr(self, name)!r}" for name, each in fields if each.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _eq(self: Any, other: Any) -> Any:
    if type(self) is not type(other):
        return NotImplemented
    values = self.__made__.values
    return values(self) == values(other)


def _lt(self: Any, other: Any) -> Any:
    if type(self) is not type(other):
        return NotImplemented
    values = self.__made__.values
    return values(self) < values(other)


def _le(self: Any, other: Any) -> Any:
    if type(self) is not type(other):
        return NotImplemented
    values = self.__made__.values
    return values(self) <= values(other)


def _hash(self: Any) -> int:
    return hash(self.__made__.values(self))


def _setattr(self: object, name: str, value: object) -> None:
    del self, value
    raise AttributeError(f"cannot assign to field {name!r}")


def _delattr(self: object, name: str) -> None:
    del self
    raise AttributeError(f"cannot delete field {name!r}")


def _getstate(self: Any) -> list[Any]:
    return [getattr(self, name) for name in self.__made__.fields]


def _setstate(self: Any, state: list[Any]) -> None:
    for name, value in zip(self.__made__.fields, state, strict=True):
        _set(self, name, value)


def _methods(*, frozen: bool, slots: bool, eq: bool, order: bool) -> dict[str, Any]:
    """Return the methods that a class gets unless it defines them itself."""
    methods: dict[str, Any] = {"__repr__": _repr}
    if eq:
        methods |= {"__eq__": _eq, "__hash__": _hash if frozen else None}
    if order:
        methods |= {"__lt__": _lt, "__le__": _le}  # Python asks the other object for > and >=
    if frozen:
        methods |= {"__setattr__": _setattr, "__delattr__": _delattr}
        if slots:
            methods |= {"__getstate__": _getstate, "__setstate__": _setstate}
    return methods


if not TYPE_CHECKING:
    field = _Field

    def dataclass(
        cls: type | None = None,
        *,
        frozen: bool = False,
        slots: bool = False,
        eq: bool = True,
        order: bool = False,
    ) -> Any:
        """Return a data class made from a class with annotations."""
        if cls is None:
            return lambda cls: dataclass(cls, frozen=frozen, slots=slots, eq=eq, order=order)
        members = dict(vars(cls))
        base = getattr(cls, "__made__", None)
        fields = dict(base.fields) if base else {}
        own = members.get("__annotations__", {})
        for name, annotation in own.items():
            default = members.pop(name, _MISSING)
            each = default if isinstance(default, _Field) else _Field(default)
            each.annotation = annotation
            fields[name] = each
            if not slots and each.default is not _MISSING:
                members[name] = each.default
        for name, method in _methods(frozen=frozen, slots=slots, eq=eq, order=order).items():
            members.setdefault(name, method)
        if slots:
            inherited = base.fields if base else {}
            members["__slots__"] = tuple(name for name in own if name not in inherited)
        for name in ("__dict__", "__weakref__"):
            members.pop(name, None)
        made = type(cls)(cls.__name__, cls.__bases__, members)
        made.__qualname__ = cls.__qualname__
        made.__match_args__ = tuple(fields)
        made.__made__ = _Made(made, fields, frozen=frozen)
        made.__dataclass_fields__ = _StandardFields()
        made.__signature__ = _Signature()
        if "__init__" not in members:
            made.__init__ = _init(made.__made__)
        return made

    def replace(instance: Any, **changes: Any) -> Any:
        """Return a copy with other values in some fields."""
        fields = instance.__made__.fields
        return type(instance)(**{name: getattr(instance, name) for name in fields} | changes)
