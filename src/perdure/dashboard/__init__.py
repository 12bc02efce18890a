"""The dashboard: pages over the HTTP API, served by the server itself, without a build step.

`pages()` gives the routes of the documents and the assets; `make_app(pages=…)` adds them to a server. The browser
gets one static shell with boot data (shell.py); everything else it reads from /v1, as any client can.

How to add something, by kind (paths are below assets/):

    a page        app/pages/NAME.js with `export default function Page({place})`, and a line in PAGES of app/router.js;
                  addresses the server must answer with the shell: DOCUMENTS in routes.py
    a tab         app/task/NAME.js with `export default function Tab({task})`, and a line in TABS of app/task/tabs.js
    a part        app/parts.js when two pages need it, else beside its page. Props are typed by JSDoc
    a text        app/say/AREA.js: every word a person reads, as a constant or a function. None in a template
    an API call   app/api.js `get(path)`, `send(method, path, body)`: errors become `Problem` with detail, kept, do.
                  What several parts show lives in a signal of app/store.js, keyed by uid
    live data     app/stream.js `follow(topics, handlers)` inside an effect of the page; it ends with the page
    a value       app/values/value.js `Value`: any JSON, for reading. app/forms/form.js `Form`: any schema, for writing
    a dialog      app/dialog.js `openDialog(Component, props)`, whose component draws a `Dialog`; verbs of a task are
                  in app/verbs, opened by app/task/verbs.js `openVerb(verb, {task, onDone})`
    a key         app/keys.js `useKeys({j: …})` inside a component
    the terminal  frame/*.js and terminal.html run in a frame of their own origin; they import nothing of app/
    a style       css/NAME.css; all sheets are served as one. Colours only from css/tokens.css
    an icon       app/icons.js: a path of 16 units, stroked with currentColor

Rules that tests hold: no markup from data (text only), links from data through `safeHref`, no inline script or style
text, imports relative or in the import map, files of at most 300 lines, no request to another host. What a page needs
first is joined when the server starts (chunks.py), and so an import or export is one line that begins it. Lint checks
types, in templates too: `Api.NAME` is the schema of that name in openapi.json, and `get` knows what a path answers.
"""

from perdure._ground.lazy_door import lazy_door

__getattr__ = lazy_door(
    __name__,
    {
        "routes": ("pages",),
    },
)
