"""Declarations that analysts buy where the policy says "private": bounds and keys of a column, a limit on rows."""

from noisette.curator.purchases.purchase import Purchase, What, from_files
from noisette.curator.purchases.sale import Terms, for_sale, found, purchase_question
from noisette.curator.purchases.shop import Shop, settled

__all__ = ["Purchase", "Shop", "Terms", "What", "for_sale", "found", "from_files", "purchase_question", "settled"]
