"""What recording costs: `python -m mlx_memviz.bench`.

One module a benchmark; each has `run(options)`, which yields results as they are measured. Everything is measured in pairs:
short bursts with and without recording take turns in one process, so that a machine that is busy or changes its clock
disturbs both alike. Reported are the median over the rounds and the quartiles. Needs MLX, on the CPU or a GPU.
"""
