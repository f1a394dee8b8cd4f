"""`python -m felicity` is the command `felicity`."""

from felicity.cli.app import main

if __name__ == "__main__":
    main()
