"""Schedules for people who write or study policies: the actions, the machine that checks them, the simulator, the
diagram; what runs of any length cost; the best schedules of chains and graphs of unequal operations.

>>> from pullback.policies.binomial import Binomial
>>> from pullback.schedules import simulate
>>> print(simulate(Binomial(2).schedule(6), 6, state_bytes=800, tape_bytes=100))
schedule of 6 steps, 30 actions
  cost           14
  n_forward      14  (2.33 per step)
  peak_slots     2
  n_writes       3
  n_reads        5
  peak_bytes     1700
  working_bytes  800
"""

# ruff: noqa: PLC0414  X as X re-exports a name explicitly

from pullback.graphs.chain_schedule import ChainSchedule as ChainSchedule
from pullback.graphs.chain_schedule import optimal_chain as optimal_chain
from pullback.graphs.graph_schedule import GraphSchedule as GraphSchedule
from pullback.graphs.graph_schedule import optimal_graph as optimal_graph
from pullback.machine.actions import Action as Action
from pullback.machine.actions import Advance as Advance
from pullback.machine.actions import Delete as Delete
from pullback.machine.actions import EndForward as EndForward
from pullback.machine.actions import EndReverse as EndReverse
from pullback.machine.actions import Load as Load
from pullback.machine.actions import Record as Record
from pullback.machine.actions import Reverse as Reverse
from pullback.machine.actions import Save as Save
from pullback.machine.actions import Transfer as Transfer
from pullback.machine.drawing import draw as draw
from pullback.machine.machine import Machine as Machine
from pullback.machine.picture import Drawing as Drawing
from pullback.machine.schedule import Schedule as Schedule
from pullback.machine.simulator import Simulation as Simulation
from pullback.machine.simulator import play as play
from pullback.machine.simulator import simulate as simulate
from pullback.planning.long_runs import RunForecast as RunForecast
from pullback.planning.long_runs import forecast as forecast
