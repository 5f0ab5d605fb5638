"""How a result presents itself, as text and notebook HTML: privacy, scale and weights are always said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, NamedTuple

import pandas as pd

from dpsurvey.errors import ArgumentError

if TYPE_CHECKING:
    from dpsurvey.privacy.release import Release

SCALE = "scale: latent standard normal (correlations of normal scores), not the units of the variables"
COEFFICIENT_SCALE = (
    "scale: latent standard normal; a coefficient is the change of the outcome's normal score, in standard "
    "deviations, per standard deviation of the predictor's; standardised, so without intercept"
)
WEIGHTS = "survey weights and design are not used"
NOT_PRIVATE = "NOT PRIVATE: computed from the confidential rows, without any noise; it carries no guarantee"

_ALARM = "background:#b00020;color:#ffffff;font-weight:bold;padding:4px 8px;margin:4px 0"
_CALM = "background:#e6f2ea;color:#10351f;padding:4px 8px;margin:4px 0"
_NOTE = "color:#555555;font-size:90%"
_TABLE = "max-height:28em;overflow:auto;margin-top:6px"


class PrivacyNote(NamedTuple):
    """What a result says about its privacy, and whether it must not be missed."""

    text: str
    alarm: bool


def privacy_note(private: bool, release: Release | None) -> PrivacyNote:
    """Return one sentence on the privacy of a result.

    Parameters
    ----------
    private : bool
        Whether the result follows from a private release alone.
    release : Release or None
        That release.

    Returns
    -------
    PrivacyNote
        An alarm for a result computed from the rows, and for a release whose noise protects nobody.

    Examples
    --------
    >>> privacy_note(False, None).text
    'NOT PRIVATE: computed from the confidential rows, without any noise; it carries no guarantee'
    """
    if not private:
        return PrivacyNote(NOT_PRIVATE, alarm=True)
    if release is None:
        return PrivacyNote(
            "private, as its maker states; no release is attached, so epsilon is unknown", alarm=False
        )
    delta = f", delta = {release.delta:g}" if release.delta else ""
    noise = (
        "secure noise" if release.secure else "INSECURE NOISE (seeded: for simulations only, no guarantee)"
    )
    text = (
        f"private: epsilon = {release.epsilon:g}{delta}, n = {release.n}, {release.counted}, "
        f"{release.mechanism} noise, {noise}"
    )
    return PrivacyNote(text, alarm=not release.secure)


def joint_privacy(names: Sequence[str], notes: Sequence[PrivacyNote]) -> PrivacyNote:
    """Return the privacy of several results shown together: that of the least private of them.

    Parameters
    ----------
    names : sequence of str
    notes : sequence of PrivacyNote
        One per name.

    Examples
    --------
    >>> joint_privacy(["ERL", "MLE-NN"], [privacy_note(False, None), privacy_note(True, None)]).text
    'NOT PRIVATE: ERL saw the confidential rows'
    """
    open_results = [name for name, note in zip(names, notes, strict=True) if note.text == NOT_PRIVATE]
    if open_results:
        text = f"NOT PRIVATE: {', '.join(open_results)} saw the confidential rows"
        return PrivacyNote(text, alarm=True)
    insecure = [name for name, note in zip(names, notes, strict=True) if note.alarm]
    if insecure:
        text = f"INSECURE NOISE (seeded: for simulations only, no guarantee): {', '.join(insecure)}"
        return PrivacyNote(text, alarm=True)
    return PrivacyNote("private: follows from private releases alone", alarm=False)


def result_name(method: str, release: Release | None) -> str:
    """Return what to call a result in tables and figures: its method, and epsilon where it has one.

    Examples
    --------
    >>> result_name("ERL", None)
    'ERL'
    """
    return method if release is None else f"{method} (ε = {release.epsilon:g})"


def distinct_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names, numbered from the second on where they repeat.

    Examples
    --------
    >>> distinct_names(["ERL", "MLE-NN", "ERL"])
    ('ERL', 'MLE-NN', 'ERL #2')
    """
    seen = [names[: place + 1].count(name) for place, name in enumerate(names)]
    return tuple(name if n == 1 else f"{name} #{n}" for name, n in zip(names, seen, strict=True))


def checked_names(names: Sequence[str], count: int) -> tuple[str, ...]:
    """Return a user's names for results if there is one different text for each.

    Raises
    ------
    ArgumentError
        If there is not.

    Examples
    --------
    >>> checked_names(["private", "truth"], 2)
    ('private', 'truth')
    """
    given = (names,) if isinstance(names, str) else tuple(names)
    if len(given) != count or len(set(given)) != count or not all(isinstance(name, str) for name in given):
        raise ArgumentError(
            "names do not fit the results",
            expected=f"{count} different texts",
            got=", ".join(map(repr, given)),
        )
    return given


def text_card(title: str, privacy: PrivacyNote, lines: Sequence[str]) -> str:
    """Return a result's repr: a title, its privacy (framed when it must not be missed), and notes.

    Parameters
    ----------
    title : str
    privacy : PrivacyNote
    lines : sequence of str
        Further lines, without indentation.

    Returns
    -------
    str

    Examples
    --------
    >>> print(text_card("Title", PrivacyNote("private: epsilon = 1", alarm=False), ["a note"]))
    Title
      private: epsilon = 1
      a note
    """
    head = f"!!! {privacy.text} !!!" if privacy.alarm else privacy.text
    return "\n".join([title, *(f"  {line}" for line in [head, *lines])])


def html_card(title: str, privacy: PrivacyNote, lines: Sequence[str], table: pd.DataFrame) -> str:
    """Return a result's notebook view: the same as :func:`text_card`, above a table. All text is escaped.

    Parameters
    ----------
    title : str
    privacy : PrivacyNote
        Shown in white on red when it is an alarm.
    lines : sequence of str
    table : pandas.DataFrame
        Shown without its index, numbers to three decimals.

    Returns
    -------
    str
    """
    notes = "<br>".join(escape(line) for line in lines)
    rows = table.to_html(index=False, border=0, float_format=lambda value: f"{value:.3f}")
    return (
        f"<div><strong>{escape(title)}</strong>"
        f'<div style="{_ALARM if privacy.alarm else _CALM}">{escape(privacy.text)}</div>'
        f'<div style="{_NOTE}">{notes}</div>'
        f'<div style="{_TABLE}">{rows}</div></div>'
    )


def names_line(variables: Sequence[str], labels: Mapping[str, str]) -> str:
    """Return the variables in one line, each with its label where it has one.

    Examples
    --------
    >>> names_line(["Kcal", "Veg"], {"Kcal": "Energy (kcal)"})
    'variables: Kcal (Energy (kcal)), Veg'
    """
    named = (f"{name} ({labels[name]})" if labels.get(name, name) != name else name for name in variables)
    return "variables: " + ", ".join(named)


def count_text(number: int, noun: str) -> str:
    """Return a number with its noun.

    Examples
    --------
    >>> count_text(1, "chain"), count_text(2, "chain")
    ('1 chain', '2 chains')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def size_text(p: int) -> str:
    """Return how many variables and correlations a result has.

    Examples
    --------
    >>> size_text(3)
    '3 variables, 3 correlations'
    """
    return f"{count_text(p, 'variable')}, {count_text(p * (p - 1) // 2, 'correlation')}"
