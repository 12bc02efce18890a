"""Start `perdure.keeper.sqlite_holder` under its former name.

A keeper that was running before the module was renamed starts SQLite sessions as
`python -m perdure.keeper.sqliteholder`, also after perdure was upgraded in its place.
"""

import runpy

if __name__ == "__main__":
    runpy.run_module("perdure.keeper.sqlite_holder", run_name="__main__", alter_sys=True)
