"""Tie-breaking keys: a fixed function of seed, variable and id, and of nothing else."""

from __future__ import annotations

import inspect

import numpy as np
import pandas as pd
import pytest

from dpsurvey.confidential.ties import DEFAULT_SEED, TieKeys, id_problem, id_words, siphash_2_4
from dpsurvey.errors import ArgumentError, ArgumentTypeError, DomainError

# The authors' test vectors (key 00 01 .. 0f, message 00 01 .. of lengths 0 to 15), as 64-bit words.
PUBLISHED = [
    0x726FDB47DD0E0E31, 0x74F839C593DC67FD, 0x0D6C8009D9A94F5A, 0x85676696D7FB7E2D, 0xCF2794E0277187B7,
    0x18765564CD99A68D, 0xCBC9466E58FEE3CE, 0xAB0200F58B01D137, 0x93F5F5799A932462, 0x9E0082DF0BA9E4B0,
    0x7A5DBBC594DDB9F3, 0xF4B32F46226BADA7, 0x751E8FBC860EE5FB, 0x14EA5627C0843D90, 0xF723CA908E7AF2EE,
    0xA129CA6149BE45E5,
]  # fmt: skip
K0, K1 = 0x0706050403020100, 0x0F0E0D0C0B0A0908
MASK = 2**64 - 1


def plain_siphash(message: bytes, k0: int, k1: int) -> int:
    """SipHash-2-4 of a message of any length, in Python integers, written from the paper's description."""
    v = [k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573]

    def rotate(x: int, bits: int) -> int:
        return (x << bits | x >> (64 - bits)) & MASK

    def rounds(count: int) -> None:
        for _ in range(count):
            v[0] = (v[0] + v[1]) & MASK
            v[1] = rotate(v[1], 13) ^ v[0]
            v[0] = rotate(v[0], 32)
            v[2] = (v[2] + v[3]) & MASK
            v[3] = rotate(v[3], 16) ^ v[2]
            v[0] = (v[0] + v[3]) & MASK
            v[3] = rotate(v[3], 21) ^ v[0]
            v[2] = (v[2] + v[1]) & MASK
            v[1] = rotate(v[1], 17) ^ v[2]
            v[2] = rotate(v[2], 32)

    whole = len(message) // 8 * 8
    words = [int.from_bytes(message[i : i + 8], "little") for i in range(0, whole, 8)]
    words.append(int.from_bytes(message[whole:], "little") | (len(message) % 256) << 56)
    for word in words:
        v[3] ^= word
        rounds(2)
        v[0] ^= word
    v[2] ^= 0xFF
    rounds(4)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def test_the_plain_version_gives_the_published_vectors() -> None:
    assert [plain_siphash(bytes(range(length)), K0, K1) for length in range(16)] == PUBLISHED


def test_siphash_agrees_with_the_plain_version() -> None:
    rng = np.random.default_rng(1)
    words = np.concatenate(
        [rng.integers(0, 2**64, 200, dtype=np.uint64), np.array([0, 1, 2**63, 2**64 - 1], dtype=np.uint64)]
    )
    for k0, k1 in ((K0, K1), (0, 0), (MASK, MASK), (2**63, 5)):
        expected = [plain_siphash(int(word).to_bytes(8, "little"), k0, k1) for word in words]
        assert siphash_2_4(words, k0, k1).tolist() == expected


@pytest.mark.parametrize("rows", [0, 1, 4095, 4096, 4097, 10_000])
def test_siphash_does_not_depend_on_where_a_block_ends(rows: int) -> None:
    words = np.arange(rows, dtype=np.uint64)
    hashes = siphash_2_4(words, 1, 2)
    assert hashes.dtype == np.uint64
    picked = np.arange(0, rows, 997)
    assert np.array_equal(hashes[picked], siphash_2_4(words[picked], 1, 2))


