"""Durable charges per second, by 1 and by 8 processes, beside what the disk itself can do."""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import time
from pathlib import Path

from dpbayes_sklearn.privacy import BudgetAccountant

CHARGES = 800
FORK = multiprocessing.get_context("fork")


def charge(accountant: BudgetAccountant, times: int) -> None:
    for _ in range(times):
        accountant.spend(0.1, label="BayesianNaiveBayes, laplace, record")


def charges_per_second(accountant: BudgetAccountant, processes: int) -> float:
    already, start = len(accountant), time.perf_counter()
    workers = [
        FORK.Process(target=charge, args=(accountant, CHARGES // processes))
        for _ in range(processes)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    seconds = time.perf_counter() - start
    assert len(accountant) == already + CHARGES
    return CHARGES / seconds


def syncs_per_second(path: Path) -> float:
    """Return how often this disk can make 4 KB durable: a floor that no ledger can go below."""
    with path.open("wb", buffering=0) as file:
        start = time.perf_counter()
        for _ in range(CHARGES):
            file.write(bytes(4096))
            os.fsync(file.fileno())
        return CHARGES / (time.perf_counter() - start)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        accountant = BudgetAccountant(path=Path(folder) / "ledger")
        print(f"{'write + fsync of 4 KB':30} {syncs_per_second(Path(folder) / 'file'):8,.0f} / s")
        for processes in (1, 8):
            rate = charges_per_second(accountant, processes)
            print(f"{f'charges, {processes} process(es)':30} {rate:8,.0f} / s")
        rate = charges_per_second(BudgetAccountant(), 1)
        print(f"{'without a path, 1 process':30} {rate:8,.0f} / s")
        charge(accountant, 10_000 - len(accountant))
        start = time.perf_counter()
        charge(accountant, 200)
        rate = 200 / (time.perf_counter() - start)
        print(f"{'charges after 10,000 entries':30} {rate:8,.0f} / s")
        start = time.perf_counter()
        BudgetAccountant(path=accountant.path)
        print(f"opening and checking 10,200 entries {time.perf_counter() - start:.2f} s")


if __name__ == "__main__":
    main()
