"""`python -m tierrank` is the `tierrank` command."""

from tierrank.cli import main

if __name__ == "__main__":
    main()
