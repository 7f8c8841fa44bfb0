"""Declarations that analysts buy where the policy says "private": bounds and keys of a column, a limit on rows."""

from noisette.curator.purchases.purchase import (
    Purchase,
    Shop,
    Terms,
    What,
    for_sale,
    found,
    from_files,
    purchase_question,
    settled,
)

__all__ = ["Purchase", "Shop", "Terms", "What", "for_sale", "found", "from_files", "purchase_question", "settled"]
