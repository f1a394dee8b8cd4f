"""`python -m felicity` is the command `felicity`."""

from felicity.cli import main

if __name__ == "__main__":
    main()
