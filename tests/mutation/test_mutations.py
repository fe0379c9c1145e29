"""Mutants are what they are called, and leave texts and annotations alone."""

import ast

import pytest

from tests.mutation.mutations import mutants, mutated

MODULE = '''
"""Words: 1 < 2."""

LIMIT: int | None = 10


@cache(maxsize=3)
def f(x: int | None, most: int = 2, *, bold: bool = True) -> int | None:
    """Words: 3 + 4."""
    if x < most:
        raise ValueError(f"{x} < {most + 5}", 6)
    for a, b in zip(x[1:], x[:most], strict=True):
        a += b
    g(a)
    return a * b
'''


def changes(source):
    return [f"{m.scope}: {m.before} -> {m.after}" for m in mutants("a.py", source)]


def test_every_kind_is_found():
    assert changes(MODULE) == [
        "module: LIMIT: int | None = 10 -> LIMIT: int | None = 11",
        "module: LIMIT: int | None = 10 -> LIMIT: int | None = 9",
        *(
            f"f: def f(x: int | None, most: int=2, *, bold: bool=True) -> int | None: -> {new}"
            for new in (
                "def f(x: int | None, most: int=2, *, bold: bool=False) -> int | None:",
                "def f(x: int | None, most: int=3, *, bold: bool=True) -> int | None:",
                "def f(x: int | None, most: int=1, *, bold: bool=True) -> int | None:",
            )
        ),
        "f: if x < most: -> if x <= most:",
        "f: if x < most: -> if x >= most:",
        "f: raise ValueError(f'{x} < {most + 5}', 6) -> ",
        *(
            f"f: for a, b in zip(x[1:], x[:most], strict=True): -> for a, b in zip({new}, strict=True):"
            for new in (
                "x[1:-1], x[:most]",
                "x[2:], x[:most]",
                "x[0:], x[:most]",
                "x[1:], x[1:most]",
                "x[1:], x[:most + 1]",
            )
        ),
        "f: a += b -> a -= b",
        "f: a += b -> ",
        "f: g(a) -> ",
        "f: return a * b -> return None",
        "f: return a * b -> return a / b",
    ]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("x = a and b", {"x = a or b"}),
        ("x = not a", {"x = a"}),
        ("x = -a", {"x = a"}),
        ("x = 0.5", {"x = 1.5", "x = -0.5"}),
        ("x = y if a else b", {"x = y if not a else b"}),
        ("x = y if not a else b", {"x = y if a else b"}),
        ("x = [y for y in z if y]", {"x = [y for y in z if not y]"}),
        ("x = 'a' + b", set()),
        ("x = a is None", {"x = a is not None"}),
        ("x = a[i:]", {"x = a[i + 1:]", "x = a[i:-1]"}),
        ("x = a[:, None]", set()),
        ("if TYPE_CHECKING:\n    x = 1", set()),
    ],
)
def test_single_lines(line, expected):
    assert {m.after for m in mutants("a.py", line)} == expected


def test_a_program_has_the_fault_that_its_name_tells():
    for mutant in mutants("a.py", MODULE):
        lines = {" ".join(ast.unparse(mutated(MODULE, mutant)).split())}
        assert all(mutant.after in line for line in lines), mutant.name


def test_lines_are_those_of_the_statement():
    found = {m.before: m.lines for m in mutants("a.py", MODULE)}
    assert found["if x < most:"] == (10, 10)
    assert found["g(a)"] == (14, 14)


def test_a_sample_stays_when_code_is_added():
    before = sorted(mutants("a.py", MODULE), key=lambda m: m.rank(1))
    after = sorted(mutants("a.py", "y = 3\n" + MODULE), key=lambda m: m.rank(1))
    assert [m.name for m in after if "y = 3" not in m.before] == [m.name for m in before]
