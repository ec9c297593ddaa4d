"""The program `steelyard`, also as `python -m steelyard`."""

import atexit
import gc
import os

from steelyard.ground.interrupt import on_interrupt

# Objects that are made before the garbage collector looks for cycles. A command makes hundreds of thousands that live
# until it ends (modules, traced graphs), and Python's 700 would have them gone through again and again.
_OBJECTS_BETWEEN_COLLECTIONS = 50_000


def main() -> None:
    """Run the program; Ctrl-C is heard before the rest of it is imported."""
    on_interrupt()
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS, 20, 20)
    atexit.register(gc.freeze)  # nor need it go through all of them at the end, when memory is given back anyway
    # No command draws with MuJoCo: without this it loads a library for windows with itself.
    os.environ.setdefault("MUJOCO_GL", "disable")
    from steelyard.cli import main as run

    run()


if __name__ == "__main__":
    main()
