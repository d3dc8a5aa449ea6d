"""Remediation of a context that has grown too long."""

import os

# Read when numpy is first imported. Its threads wait by spinning: of a text's embedding they took a third of all
# processor time (46 ms of two cores in place of 29 of one) and made it no faster, since workers share their cores with
# other processes.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
