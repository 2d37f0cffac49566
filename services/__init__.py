"""Vouch: a trustworthy semantic index of a data catalog."""
