"""`python -m noisette` is the command `noisette`."""

from noisette.cli import app

if __name__ == "__main__":
    app()
