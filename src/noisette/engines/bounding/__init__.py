"""Contribution bounding: which rows of a unit count, by limits on its groups, its rows in each, and its rows in all.

A unit (a person, a household) may own any number of rows, and noise hides one unit only if what it adds is bounded.
`retained` says which rows these are. Every group of a unit and every row has a keyed tag; the smallest are retained:

    group tag  g = AES_k1(unit ‖ group)                 ranked within the unit by (first 8 bytes of g, group)
    row tag    r = AES_k2(g ⊕ (0 ‖ hash of the row))    ranked by (first 8 bytes of r, hash of the row, group)

k1 and k2 are AES_key(1) and AES_key(2), so the row tag is a CBC-MAC of one fixed length under two independent keys.
Rows of one pair with equal hashes are alike but still several: they are numbered, and the number changes the hash, so
that each of a hundred equal rows has the same chance as the one that is different.

**Stability.** The choice for a unit is a function of the key and of that unit's rows alone: not of other units, nor of
the order of the rows. A unit that comes or goes changes the bounded table by its own retained rows and by nothing
else, and those obey the limits. This holds for every key, a published one too, so privacy does not rest on the secret.

**Groups with one number.** A group of unknown keys is numbered by a public hash, so somebody can write two groups that
share a number. A unit that has two such groups numbers all of its own groups instead, 0, 1, …, in ascending order of
their keys: NULL last, text by its bytes, FALSE before TRUE. That, too, depends on its own rows alone.

**What the secret is for.** Without the key the tags look like coins, so nobody who writes rows into the table can
arrange that theirs, or somebody else's, are retained, and each group of a unit is retained equally often.

How it is fast: owner, tag and group are packed into 64-bit keys, which NumPy sorts without carrying positions along.
The sorted keys give one threshold per owner, and a row is retained if its key is not above its owner's. A tag cut to
fit may tie with its neighbour across the threshold: those owners are *contested* and settled by the whole tags.

`choice` the bounds one after the other, and the one on groups if there are few · `keys` keyed tags, packed keys
and where they are cut · `words` sorted 64-bit words.

Vocabulary: `owner` number 0, 1, … of who is bounded (a unit, or a pair) · `pair` a unit and one of its groups ·
`layout` the bits of a key, high to low: owner, tag, code · `crowded` an owner that has more than its bound.
"""

from noisette.engines.bounding.choice import MOST_GROUPS, Content, first_groups, own_groups, retained
from noisette.engines.bounding.words import dense, firsts

__all__ = ["MOST_GROUPS", "Content", "dense", "first_groups", "firsts", "own_groups", "retained"]
