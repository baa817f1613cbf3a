"""What a column is, decided by the likelihood of values held out from it; pure NumPy.

`choice.decide` lets categories, ordered values, even grids and real numbers compete on one base
measure, with the scale and the atoms that suit each. `aside.find` names columns that hold nothing
to model. A `Decision` says what won, where limits and tails are, and why. It imports no other room.
"""
