"""Small faults in a program: a comparison, an operator, a constant, a slice or a statement is another.

Docstrings, annotations, decorators, messages and ``strict=`` stay as they are.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256

Swaps = dict[type[ast.AST], tuple[type[ast.AST], ...]]

COMPARISONS: Swaps = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
}

ARITHMETIC: Swaps = {
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Div,),
    ast.Div: (ast.Mult,),
    ast.FloorDiv: (ast.Mult,),
    ast.Mod: (ast.Mult,),
    ast.Pow: (ast.Mult,),
    ast.BitAnd: (ast.BitOr,),
    ast.BitOr: (ast.BitAnd,),
}


@dataclass(frozen=True)
class Mutant:
    """One fault: the ``variant``-th of the ``number``-th node of a file, in the statement of lines ``first`` to ``last``."""

    path: str
    scope: str
    before: str
    after: str
    repeat: int
    number: int
    variant: int
    lines: tuple[int, int]
    at_import: bool

    @property
    def name(self) -> str:
        """What it is, whatever else is in the file."""
        return f"{self.path} {self.scope}: {self.before} -> {self.after}" + f" ({self.repeat + 1})" * bool(self.repeat)

    def rank(self, seed: int) -> bytes:
        """Where it is in a sample: mutants that stay keep their order when others come and go."""
        return sha256(f"{seed} {self.name}".encode()).digest()


def mutants(path: str, source: str) -> Iterator[Mutant]:
    """All mutants of a file."""
    seen: dict[tuple[str, str, str], int] = {}
    for number, (node, scope, statement, at_import) in enumerate(_places(ast.parse(source))):
        for variant, new in enumerate(_variants(node)):
            before, after = _head(statement), _head(_Replace(node, new).visit(_copy(statement, node)))
            repeat = seen[scope, before, after] = seen.get((scope, before, after), -1) + 1
            lines = _lines(statement)
            yield Mutant(path, scope, before, after, repeat, number, variant, lines, at_import)


def mutated(source: str, mutant: Mutant) -> ast.Module:
    """The program with the fault."""
    tree = ast.parse(source)
    node = list(_places(tree))[mutant.number][0]
    new = _variants(node)[mutant.variant]
    return ast.fix_missing_locations(_Replace(node, new).visit(tree))


class _Replace(ast.NodeTransformer):
    def __init__(self, old: ast.AST, new: ast.AST):
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        return ast.copy_location(self.new, node) if node is self.old else self.generic_visit(node)


def _copy(tree: ast.AST, kept: ast.AST) -> ast.AST:
    """A copy of a statement in which one node is the same object; bodies are left out."""
    if tree is kept or not isinstance(tree, ast.AST):
        return tree
    fields = {
        name: [_copy(x, kept) for x in value] if isinstance(value, list) else _copy(value, kept)
        for name, value in ast.iter_fields(tree)
    }
    return ast.copy_location(type(tree)(**fields), tree)


def _head(statement: ast.AST) -> str:
    """A statement on one line, without what stands below it."""
    fields = {name: value for name, value in ast.iter_fields(statement) if name not in ("orelse", "finalbody")}
    if "body" in fields:
        fields |= {"body": [ast.Pass()], "orelse": [], "finalbody": [], "decorator_list": []}
        fields = {name: value for name, value in fields.items() if name in statement._fields}
    text = ast.unparse(ast.fix_missing_locations(type(statement)(**fields)))
    return " ".join(text.removesuffix("pass").split())


def _lines(statement: ast.AST) -> tuple[int, int]:
    """First and last line of a statement, without what stands below it."""
    body = getattr(statement, "body", None)
    last = body[0].lineno - 1 if isinstance(body, list) else statement.end_lineno
    return statement.lineno, max(statement.lineno, last)


Place = tuple[ast.AST, str, ast.AST, bool]


def _places(tree: ast.Module) -> Iterator[Place]:
    """Every node that counts, the function or class around it, its statement, and whether it runs at import."""
    for statement in tree.body:
        yield from _below(statement, "", statement, True)


def _below(node: ast.AST, scope: str, statement: ast.AST, at_import: bool) -> Iterator[Place]:
    if _is_left_out(node):
        return
    statement = node if isinstance(node, ast.stmt) else statement
    yield node, scope or "module", statement, at_import
    is_function = isinstance(node, ast.FunctionDef)
    if is_function or isinstance(node, ast.ClassDef):
        scope = f"{scope}.{node.name}".strip(".")
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "exc", "cause"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _below(child, scope, statement, at_import and not (is_function and name == "body"))


def _is_left_out(node: ast.AST) -> bool:
    """Docstrings and other texts, ``strict=``, and what type checkers alone read."""
    if isinstance(node, ast.keyword):
        return node.arg == "strict"
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    is_typing = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
    is_overload = isinstance(node, ast.FunctionDef) and "'overload'" in "".join(map(ast.dump, node.decorator_list))
    return is_typing or is_overload or isinstance(node, ast.JoinedStr | ast.Import | ast.ImportFrom)


def _variants(node: ast.AST) -> list[ast.AST]:
    """What may stand in the place of a node."""
    match node:
        case ast.Compare():
            return [
                ast.Compare(node.left, [*node.ops[:i], new(), *node.ops[i + 1 :]], node.comparators)
                for i, old in enumerate(node.ops)
                for new in COMPARISONS[type(old)]
            ]
        case ast.BinOp() if not any(map(_is_text, (node.left, node.right))):
            return [ast.BinOp(node.left, new(), node.right) for new in ARITHMETIC.get(type(node.op), ())]
        case ast.AugAssign():
            swapped = [ast.AugAssign(node.target, new(), node.value) for new in ARITHMETIC.get(type(node.op), ())]
            return [*swapped, ast.Pass()]
        case ast.BoolOp():
            return [ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)]
        case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert()):
            return [node.operand]
        case ast.Constant(value=bool()):
            return [ast.Constant(not node.value)]
        case ast.Constant(value=int() | float()):
            return [ast.Constant(node.value + 1), ast.Constant(node.value - 1)]
        case ast.Slice():
            return _bounds(node)
        case ast.If() | ast.While() | ast.IfExp():
            return [_with(node, test=test) for test in _negated(node.test)]
        case ast.comprehension():
            tests = [(i, new) for i, test in enumerate(node.ifs) for new in _negated(test)]
            return [_with(node, ifs=[*node.ifs[:i], new, *node.ifs[i + 1 :]]) for i, new in tests]
        case ast.Return(value=ast.AST()) if not _is_none(node.value):
            return [ast.Return(ast.Constant(None))]
        case ast.Raise() | ast.Expr(value=ast.Call()):
            return [ast.Pass()]
        case ast.Continue():
            return [ast.Break()]
        case ast.Break():
            return [ast.Continue()]
    return []


def _negated(test: ast.expr) -> list[ast.expr]:
    """The opposite of a condition, where no other mutant is the same."""
    has_own = isinstance(test, ast.Compare) and len(test.ops) == 1
    is_not = isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
    return [] if has_own or is_not else [ast.UnaryOp(ast.Not(), test)]


def _bounds(node: ast.Slice) -> list[ast.AST]:
    """A slice one element shorter or longer; bounds that are numbers are constants already."""
    if node.lower is None and node.upper is None:
        return []
    lower = ast.Constant(1) if node.lower is None else _one_more(node.lower)
    upper = ast.UnaryOp(ast.USub(), ast.Constant(1)) if node.upper is None else _one_more(node.upper)
    return [_with(node, lower=lower)] * (lower is not None) + [_with(node, upper=upper)] * (upper is not None)


def _one_more(bound: ast.expr) -> ast.expr | None:
    number = bound.operand if isinstance(bound, ast.UnaryOp) else bound
    return None if isinstance(number, ast.Constant) else ast.BinOp(bound, ast.Add(), ast.Constant(1))


def _with(node: ast.AST, **changed: object) -> ast.AST:
    return type(node)(**(dict(ast.iter_fields(node)) | changed))


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
