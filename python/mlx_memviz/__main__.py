"""`python -m mlx_memviz`: the same as the command `memviz`."""

import sys

from mlx_memviz._command import main

sys.exit(main())
