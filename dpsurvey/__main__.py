"""``python -m dpsurvey``: the command line."""

from dpsurvey.cli import main

if __name__ == "__main__":
    main()