def test_keys_are_standard_normal_and_independent_between_variables_and_seeds() -> None:
    """Monte Carlo errors: sd of a mean 1/sqrt(n), of a variance sqrt(2/n), of a correlation 1/sqrt(n)."""
    from scipy.stats import kstest

    n = 200_000
    ids = pd.RangeIndex(n)
    keys = {
        "x": TieKeys().normal("x", ids),
        "y": TieKeys().normal("y", ids),
        "x, other seed": TieKeys(seed=1).normal("x", ids),
        "next ids": TieKeys().normal("x", pd.RangeIndex(1, n + 1)),
    }
    for values in keys.values():
        assert values.mean() == pytest.approx(0, abs=4.5 / np.sqrt(n))
        assert values.var() == pytest.approx(1, abs=4.5 * np.sqrt(2 / n))
        assert np.mean(values**4) == pytest.approx(3, abs=4.5 * np.sqrt(96 / n))
        assert kstest(values, "norm").pvalue > 1e-3
    correlations = np.corrcoef(list(keys.values()))[np.triu_indices(len(keys), 1)]
    assert np.abs(correlations).max() < 4.5 / np.sqrt(n)


def test_normal_keys_are_finite_and_in_the_order_of_the_hashes(monkeypatch) -> None:
    extremes = np.array([0, 1, 2**12, 2**63, 2**64 - 2**12, 2**64 - 1], dtype=np.uint64)
    monkeypatch.setattr(TieKeys, "hashes", lambda self, variable, ids: extremes)
    values = TieKeys().normal("x", pd.RangeIndex(6))
    assert np.isfinite(values).all()
    assert (np.diff(values) >= 0).all()
    assert values[0] == -values[-1] < -8


SAME_IDS = {
    "int64": pd.Index([83732, 5, 102956]),
    "int32": pd.Index(np.array([83732, 5, 102956], dtype="int32")),
    "uint32": pd.Index(np.array([83732, 5, 102956], dtype="uint32")),
    "uint64": pd.Index(np.array([83732, 5, 102956], dtype="uint64")),
    "float64": pd.Index([83732.0, 5.0, 102956.0]),
    "float32": pd.Index(np.array([83732, 5, 102956], dtype="float32")),
    "Int64": pd.Index(pd.array([83732, 5, 102956], dtype="Int64")),
    "UInt64": pd.Index(pd.array([83732, 5, 102956], dtype="UInt64")),
    "Float64": pd.Index(pd.array([83732, 5, 102956], dtype="Float64")),
    "named": pd.Index([83732, 5, 102956], name="SEQN"),
}


@pytest.mark.parametrize("dtype", SAME_IDS)
def test_an_id_keeps_its_key_however_it_was_read(dtype: str) -> None:
    keys = TieKeys()
    assert keys.hashes("x", SAME_IDS[dtype]).tolist() == keys.hashes("x", SAME_IDS["int64"]).tolist()


@pytest.mark.parametrize("dtype", ["int64[pyarrow]", "int32[pyarrow]", "uint64[pyarrow]", "double[pyarrow]"])
def test_an_id_keeps_its_key_in_arrow(dtype: str) -> None:
    pytest.importorskip("pyarrow", reason="Arrow columns need pyarrow")
    ids = pd.Index(pd.array([83732, 5, 102956], dtype=dtype))
    assert TieKeys().hashes("x", ids).tolist() == TieKeys().hashes("x", SAME_IDS["int64"]).tolist()


def test_keys_belong_to_ids_and_not_to_rows() -> None:
    ids = pd.Index(np.random.default_rng(1).permutation(10_000)[:500])
    keys = TieKeys().hashes("x", ids)
    order = np.random.default_rng(2).permutation(500)
    assert np.array_equal(TieKeys().hashes("x", ids[order]), keys[order])
    assert np.array_equal(TieKeys().hashes("x", ids[:7]), keys[:7])
    assert len(set(keys.tolist())) == 500


def test_default_positions_are_ids_from_zero() -> None:
    assert np.array_equal(
        TieKeys().hashes("x", pd.RangeIndex(50)), TieKeys().hashes("x", pd.Index(range(50)))
    )
    assert not np.array_equal(
        TieKeys().hashes("x", pd.RangeIndex(50)), TieKeys().hashes("y", pd.RangeIndex(50))
    )


def test_large_and_negative_ids_stay_apart() -> None:
    unsigned = pd.Index(np.array([2**63, 2**63 + 1, 2**64 - 1, 0], dtype=np.uint64))
    nullable = pd.Index(pd.array([2**63, 2**63 + 1, 2**64 - 1, 0], dtype="UInt64"))
    assert id_words(unsigned).tolist() == id_words(nullable).tolist() == [2**63, 2**63 + 1, 2**64 - 1, 0]
    negative = pd.Index([-(2**63), -1, 0, 2**63 - 1])
    assert len(set(id_words(negative).tolist())) == 4


