"""The program `steelyard`, also as `python -m steelyard`."""

from steelyard.ground.interrupt import on_interrupt


def main() -> None:
    """Run the program; Ctrl-C is heard before the rest of it is imported."""
    on_interrupt()
    from steelyard.cli import main as run

    run()


if __name__ == "__main__":
    main()
