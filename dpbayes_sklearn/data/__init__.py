"""Reading records: tables in memory, on disk or in dask, a chunk at a time."""
