"""Exact samplers: integers in, integers out, random bytes from one source and nothing rounded."""
