"""Names that users gave, made safe to read: nothing invisible, nothing endless."""

import re

from calibrant.results import Result

TURNS = [*range(0x202A, 0x202F), *range(0x2066, 0x206A)]
"""Characters that turn the direction of the text around them."""

CONTROLS = {
    **{code: 0x2400 + code for code in range(0x20) if chr(code) not in "\t\n"},  # as pictures: NUL is ␀
    0x7F: 0x2421,
    **dict.fromkeys([*range(0x80, 0xA0), *range(0xD800, 0xE000), *TURNS], 0xFFFD),
}
"""Characters that cannot be seen, and what is shown instead."""

UNSAFE = {code: f"\\u{code:04x}" for code in [*map(ord, "<>&"), 0x2028, 0x2029, *TURNS]}
"""Characters that end a script element or a line of one, or deceive who reads it, as JSON may write them too."""


def visible(text: str) -> str:
    r"""Text in which every character can be seen: control characters as pictures, turns of direction as �.

    >>> visible("a\x00b \u202egnp.exe")
    'a␀b �gnp.exe'
    """
    return text.translate(CONTROLS)


def shortened(text: str, most: int) -> str:
    """Text of which at most so many characters are shown; those left out of its middle are counted.

    >>> shortened("x" * 10_000, 12)
    'xxxxxxxx … 9,988 more … xxxx'
    """
    if len(text) <= most:
        return text
    head = 2 * most // 3
    return f"{text[:head]} … {len(text) - most:,} more … {text[len(text) - most + head :]}"


def unbroken(text: str) -> str:
    """Text whose numbers stay on one line with what belongs to them: ``4 %``, ``p = 0.02``, ``n = 100``.

    >>> unbroken("4 % (p = 0.02)").replace("\u00a0", "_")
    '4_% (p_=_0.02)'
    """
    return re.sub(r"(?<=\d) (?=%)|(?<=\b[pn]) (?== )|(?<=\b[pn] =) ", "\u00a0", text)


def json_for_script(result: Result) -> str:
    """The data as JSON that cannot end the script element it stands in; lone surrogates as JSON escapes."""
    text = result.to_json(indent=None).translate(UNSAFE)
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
