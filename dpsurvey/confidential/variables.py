"""One variable as its file documents it: name, label, unit, SAS format, origin."""

from __future__ import annotations

import re
from dataclasses import dataclass

ATTRIBUTE = "dpsurvey_codebook"  # key of DataFrame.attrs for the public part of a codebook, best effort only


@dataclass(frozen=True, slots=True)
class Variable:
    """A column and what its file says about it. All of it is documentation, none of it is data.

    Attributes
    ----------
    name : str
        Name in the table that was read (the new name, where it was renamed).
    column : str
        Name in the file.
    label : str
        Label in the file; empty where there is none.
    unit : str or None
        Unit read from the end of the label, as in "Energy (kcal)".
    format : str or None
        SAS format, such as "DATE9"; None where there is none.
    file : str
        Name of the file, without its folder.
    """

    name: str
    column: str
    label: str
    unit: str | None
    format: str | None
    file: str


_UNITS = """
kcal kj cal g gm gms gram grams mg mcg ug µg μg ng pg fg kg lb lbs oz oz. cup cups tsp tsp. tbsp tbsp. l
dl ml ul µl μl fl m cm mm um µm nm km in inch inches ft m2 m3 cm2 cm3 mm2 mm3 mol mmol umol µmol μmol nmol
pmol u iu miu uiu ku kiu ppb ppm hg mmhg bpm % percent sec secs second seconds s min min. mins minute
minutes hr hrs hour hours h day days d week weeks wk month months mos mo year years yr yrs re rae dfe cell
cells cfu drinks db hz mv ratio
"""
_QUALIFIERS = (
    "eq eq. no. of per at 10 1000 million creatinine lipid"  # part of a unit, and none by themselves
)
_UNIT_WORDS = frozenset(_UNITS.split())
_ALL_WORDS = _UNIT_WORDS | frozenset(_QUALIFIERS.split())
_SUFFIX = re.compile(r"(?:^|\s)[(\[]([^()\[\]]{1,30})[)\]]\s*$")


def unit_of(label: str) -> str | None:
    """Return the unit at the end of a label, or None where the brackets hold something else or are absent.

    Parameters
    ----------
    label : str

    Returns
    -------
    str or None

    Examples
    --------
    >>> unit_of("Body Mass Index (kg/m**2)")
    'kg/m**2'
    >>> unit_of("Total grains (oz. eq.)")
    'oz. eq.'
    >>> unit_of("Breast-fed infant (either day)") is None
    True
    """
    match = _SUFFIX.search(label)
    if match is None:
        return None
    unit = match.group(1).strip()
    words = {
        word for word in re.split(r"[\s/*^·]+", unit.lower()) if word and not re.fullmatch(r"-?\d", word)
    }
    return unit if words & _UNIT_WORDS and words <= _ALL_WORDS else None
