"""Gradient cases, family by family."""
