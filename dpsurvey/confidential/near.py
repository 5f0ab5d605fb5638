"""Unknown names, with the names that were probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence

from dpsurvey.errors import UnknownNameError


def check_known(
    names: Sequence[str], known: Collection[str], *, what: str, where: str, hint: str | None = None
) -> None:
    """Refuse names that do not exist, saying for each one which existing names come near.

    Parameters
    ----------
    names : sequence of str
        The names asked for.
    known : collection of str
        The names that exist. They are column, member or variable names, never values.
    what : str
        What a name stands for, in the singular: ``"column"``.
    where : str
        Where they were looked for: ``"DEMO_J.xpt"``.
    hint : str, optional
        How to mend it.

    Raises
    ------
    UnknownNameError
        If a name is not known.

    Examples
    --------
    >>> try:
    ...     check_known(["ridageyr"], ["SEQN", "RIDAGEYR"], what="column", where="DEMO_J.xpt")
    ... except UnknownNameError as error:
    ...     print(error.detail)
    1 column not in DEMO_J.xpt: 'ridageyr' (did you mean 'RIDAGEYR'?)
    """
    unknown = [name for name in dict.fromkeys(names) if name not in known]
    if not unknown:
        return
    described = ", ".join(_with_near_matches(name, known) for name in unknown)
    plural = what if len(unknown) == 1 else f"{what}s"
    raise UnknownNameError(
        f"{len(unknown)} {plural} not in {where}: {described}",
        expected="exact names, upper and lower case as in the file",
        hint=hint,
    )


def near_matches(name: str, known: Collection[str], limit: int = 3) -> list[str]:
    """Return up to `limit` known names that resemble `name`, those that differ by case alone first.

    Examples
    --------
    >>> near_matches("kcal", ["DR1TKCAL", "KCAL", "SEQN"])
    ['KCAL', 'DR1TKCAL']
    """
    by_folded: dict[str, list[str]] = {}
    for candidate in known:
        by_folded.setdefault(candidate.casefold(), []).append(candidate)
    close = difflib.get_close_matches(name.casefold(), by_folded, n=limit, cutoff=0.6)
    return [candidate for folded in close for candidate in by_folded[folded]][:limit]


def _with_near_matches(name: str, known: Collection[str]) -> str:
    near = near_matches(name, known)
    return f"{name!r} (did you mean {' or '.join(map(repr, near))}?)" if near else repr(name)
