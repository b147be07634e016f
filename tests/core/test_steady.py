from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import gc, sys, weakref
from core.steady import answer_evenly

class Node: pass

loaded = [Node() for _ in range(1000)]
answer_evenly()
assert gc.get_freeze_count() > 1000, "what is loaded is left out"
assert not any(o is loaded for o in gc.get_objects())
assert sys.getswitchinterval() < 0.005
later = Node()
later.itself, seen = later, weakref.ref(later)
del later
gc.collect()
assert seen() is None, "what comes later is collected"
"""


def test_what_is_loaded_is_not_searched_for_garbage_and_what_comes_later_is() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
