"""`python -m bringup`."""

from .doors.cli import main

if __name__ == "__main__":
    main()
