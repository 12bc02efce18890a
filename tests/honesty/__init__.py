"""Random faults over every kind of unit, and each verdict compared with evidence from outside.

plan.py      a seed → which units, in which state, and which faults in which order (pure)
agent.py     the process that makes the units, and the one that opens them again
faults.py    carries the faults out
evidence.py  what /proc, the database server and the files say, without asking perdure
oracle.py    what was told + the evidence → violations (pure)
rounds.py    one round from its seed to its violations
mutants.py   perdure with one rule switched off, which some round must notice
"""
