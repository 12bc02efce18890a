"""What type checkers see of perdure: the user's own signatures, whole."""
