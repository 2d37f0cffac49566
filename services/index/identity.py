"""What an embedding is of: identity is a hash of the input, never of the vector (vectors are not bit-stable)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass


@dataclass(frozen=True)
class ModelIdentity:
    """One embedding model: its id, the SHA-256 of its weights (hex), and the dimension of its vectors."""

    model_id: str
    revision: str
    dimension: int


def content_hash(chunk_text: str, model: ModelIdentity) -> str:
    """SHA-256 (hex) over all that decides a vector: model id, revision, dimension and the text."""
    # The backend is left out on purpose: one that passed its drift check (see embedder_drift) gives the same vector
    # for every use here (cosine .9999 between float32 and bfloat16 weights), so a change of processor embeds nothing.
    head = f"{model.model_id}\x00{model.revision}\x00{model.dimension}\x00"
    return hashlib.sha256(head.encode() + chunk_text.encode()).hexdigest()
