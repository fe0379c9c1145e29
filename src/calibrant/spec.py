"""From text to settings: the ``repr`` of every configuration is its file format.

Text is parsed, never evaluated: calls of known names with literal arguments, nothing else.
"""

import ast
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import Parameter, signature
from types import MappingProxyType
from typing import Any

from calibrant._spellings import Settings
from calibrant._validate import InputError, did_you_mean

CONSTANTS = {"inf": math.inf, "nan": math.nan}


Names = Mapping[str, Callable[..., Any]]


def parse(
    text: str,
    names: Names,
    *,
    word: Callable[[str], Any] | None = None,
    inside: Mapping[str, Names] = MappingProxyType({}),
) -> Any:
    """The value that ``text`` describes, made from the callables in ``names``.

    ``word`` says what a bare word inside means (a column of a file, say); without it bare words are refused. ``inside``
    has further names for the arguments of some calls, where they come before those of the same spelling.

    >>> parse("complex(real=1, imag=-2.5)", {"complex": complex})
    (1-2.5j)
    >>> parse("__import__('os')", {"complex": complex})
    Traceback (most recent call last):
    ...
    calibrant._validate.InputError: "__import__('os')": there is no '__import__'; known: complex
    """
    try:
        tree = ast.parse(text.strip(), mode="eval")
        return _Reader(text, names, word, inside).value(tree.body)
    except SyntaxError as error:
        raise InputError(f"{text!r} cannot be read: {error.msg} at character {error.offset}") from error
    except UnicodeEncodeError as error:
        raise InputError(f"{text!a} cannot be read: it holds half a character") from error
    except (RecursionError, MemoryError) as error:  # of the parser; settings take little memory
        raise InputError(f"{text[:60]!r}… cannot be read: it is nested too deeply") from error


@dataclass(frozen=True)
class _Reader:
    text: str
    names: Names
    word: Callable[[str], Any] | None
    inside: Mapping[str, Names]

    def value(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=int() | float() | str() | None as value):
                return value
            case ast.Name(id=name) if name in CONSTANTS:
                return CONSTANTS[name]
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
                return -value
            case ast.UnaryOp(op=ast.USub(), operand=ast.Name(id="inf")):
                return -math.inf
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                return tuple(self.value(part) for part in parts)
            case ast.Call(func=function, args=args, keywords=keywords) if all(k.arg for k in keywords):
                return self.call(ast.unparse(function), args, keywords)
            case ast.Name(id=name) if name in self.names:
                return self.call(name, [], [])  # brackets with nothing in them may be left out
            case ast.Name(id=name) if self.word is not None:
                return self.word(name)
            case ast.Name(id=name):
                return self.call(name, [], [])  # refused
        raise InputError(f"{self.text!r}: {ast.unparse(node)!r} is not a known name, number, text or list")

    def call(self, name: str, args: list[ast.expr], keywords: list[ast.keyword]) -> Any:
        if name not in self.names:
            raise InputError(f"{self.text!r}: there is no {name!r}{did_you_mean(name, sorted(self.names))}")
        reader = replace(self, names={**self.names, **self.inside[name]}) if name in self.inside else self
        positional = [reader.value(arg) for arg in args]
        options = {str(k.arg): reader.value(k.value) for k in keywords}
        try:
            return self.names[name](*positional, **options)
        except TypeError as error:
            raise InputError(
                f"{self.text!r}: {_misfit(name, self.names[name], positional, options) or error}"
            ) from error


def _misfit(name: str, function: Callable[..., Any], args: Sequence[object], options: Mapping[str, object]) -> str:
    """What is wrong with the number of arguments or their names, in words; nothing where settings say it themselves."""
    parameters = {p.name: p for p in signature(function).parameters.values() if p.kind is not p.KEYWORD_ONLY}
    is_open = any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters.values())
    if is_open or (
        isinstance(function, type) and issubclass(function, Settings) and not options.keys() <= parameters.keys()
    ):
        return ""
    return misfit(name, parameters, args, options)


def misfit(
    name: str,
    parameters: Mapping[str, Parameter],
    args: Sequence[object],
    options: Mapping[str, object],
    given: Collection[str] = (),
) -> str:
    """What is wrong with the number of arguments or their names, in words; parameters that are ``given`` may be missing.

    >>> misfit("complex", signature(lambda real, imag: None).parameters, [1], {})
    'complex takes real, imag: imag is missing'
    """
    takes = f"{name} takes {', '.join(parameters) or 'nothing'}"
    unknown = [option for option in options if option not in parameters]
    known = list(parameters)[len(args) :]
    missing = [p for p in known if p not in (*options, *given) and parameters[p].default is Parameter.empty]
    if unknown:
        return f"{takes}, and no {unknown[0]}"
    if len(args) > len(parameters):
        return f"{takes}: {len(args)} values are too many"
    return f"{takes}: {missing[0]} is missing" if missing else ""
