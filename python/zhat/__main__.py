"""``python -m zhat``: the command."""

from zhat._command import main

main()
