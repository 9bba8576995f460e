"""Several calls in progress on one thread, in turns: each array must have the stack of its own, not of another.

interleaved.py greenlet|asyncio|generators
"""

import asyncio
import sys
from pathlib import Path

import harness
import mlx.core as mx

import mlx_memviz

TURNS, TASKS = 20, 4


def build(task: int) -> None:
    mx.eval(mx.zeros((1000 + task,)))  # L:build


def task_0(task, pause):
    for _ in range(TURNS):
        build(task)  # L:0
        pause()


def task_1(task, pause):
    for _ in range(TURNS):
        build(task)  # L:1
        pause()


def task_2(task, pause):
    for _ in range(TURNS):
        build(task)  # L:2
        pause()


def task_3(task, pause):
    def deeper(levels):
        if levels:
            return deeper(levels - 1)
        pause()
        build(task)  # L:3
        pause()

    for _ in range(TURNS):
        deeper(10)


def with_greenlets():
    import greenlet

    main = greenlet.getcurrent()
    functions = (task_0, task_1, task_2, task_3)
    running = [greenlet.greenlet(lambda f=f, n=n: f(n, main.switch)) for n, f in enumerate(functions)]
    while any(not one.dead for one in running):
        for one in running:
            one.switch()


async def async_task(task):
    for _ in range(TURNS):
        build(task)  # L:coroutine
        await asyncio.sleep(0)


async def gathered():
    await asyncio.gather(*(async_task(number) for number in range(TASKS)))


def generator(task):
    for _ in range(TURNS):
        build(task)  # L:generator
        yield


def with_generators():
    running = [generator(number) for number in range(TASKS)]
    for _ in range(TURNS):
        for one in running:
            next(one)


how = sys.argv[1]
with mlx_memviz.record() as recording:
    {"greenlet": with_greenlets, "asyncio": lambda: asyncio.run(gathered()), "generators": with_generators}[how]()
callers = {"greenlet": ["0", "1", "2", "3"], "asyncio": ["coroutine"] * TASKS, "generators": ["generator"] * TASKS}[how]
right = wrong = 0
for event in recording.events():
    task = event["requested"] // 4 - 1000
    if not harness.is_alloc(event) or not 0 <= task < TASKS:
        continue
    lines = [line for file, _, line in event["traceback"] if Path(file) == Path(__file__)]
    expected = [harness.marked_line(__file__, callers[task]), harness.marked_line(__file__, "build")]
    others = {harness.marked_line(__file__, marker) for marker in set(callers)} - {expected[0]}
    if lines[-2:] == expected and not others & set(lines):
        right += 1
    else:
        wrong += 1
harness.finish(right=right, wrong=wrong, expected=TURNS * TASKS, check=recording.check())
