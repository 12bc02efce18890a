"""Start `perdure.keeper.sqlite_holder` under its former name.

A keeper that was running before the module was renamed starts SQLite sessions as
`python -m perdure.keeper.sqliteholder`, also after perdure was upgraded in its place.
"""

from perdure.keeper.session import read_config
from perdure.keeper.sqlite_holder.__main__ import main

if __name__ == "__main__":
    main(read_config())
