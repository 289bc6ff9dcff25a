"""The privacy audit: ``python -m benchmarks.audit`` tries every layer and prints one table.

A layer is a module of this folder with a function ``run(scale)`` that yields rows: ``scale`` 1 is
the whole audit, less is the same with fewer cases.
"""
