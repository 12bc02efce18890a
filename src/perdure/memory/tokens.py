"""How many tokens a text is, without asking the model's own tokenizer.

The default needs no dependency, and for English, code and JSON rather counts too much than too little. It is no
tokenizer: give your model's own as `count=` to `app.memory` where a budget has to be kept to the token.
"""

from __future__ import annotations

import re
from collections.abc import Callable

Counter = Callable[[str], int]

# Words, runs of digits, runs of white space, and every other character by itself.
_PIECES = re.compile(r"[A-Za-z]+|[0-9]+|\s+|[^A-Za-z0-9\s]")
_LETTERS_PER_TOKEN = 4
_DIGITS_PER_TOKEN = 2


def estimate(text: str) -> int:
    """About how many tokens this is.

    Letters go four to a token, digits two, a character outside ASCII by its bytes, a sign by itself; a space
    before a word costs nothing, as tokenizers put it into the word.
    """
    total = 0
    for piece in _PIECES.findall(text):
        first = piece[0]
        if first.isspace():
            total += 0 if piece == " " else (len(piece) + 1) // 2
        elif first.isascii() and first.isalpha():
            total += -(-len(piece) // _LETTERS_PER_TOKEN)
        elif first.isascii() and first.isdigit():
            total += -(-len(piece) // _DIGITS_PER_TOKEN)
        elif first.isascii():
            total += 1
        else:
            total += max(1, len(first.encode("utf-8", "replace")) - 1)
    return total


def cut(text: str, budget: int, count: Counter = estimate) -> str | None:
    """The text, shortened at its end to the budget; None when not even a line of it fits.

    A tag around the whole text is closed again, so that what follows is not swallowed by it.
    """
    if count(text) <= budget:
        return text
    tag = re.match(r"\s*<([A-Za-z_][\w.-]*)[^<>]*>", text)
    closing = f"</{tag[1]}>" if tag and text.rstrip().endswith(f"</{tag[1]}>") else ""
    body = text.rstrip().removesuffix(closing)
    ending = "\n[cut to fit]" + (f"\n{closing}" if closing else "")
    low, high = 0, len(body)
    while low < high:
        middle = (low + high + 1) // 2
        if count(body[:middle].rstrip() + ending) <= budget:
            low = middle
        else:
            high = middle - 1
    short = body[:low].rstrip()
    opening = len(tag[0]) if tag else 0
    whole_lines = short.rpartition("\n")[0].rstrip()
    if len(whole_lines) > opening:  # a line less reads better than half a line
        short = whole_lines
    found = short + ending
    return found if len(short) > opening and count(found) <= budget else None
