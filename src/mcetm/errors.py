"""The one exception that stands for a mistake the user can mend."""


class UserError(Exception):
    """A missing file, an unknown name, unusable data: one clear sentence says what and where.

    The command line prints the sentence and exits with code 2; nothing else is ever reported
    that way, so a traceback always means a bug of ours.
    """
