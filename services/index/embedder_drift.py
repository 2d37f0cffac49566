"""Whether a faster backend still gives the model's vectors: fixed texts, compared with the reference in float32."""

from __future__ import annotations

import numpy as np

from services.index.store import Vectors

QUERY = "query"  # queries through the exported model
BFLOAT16 = "bfloat16"  # documents with weights in bfloat16

# The least cosine that each text must reach. Float32 elsewhere differs by rounding only (1e-7 measured), so what is
# below has other tokens, another pooling or another model. Eight bits of mantissa cost 1e-4 (.9999 measured), which
# leaves the order of results alone; a cosine of .99 changes the first result of every fourth question.
REQUIRED_COSINE = {QUERY: 0.9999, BFLOAT16: 0.999}

# Ways to go astray: lengths, cutting at the limit, case, accents, other scripts, markers, blanks, nothing at all.
DRIFT_TEXTS = (
    "net revenue by region",
    "Which table holds the customer orders and their booking dates?",
    "cust_ord_hdr_v2: fctBookingEUR, qty_nbr, ISO 4217",
    "Table orders in the schema sales. One row per order with its customer, currency, amount and shipping address."
    " It is certified and a critical data element. Columns: order id, customer id, booked at, amount, currency code.",
    "ÜBERSICHT der Umsätze nach Größe, déjà réglé, İstanbul",
    "顧客注文テーブル заказы клиентов طلبات العملاء",
    "📈 growth 🚀 rate ½ ﬁnal Ⅳ",
    "  leading, trailing\tand\nbroken  blanks  ",
    "[CLS] a marker [SEP] in the text [MASK]",
    "x",
    "",
    " ".join(f"column_{number} of the ledger" for number in range(200)),
)


def lowest_cosine(found: Vectors, reference: Vectors) -> float:
    """The cosine of the pair of rows that differ most, all of unit length; -1 where a number is missing."""
    cosines = np.einsum("ij,ij->i", found.astype(np.float64), reference.astype(np.float64))
    return float(np.nan_to_num(cosines, nan=-1.0).min())
