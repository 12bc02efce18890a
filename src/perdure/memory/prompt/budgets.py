"""Share tokens between layers: minimums first, the rest by headroom. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from perdure.memory.layer import Budget


def allocate(budgets: Sequence[Budget], total: int) -> list[int]:
    """The tokens of each layer, in the order given; their sum is at most `total`.

    First each layer gets its minimum, in order. A layer whose minimum no longer fits gets nothing; a later, smaller one
    still can. The rest is shared in proportion to the headroom of each.
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
