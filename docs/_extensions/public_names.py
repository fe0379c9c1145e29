"""The directive ``public-names``: a table of names, and what each of them is.

It asks the package itself, so that a new public name is in the reference without anybody writing it down::

    .. public-names:: calibrant              every name of ``calibrant.__all__`` that lives in
       :home: estimators                     ``calibrant.estimators``

    .. public-names:: calibrant              every name of ``calibrant.__all__`` that lives in none of these
       :except: estimators inference

    .. public-names:: calibrant.kernels      every name of ``__all__``

    .. public-names:: calibrant.recalibration
       :derived: calibrant.recalibration.base.Recalibrator    every class of that kind in the package

    .. public-names:: calibrant.lab          those named in the content

       fits.fit_world
"""

from __future__ import annotations

import inspect
import pkgutil
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

from docutils.statemachine import StringList
from sphinx.pycode import ModuleAnalyzer
from sphinx.util.docutils import SphinxDirective

if TYPE_CHECKING:
    from types import ModuleType

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
    option_spec: ClassVar[dict[str, Any]] = {
        "home": str.split,
        "except": str.split,
        "derived": str.split,
        "members": str.split,
    }

    def run(self) -> list[nodes.Node]:
        """The directives of Sphinx for each name, parsed."""
        package = import_module(self.arguments[0])
        names = sorted(self._names(package), key=lambda name: name.rpartition(".")[2].lower())
        listed = [f"   ~{name}" for name in names if not is_constant(resolve(name))]
        lines = [".. autosummary::", "   :nosignatures:", "", *listed, ""]
        for name in names:
            lines += words_of_constant(name) if is_constant(resolve(name)) else self._entry(name)
        return self.parse_text_to_nodes(StringList(lines, source=self.env.docname))

    def _names(self, package: ModuleType) -> list[str]:
        if self.content:
            return [f"{package.__name__}.{line.strip()}" for line in self.content if line.strip()]
        if "derived" in self.options:
            return derived(package, tuple(resolve(name) for name in self.options["derived"]))
        names = package.__all__
        if "home" in self.options:
            names = [name for name in names if lives_in(package, name, self.options["home"])]
        if "except" in self.options:
            names = [name for name in names if not lives_in(package, name, self.options["except"])]
        return [f"{package.__name__}.{name}" for name in names]

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


def lives_in(package: ModuleType, name: str, homes: list[str]) -> bool:
    """Whether the name was written in one of these modules of the package, or below."""
    home = getattr(package, name).__module__.removeprefix(f"{package.__name__}.")
    return any(home == wanted or home.startswith(f"{wanted}.") for wanted in homes)


def derived(package: ModuleType, bases: tuple[type, ...]) -> list[str]:
    """Concrete classes of these kinds in the modules of the package, but for those that calibrant itself has."""
    top = import_module("calibrant")
    found = []
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        for name, value in vars(import_module(module.name)).items():
            is_public = not name.startswith("_") and getattr(top, name, None) is not value
            if is_public and inspect.isclass(value) and value.__module__ == module.name and issubclass(value, bases):
                found += [] if inspect.isabstract(value) else [f"{module.name}.{name}"]
    return found
