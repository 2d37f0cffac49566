"""Runs of the golden queries in PostgreSQL."""
