"""The directive ``public-names``: a table of names, and what each of them is.

It reads the table of public names, so that a new one is in the reference without anybody writing it down::

    .. public-names:: calibrant.kernels      every public name of the package
    .. public-names:: calibrant.estimators   those whose file lies in this folder, or is this file
       :home: binned

A name that ``calibrant`` itself has stands there as ``calibrant.ECE``.
"""

from __future__ import annotations

import inspect
import pkgutil
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

from docutils.statemachine import StringList
from sphinx.pycode import ModuleAnalyzer
from sphinx.util.docutils import SphinxDirective

from calibrant._names import homes

if TYPE_CHECKING:
    from docutils import nodes
    from sphinx.application import Sphinx


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("public-names", PublicNames)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}


class PublicNames(SphinxDirective):
    """A table of names and their entries, in the order of the alphabet."""

    required_arguments = 1
    has_content = True
    option_spec: ClassVar[dict[str, Any]] = {"home": str.split, "members": str.split}

    def run(self) -> list[nodes.Node]:
        """The directives of Sphinx for each name, parsed."""
        names = sorted(self._names(self.arguments[0]), key=lambda name: name.rpartition(".")[2].lower())
        listed = [f"   ~{name}" for name in names if not is_constant(resolve(name))]
        lines = [".. autosummary::", "   :nosignatures:", "", *listed, ""]
        for name in names:
            lines += words_of_constant(name) if is_constant(resolve(name)) else self._entry(name)
        return self.parse_text_to_nodes(StringList(lines, source=self.env.docname))

    def _names(self, module: str) -> list[str]:
        package = module.removeprefix("calibrant.")
        everyday, wanted = homes(""), self.options.get("home")
        found = {
            name: home
            for name, home in homes(package).items()
            if wanted is None or home.removeprefix(f"{module}.").startswith(tuple(wanted))
        }
        return [
            f"calibrant.{name}" if everyday.get(name) == home else f"{module}.{name}" for name, home in found.items()
        ]

    def _entry(self, name: str) -> list[str]:
        value = resolve(name)
        kind = "autoclass" if inspect.isclass(value) else "autofunction"
        members = self.options.get("members", []) if inspect.isclass(value) else []
        shown = [member for member in members if member in vars(value) and inspect.getdoc(getattr(value, member))]
        return [f".. {kind}:: {name}", *([f"   :members: {', '.join(shown)}"] if shown else []), ""]


def resolve(name: str) -> Any:
    """The object of a dotted name."""
    module, _, last = name.rpartition(".")
    return getattr(import_module(module), last)


def is_constant(value: Any) -> bool:
    """Whether it is neither a class nor a function."""
    return not (inspect.isclass(value) or inspect.isroutine(value))


def words_of_constant(name: str) -> list[str]:
    """What stands below a constant where it was written: Sphinx looks only where it was imported from."""
    package, _, last = name.rpartition(".")
    places = pkgutil.walk_packages(import_module(package).__path__, f"{package}.")
    documented = (ModuleAnalyzer.for_module(place.name).find_attr_docs().get(("", last)) for place in places)
    words = next((lines for lines in documented if lines), [])
    return [f".. py:data:: {name}", "", *(f"   {line}" for line in words), ""]
