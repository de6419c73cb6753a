"""``python -m phaze`` is the ``phaze`` command."""

from phaze.cli.main import main

main()
