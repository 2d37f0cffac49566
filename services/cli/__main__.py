"""`python -m services.cli`: the command line without the console script."""

from services.cli.main import main

if __name__ == "__main__":
    main()
