#!/usr/bin/env python
"""Command line of a checkout: ``python manage.py up`` starts everything, from whatever folder it was called."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from dominds.__main__ import main

if __name__ == "__main__":
    main()
