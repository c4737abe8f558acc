# SPDX-License-Identifier: GPL-2.0
# `make bench` and `make test` do all the set-up they need; see docs/setup.md.

.PHONY: bench test test-all check setup
# The steps of a target follow each other, also under make -j.
.NOTPARALLEL:

bench: setup
	./pwb bench

# A guest has two CPUs and leaves them idle half of the time: one test per CPU, bounded by the guests' memory.
test: setup check
	./pwb build
	./pwb python -m pytest -n auto --maxprocesses 4 --dist worksteal -m "not long"

# The long ones, the guest tests once more on the preemptible debug kernel of the machine with many CPUs, and kernels broken
# on purpose: hours on two cores.
test-all: test
	./pwb python -m pytest -n auto --maxprocesses 4 --dist worksteal -m long
	./pwb python -m pytest tests/guest -n auto --maxprocesses 2 --dist worksteal --machine smp --cpus 4 --timeout 3600
	./pwb python -m pytest tests/guest -n auto --maxprocesses 2 --dist worksteal --machine smp --cpus 8 --timeout 3600
	./pwb cuts --kernel debug --fs xfs,ext4 --cuts 10000 --minutes 60
	./pwb mutants

check:
	./pwb python -m ruff check --quiet
	./pwb python -m ruff format --check --quiet
	./pwb python -m mypy

setup:
	setup/install.sh
	./pwb python -c ''