def test_text_ids() -> None:
    names = ["a", "b", "é", "", "a\x00", "日本", "\udc80", "A" * 10_000]
    keys = TieKeys().hashes("x", pd.Index(names, dtype=object))
    assert len(set(keys.tolist())) == len(names)
    assert np.array_equal(TieKeys().hashes("x", pd.Index(names[:6], dtype="string")), keys[:6])
    assert np.array_equal(TieKeys().hashes("x", pd.CategoricalIndex(["b", "a"])), keys[[1, 0]])
    assert TieKeys().hashes("x", pd.Index(["5"])).tolist() != TieKeys().hashes("x", pd.Index([5])).tolist()


def test_any_text_can_be_a_variable() -> None:
    ids = pd.RangeIndex(3)
    seen = {
        tuple(TieKeys().hashes(name, ids).tolist())
        for name in ("", "x", "X", "x ", "é", "\udc80", "a * b ~ c")
    }
    assert len(seen) == 7


@pytest.mark.parametrize(
    "ids",
    [
        pd.Index([0.5, 1.5]), pd.Index([1.0, np.inf]), pd.Index([1.0, np.nan]), pd.Index([2.0**53, 1.0]),
        pd.Index([1, "a"], dtype=object), pd.Index([1, 2], dtype=object), pd.Index([b"a", b"b"], dtype=object),
        pd.Index([None, "a"], dtype=object), pd.Index([True, False]), pd.date_range("2020", periods=2),
        pd.CategoricalIndex([424242, 5]), pd.IntervalIndex.from_breaks([1, 424242, 424243]), pd.Index([1j, 2j]),
    ],
    ids=lambda ids: str(ids.dtype),
)  # fmt: skip
def test_other_ids_are_refused_without_showing_one(ids: pd.Index) -> None:
    with pytest.raises(DomainError) as caught:
        TieKeys().hashes("x", ids)
    assert "neither whole numbers nor text" in str(caught.value)
    assert "424242" not in str(caught.value)
    assert caught.value.__cause__ is caught.value.__context__ is None
    assert id_problem(ids) is not None


@pytest.mark.parametrize("seed", [True, 1.0, "1", None, np.float64(2), [1]])
def test_seeds_of_another_type_are_refused(seed) -> None:
    with pytest.raises(ArgumentTypeError, match="seed"):
        TieKeys(seed=seed)


@pytest.mark.parametrize("seed", [-1, 2**64, 10**100])
def test_seeds_out_of_range_are_refused(seed: int) -> None:
    with pytest.raises(ArgumentError, match="seed"):
        TieKeys(seed=seed)


def test_seeds_at_the_ends_and_of_numpy_are_taken() -> None:
    assert TieKeys(seed=0) != TieKeys(seed=2**64 - 1)
    assert TieKeys(seed=np.int64(5)) == TieKeys(seed=np.uint64(5)) == TieKeys(seed=5)
    assert type(TieKeys(seed=np.int64(5)).seed) is int
    assert TieKeys() == TieKeys(seed=DEFAULT_SEED)


def test_the_fingerprint_is_of_the_seed_and_of_nothing_else() -> None:
    """A hash of ids or of row order would tell who is in the table: it has no way in."""
    assert list(inspect.signature(TieKeys).parameters) == ["seed"]
    prints = [TieKeys(seed=seed).fingerprint for seed in (0, 1, 2, DEFAULT_SEED, 2**64 - 1)]
    assert len(set(prints)) == 5
    assert all(len(text) == 16 and int(text, 16) >= 0 for text in prints)
    keys = TieKeys()
    before = keys.fingerprint
    keys.hashes("x", pd.RangeIndex(10))
    assert keys.fingerprint == before == TieKeys().fingerprint


def test_published_keys_never_change() -> None:
    """Releases made with an older version name their seed: the same seed must give the same splits for ever."""
    assert TieKeys().fingerprint == "24375c39047eeb99"
    assert TieKeys().hashes("DR1TKCAL", pd.Index([83732, 83733])).tolist() == [
        83075271409538250,
        8585539871744503081,
    ]
    assert TieKeys().hashes("DR1TKCAL", pd.Index(["83732", "a"])).tolist() == [
        17833597745659113814,
        13970632031763150307,
    ]
