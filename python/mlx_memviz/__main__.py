"""`python -m mlx_memviz`: the same as the command `memviz`."""

import sys

from mlx_memviz._command import main

if __name__ == "__main__":
    sys.exit(main())
