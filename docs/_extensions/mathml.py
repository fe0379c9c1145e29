"""Mathematics as MathML, written by docutils while the site is built.

MathJax, Sphinx's default, is a script fetched from another host whenever a page is read; pictures of formulas need LaTeX to build
and do not follow the colours of the page. Browsers have shown MathML by themselves since 2023.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from docutils import nodes
    from sphinx.application import Sphinx


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the renderer that ``html_math_renderer = "mathml"`` names."""
    app.add_html_math_renderer("mathml", inline_renderers=(inline, None), block_renderers=(block, None))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}


def inline(writer: Any, node: nodes.math) -> None:
    """A formula within a line."""
    from docutils.nodes import SkipNode

    writer.body.append(mathml(node, is_block=False))
    raise SkipNode


def block(writer: Any, node: nodes.math_block) -> None:
    """A formula on a line of its own."""
    from docutils.nodes import SkipNode

    writer.body.append(f'<div class="formula">{mathml(node, is_block=True)}</div>\n')
    raise SkipNode


def mathml(node: nodes.Element, *, is_block: bool) -> str:
    """The formula, or a warning with its place and nothing."""
    from docutils.utils.math import MathError, latex2mathml
    from sphinx.util import logging

    try:
        return str(latex2mathml.tex2mathml(node.astext(), as_block=is_block))
    except MathError as error:
        logging.getLogger(__name__).warning("%s in %r", error, node.astext(), location=node)
        return ""
