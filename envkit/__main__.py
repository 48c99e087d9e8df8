"""Run `python -m envkit` as `envkit`."""

from envkit.cli import main

if __name__ == "__main__":
    main()
