"""What goes on now: streams, units, the inbox, the first page of a dashboard, kill switches."""
