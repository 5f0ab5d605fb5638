"""The declared rule that says which rows are in the subpopulation: ``where="RIDAGEYR >= 20"``."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsurvey.errors import ArgumentError, ArgumentTypeError

_BACKTICKS = re.compile(r"`([^`]+)`")
_METHODS = frozenset({"isna", "notna", "isin", "between"})
_ALLOWED = (
    ast.Expression,
    ast.BoolOp,
    ast.And,
    ast.Or,
    ast.UnaryOp,
    ast.Not,
    ast.Invert,
    ast.USub,
    ast.UAdd,
    ast.BinOp,
    ast.Add,
    ast.Sub,
    ast.Mult,
    ast.Div,
    ast.FloorDiv,
    ast.Mod,
    ast.Pow,
    ast.BitAnd,
    ast.BitOr,
    ast.Compare,
    ast.Eq,
    ast.NotEq,
    ast.Lt,
    ast.LtE,
    ast.Gt,
    ast.GtE,
    ast.In,
    ast.NotIn,
    ast.Name,
    ast.Load,
    ast.Constant,
    ast.List,
    ast.Tuple,
    ast.Call,
    ast.Attribute,
)
_EXPECTED = "comparisons of columns with constants or with each other, joined by and, or, not"


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule that looks at one row at a time.

    The guarantee of a release is about substituting one record. A rule that looked across rows
    (``"BMXBMI > BMXBMI.mean()"``) would let one record decide whether others are in, so such rules are
    refused.

    Attributes
    ----------
    text : str
        The rule as it was declared; it is recorded in the codebook and in releases.
    columns : tuple of str
        The columns it looks at.
    """

    text: str
    columns: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> Rule:
        """Read a rule in the syntax of :meth:`pandas.DataFrame.query`.

        Parameters
        ----------
        text : str
            Comparisons, arithmetic, ``and``/``or``/``not``, ``in [..]``, and the methods isna, notna, isin
            and between. Names that are no Python names stand in backticks.

        Raises
        ------
        ArgumentError
            If it cannot be parsed, names no column, or could look across rows.
        ArgumentTypeError
            If it is not text.

        Examples
        --------
        >>> Rule.parse("RIDAGEYR >= 20 and DR1DRSTZ == 1").columns
        ('RIDAGEYR', 'DR1DRSTZ')
        """
        if not isinstance(text, str):
            raise ArgumentTypeError("where must be a rule in text", expected="str", got=type(text).__name__)
        quoted: dict[str, str] = {}

        def stand_in(match: re.Match[str]) -> str:
            quoted[f"_quoted_{len(quoted)}_"] = match.group(1)
            return f"_quoted_{len(quoted) - 1}_"

        try:
            tree = ast.parse(_BACKTICKS.sub(stand_in, text).strip(), mode="eval")
        except (SyntaxError, ValueError):
            tree = None
        if tree is None:
            raise ArgumentError(
                "the rule in where cannot be parsed",
                expected=_EXPECTED,
                got=repr(text),
                hint='where="RIDAGEYR >= 20"',
            )
        problem = next((found for node in ast.walk(tree) if (found := _problem(node)) is not None), None)
        if problem is not None:
            raise ArgumentError(
                f"the rule in where uses {problem}",
                expected=f"{_EXPECTED}: a rule about one row",
                got=repr(text),
            )
        names = [node.id for node in ast.walk(tree) if isinstance(node, ast.Name)]
        columns = tuple(dict.fromkeys(quoted.get(name, name) for name in names))
        if not columns:
            raise ArgumentError("the rule in where names no column", expected=_EXPECTED, got=repr(text))
        return cls(text.strip(), columns)

    def keeps(self, frame: pd.DataFrame) -> NDArray[np.bool_]:
        """Return which rows the rule keeps; a comparison with a missing value is false (`!=` is true).

        Parameters
        ----------
        frame : pandas.DataFrame
            With the columns that the rule looks at.

        Returns
        -------
        ndarray of bool, shape (n,)

        Raises
        ------
        ArgumentError
            If it cannot be applied to columns of these types, or gives no yes or no. No value is shown.
        """
        try:
            answer = frame[list(self.columns)].eval(
                self.text, engine="python", parser="pandas", local_dict={}, global_dict={}
            )
        except Exception as error:  # its message may quote cells: only its kind is kept
            answer, failure = None, type(error).__name__
        else:
            failure = "it gives no yes or no"
        if isinstance(answer, pd.Series) and pd.api.types.is_bool_dtype(answer.dtype):
            return answer.fillna(False).to_numpy(dtype=bool)
        raise ArgumentError(
            f"the rule in where cannot be applied to the columns ({failure})",
            expected=_EXPECTED,
            got=f"{self.text!r} on {', '.join(f'{name} ({frame[name].dtype})' for name in self.columns)}",
            hint="compare numbers with numbers and text with text",
        )


def _problem(node: ast.AST) -> str | None:
    """Return what is wrong with one piece of a rule, or None."""
    if not isinstance(node, _ALLOWED):
        return f"{type(node).__name__.lower()}, which a rule cannot hold"
    if isinstance(node, ast.Constant) and not isinstance(node.value, int | float | str):
        return "a constant that is no number and no text (for missing cells: NAME.isna())"
    if isinstance(node, ast.Call):
        method = node.func
        if not isinstance(method, ast.Attribute) or method.attr not in _METHODS or node.keywords:
            return f"a function that may look across rows (allowed: {', '.join(sorted(_METHODS))})"
        if not all(_is_constant(argument) for argument in node.args):
            return "a method with an argument that is no constant"
    if isinstance(node, ast.Attribute) and not (node.attr in _METHODS and isinstance(node.value, ast.Name)):
        return "an attribute that may look across rows"
    if isinstance(node, ast.Compare) and any(isinstance(op, ast.In | ast.NotIn) for op in node.ops):
        wrong = [
            right for op, right in zip(node.ops, node.comparators, strict=True) if not _listed(op, right)
        ]
        return "in without a list of constants, which may look across rows" if wrong else None
    if isinstance(node, ast.List | ast.Tuple) and not _is_constant(node):
        return "a list that holds something other than constants"
    return None


def _listed(op: ast.cmpop, right: ast.expr) -> bool:
    return not isinstance(op, ast.In | ast.NotIn) or (
        isinstance(right, ast.List | ast.Tuple) and _is_constant(right)
    )


def _is_constant(node: ast.expr) -> bool:
    if isinstance(node, ast.List | ast.Tuple):
        return all(_is_constant(element) for element in node.elts)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        node = node.operand
    return isinstance(node, ast.Constant)
