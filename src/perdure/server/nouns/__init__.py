"""The handlers, one file per noun; each declares its routes in `ROUTES`, which table.py gathers."""
