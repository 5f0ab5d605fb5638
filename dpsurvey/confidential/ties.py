"""Fixed random keys that break ties, set before the data are seen (paper, section 3).

A key depends on the key seed, the variable's name and the row's id alone, so substituting one row leaves the
keys of all other rows where they are; that is what makes the sensitivity of a quadrant count 1.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsurvey.errors import ArgumentError, ArgumentTypeError, DomainError

DEFAULT_SEED = 2601_03497  # the paper's arXiv number: any fixed public number does
_BLOCK = 4096


@dataclass(frozen=True, slots=True)
class TieKeys:
    """Keys k_ij ~ N(0, 1) as a fixed function of the seed, the variable's name and the row's id.

    The id is the value of the table's index (SEQN after :func:`dpsurvey.read_survey`), or the row's position
    where the index is pandas's default one. A position must be one that substituting a row leaves fixed: a
    file sorted by its data, or by an id that changes with the row, does not have such positions; give the
    rows an id index then. The privacy proof conditions on the keys, so the seed is public.

    Parameters
    ----------
    seed : int, default 260103497
        From 0 to 2**64 - 1. The same seed gives the same keys in every release.

    Raises
    ------
    ArgumentTypeError, ArgumentError
        If the seed is not such an integer.

    Examples
    --------
    >>> keys = TieKeys(seed=1)
    >>> keys.normal("Kcal", pd.Index([10, 11, 12])).round(3)
    array([ 0.684, -0.09 ,  0.534])
    >>> keys.fingerprint == TieKeys(seed=1).fingerprint
    True
    """

    seed: int = DEFAULT_SEED

    def __post_init__(self) -> None:
        if isinstance(self.seed, bool) or not isinstance(self.seed, int | np.integer):
            raise ArgumentTypeError(
                "the key seed is not an integer", expected="0 to 2**64 - 1", got=type(self.seed).__name__
            )
        if not 0 <= self.seed < 2**64:
            raise ArgumentError("the key seed is out of range", expected="0 to 2**64 - 1", got=str(self.seed))
        object.__setattr__(self, "seed", int(self.seed))

    @property
    def fingerprint(self) -> str:
        """Short hash of the seed alone: a hash of ids or of row order would tell who is in the table."""
        return hashlib.sha256(b"dpsurvey tie keys " + self.seed.to_bytes(8, "little")).hexdigest()[:16]

    def hashes(self, variable: str, ids: pd.Index[Any]) -> NDArray[np.uint64]:
        """Return one 64-bit key a row, uniform over seeds: SipHash-2-4 of the id.

        Ordering rows by these integers is ordering them by :meth:`normal`, without its rounding.

        Parameters
        ----------
        variable : str
        ids : pandas.Index
            Integers (also whole floats) or text.

        Returns
        -------
        numpy.ndarray of uint64, shape (rows,)

        Raises
        ------
        DomainError
            If the ids are of another type.
        """
        material = b"dpsurvey tie keys\0" + self.seed.to_bytes(8, "little")
        material += variable.encode("utf-8", "surrogatepass")
        digest = hashlib.blake2b(material, digest_size=16).digest()
        key = int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:], "little")
        return siphash_2_4(id_words(ids), *key)

    def normal(self, variable: str, ids: pd.Index[Any]) -> NDArray[np.float64]:
        """Return the keys as standard normal numbers.

        Parameters
        ----------
        variable : str
        ids : pandas.Index

        Returns
        -------
        numpy.ndarray of float64, shape (rows,)
        """
        from scipy.special import ndtri

        upper = self.hashes(variable, ids) >> np.uint64(12)  # 52 bits: then no uniform number rounds to 1
        return np.asarray(ndtri((upper + 0.5) / 2.0**52), dtype=np.float64)


def id_words(ids: pd.Index[Any]) -> NDArray[np.uint64]:
    """Return ids as 64-bit words: integers as they are, text by its BLAKE2b hash.

    Whole floats count as integers, so an id keeps its key whether it was read as 71234 or 71234.0.

    Raises
    ------
    DomainError
        If the ids are neither whole numbers nor text.
    """
    if pd.api.types.is_unsigned_integer_dtype(ids.dtype):
        return ids.to_numpy(dtype=np.uint64)
    if pd.api.types.is_integer_dtype(ids.dtype):
        return ids.to_numpy(dtype=np.int64).view(np.uint64)
    problem = id_problem(ids)
    if problem is not None:
        raise DomainError(problem)
    if pd.api.types.is_float_dtype(ids.dtype):
        return ids.to_numpy(dtype=np.float64).astype(np.int64).view(np.uint64)
    return np.fromiter((_text_word(value) for value in ids), dtype=np.uint64, count=len(ids))


def id_problem(ids: pd.Index[Any]) -> str | None:
    """Return why the ids of a table cannot have keys, or None where they can; never a value.

    Examples
    --------
    >>> id_problem(pd.Index([71234, 71235])) is None
    True
    >>> id_problem(pd.Index([0.5, 1.5]))
    'row ids in the index (float64) are neither whole numbers nor text; set_index an id, or reset_index(drop=True)'
    """
    if pd.api.types.is_integer_dtype(ids.dtype):
        return None
    if pd.api.types.is_float_dtype(ids.dtype):
        values = ids.to_numpy(dtype=np.float64)
        fine = bool(np.all((values == np.floor(values)) & (np.abs(values) < 2.0**53)))
    else:
        fine = all(isinstance(value, str) for value in ids)
    if fine:
        return None
    return (
        f"row ids in the index ({ids.dtype}) are neither whole numbers nor text; set_index an id, or "
        "reset_index(drop=True)"
    )


def _text_word(value: str) -> int:
    material = value.encode("utf-8", "surrogatepass")  # any text has a key
    return int.from_bytes(hashlib.blake2b(material, digest_size=8).digest(), "little")


def siphash_2_4(words: NDArray[np.uint64], k0: int, k1: int) -> NDArray[np.uint64]:
    """Return SipHash-2-4 (Aumasson and Bernstein, 2012) of each 8-byte word under the key (k0, k1).

    Parameters
    ----------
    words : numpy.ndarray of uint64, shape (rows,)
    k0, k1 : int
        The two halves of the 128-bit key.

    Returns
    -------
    numpy.ndarray of uint64, shape (rows,)

    Examples
    --------
    >>> word = np.array([0x0706050403020100], dtype=np.uint64)  # test vector of the authors, length 8
    >>> hex(siphash_2_4(word, 0x0706050403020100, 0x0F0E0D0C0B0A0908)[0])
    '0x93f5f5799a932462'
    """
    hashes = np.empty_like(words)
    for start in range(0, len(words), _BLOCK):  # blocks that stay in the processor's cache
        block = slice(start, start + _BLOCK)
        hashes[block] = _siphash_block(words[block], k0, k1)
    return hashes


def _siphash_block(words: NDArray[np.uint64], k0: int, k1: int) -> NDArray[np.uint64]:
    initial = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)
    v = [np.full(words.shape, c ^ k, dtype=np.uint64) for c, k in zip(initial, (k0, k1, k0, k1), strict=True)]
    length = np.uint64(8 << 56)
    for message in (words, length):
        v[3] ^= message
        _sip_rounds(v, 2)
        v[0] ^= message
    v[2] ^= np.uint64(0xFF)
    _sip_rounds(v, 4)
    return np.asarray(v[0] ^ v[1] ^ v[2] ^ v[3])


def _sip_rounds(v: list[NDArray[np.uint64]], rounds: int) -> None:
    for _ in range(rounds):
        _half_round(v, 0, 1, 2, 3, 13, 16)
        _half_round(v, 2, 1, 0, 3, 17, 21)


def _half_round(v: list[NDArray[np.uint64]], a: int, b: int, c: int, d: int, s: int, t: int) -> None:
    v[a] += v[b]
    v[c] += v[d]
    _rotate(v[b], s)
    _rotate(v[d], t)
    v[b] ^= v[a]
    v[d] ^= v[c]
    _rotate(v[a], 32)


def _rotate(x: NDArray[np.uint64], bits: int) -> None:
    wrapped = x >> np.uint64(64 - bits)
    x <<= np.uint64(bits)
    x |= wrapped
