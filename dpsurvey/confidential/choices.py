"""What the caller of `read_survey` chose, checked before any row is read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from dpsurvey.confidential.near import check_known
from dpsurvey.confidential.rule import Rule
from dpsurvey.confidential.source import Source
from dpsurvey.confidential.table import asked_names
from dpsurvey.errors import ArgumentError, ArgumentTypeError

Columns: TypeAlias = Sequence[str] | Mapping[str, str] | None
MissingCodes: TypeAlias = Mapping[str, Iterable[float | str]] | None

_HINT = "dpsurvey.codebook(path) lists the columns of a file"


@dataclass(frozen=True, slots=True)
class Choices:
    """The id, columns, codes, rule and rounding of one call.

    Attributes
    ----------
    on : str or None
    renames : dict or None
        Column of the file -> name in the table, for the columns to keep, in order; None keeps all.
    codes : dict
        Column of the file -> codes that are missing.
    rule : Rule or None
    round_to : int or None
    """

    on: str | None
    renames: dict[str, str] | None
    codes: dict[str, tuple[float | str, ...]]
    rule: Rule | None
    round_to: int | None

    @classmethod
    def parse(
        cls,
        on: str | None,
        columns: Columns,
        missing_codes: MissingCodes,
        where: str | None,
        round_to: int | None,
    ) -> Choices:
        """Check the arguments as far as that can be done without the files.

        Raises
        ------
        ArgumentError, ArgumentTypeError
        """
        if on is not None and not isinstance(on, str):
            raise ArgumentTypeError("on must be a name", expected="str", got=type(on).__name__)
        _check_rounding(round_to)
        rule = None if where is None else Rule.parse(where)
        renames = _renames(columns)
        if renames is not None and set(renames) <= {on}:
            raise ArgumentError(
                f"columns has nothing but the id {on!r}", expected="a column that was measured"
            )
        if rule is not None and on in rule.columns:
            raise ArgumentError(
                f"the rule in where uses the id {on!r}",
                expected="a rule about what was measured",
                hint="a rule is published with releases; ids are not to be",
            )
        codes = _codes(missing_codes)
        if on in codes:
            raise ArgumentError(f"missing_codes has the id {on!r}", expected="columns that were measured")
        return cls(on, renames, codes, rule, None if round_to is None else int(round_to))

    def check_names(self, sources: list[Source]) -> None:
        """Refuse names that the files do not have, and several files without an id.

        Raises
        ------
        ArgumentError
            If files are to be merged and no id was named.
        UnknownNameError
            With near matches.
        """
        if self.on is None and len(sources) > 1:
            shared = [name for name in sources[0].names if all(name in source.names for source in sources)]
            raise ArgumentError(
                "several files are merged on an id, and none was named",
                expected='on="SEQN" or the like',
                hint=f"columns in all of the files: {', '.join(map(repr, shared[:5]))}" if shared else None,
            )
        if self.on is not None:
            for source in sources:
                check_known([self.on], source.names, what="column", where=source.path.name, hint=_HINT)
        known = {name for source in sources for name in source.names}
        where = sources[0].path.name if len(sources) == 1 else "any of the files"
        looked_at = () if self.rule is None else self.rule.columns
        check_known(
            [*(self.renames or ()), *self.codes, *looked_at], known, what="column", where=where, hint=_HINT
        )

    def kept(self, sources: list[Source]) -> list[str]:
        """Return the columns to keep, without the id, in table order and by their names in the files."""
        names = (
            [name for source in sources for name in source.names] if self.renames is None else self.renames
        )
        return [name for name in dict.fromkeys(names) if name != self.on]

    def read(self, sources: list[Source]) -> list[str]:
        """Return the columns to read beside the id: those to keep, and those the rule looks at."""
        return list(dict.fromkeys([*self.kept(sources), *(self.rule.columns if self.rule else ())]))

    def new_name(self, column: str) -> str:
        """Return the name in the table of a column of the files."""
        return column if self.renames is None else self.renames.get(column, column)


def _renames(columns: Columns) -> dict[str, str] | None:
    """Return column -> new name for the columns to keep, in order; None keeps all."""
    if columns is None:
        return None
    pairs = (
        list(columns.items())
        if isinstance(columns, Mapping)
        else [(name, name) for name in asked_names(columns)]
    )
    if not pairs:
        raise ArgumentError(
            "columns is empty", expected="one column or more", hint="leave it out to keep all"
        )
    if not all(isinstance(name, str) and name for pair in pairs for name in pair):
        raise ArgumentTypeError("columns must hold names", expected="text that is not empty")
    for names, kind in (([old for old, _ in pairs], "column"), ([new for _, new in pairs], "new name")):
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise ArgumentError(
                f"columns has a {kind} more than once: {', '.join(map(repr, repeated))}",
                expected="unique names",
            )
    return dict(pairs)


def _codes(missing_codes: MissingCodes) -> dict[str, tuple[float | str, ...]]:
    """Return the missing codes, checked."""
    if missing_codes is None:
        return {}
    if not isinstance(missing_codes, Mapping):
        raise ArgumentTypeError(
            "missing_codes must say for each column which codes are missing",
            expected="dict such as {'DIQ010': [7, 9]}",
            got=type(missing_codes).__name__,
            hint="there is no global list: 77 is a code in one column and an age in another",
        )
    codes = {}
    for name, listed in missing_codes.items():
        if isinstance(listed, str) or not isinstance(listed, Iterable):
            raise ArgumentTypeError(f"the codes of {name!r} must be listed", expected="[7, 9]")
        codes[name] = tuple(listed)
        if not all(
            isinstance(code, int | float | str) and not isinstance(code, bool) for code in codes[name]
        ):
            raise ArgumentTypeError(f"a code of {name!r} is no number and no text", expected="[7, 9]")
    return codes


def _check_rounding(round_to: int | None) -> None:
    if round_to is None:
        return
    if isinstance(round_to, bool) or not isinstance(round_to, int | np.integer):
        raise ArgumentTypeError(
            "round_to must be a number of decimals", expected="int", got=type(round_to).__name__
        )
    if not 0 <= round_to <= 15:
        raise ArgumentError("round_to is out of range", expected="0 to 15 decimals", got=str(round_to))
