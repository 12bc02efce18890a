"""The tokens of each layer: minimums first, the rest by headroom. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from perdure.memory.layer import Budget


def allocate(budgets: Sequence[Budget], total: int) -> list[int]:
    """Tokens for each, in the order given; together never more than `total`.

    First everyone's minimum, in order: a layer whose minimum no longer fits gets nothing, and those after it may still
    get theirs. The rest is shared in proportion to how much more each may have.
    """
    left = max(0, total)
    given: list[int] = []
    for budget in budgets:
        fits = budget.min <= left
        given.append(budget.min if fits else 0)
        left -= given[-1]
    is_in = [share > 0 or budget.min == 0 for share, budget in zip(given, budgets, strict=True)]
    while left > 0:
        room = [
            (left if budget.max is None else budget.max - share) if joins else 0
            for share, budget, joins in zip(given, budgets, is_in, strict=True)
        ]
        whole = sum(room)
        if whole <= 0:
            break
        if whole <= left:
            return [share + more for share, more in zip(given, room, strict=True)]
        shares = [left * more // whole for more in room]
        for place in range(len(shares)):  # tokens left over by rounding go to the first layers with room for them
            if sum(shares) < left and shares[place] < room[place]:
                shares[place] += 1
        given = [share + more for share, more in zip(given, shares, strict=True)]
        left -= sum(shares)
    return given
