"""Remediation of a context that has grown too long."""

import os

# Set before numpy is first imported, which reads it. The threads of OpenBLAS wait by spinning. They made embedding a
# text no faster, since workers share their cores with other processes, but took a third of all processor time: 46 ms on
# two cores instead of 29 on one.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
