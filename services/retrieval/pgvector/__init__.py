"""Retrieval's reads in PostgreSQL with pgvector."""
