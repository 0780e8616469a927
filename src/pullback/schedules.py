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

from pullback.graph_schedules.chain_schedule import ChainSchedule as ChainSchedule
from pullback.graph_schedules.chain_schedule import optimal_chain as optimal_chain
from pullback.graph_schedules.graph_schedule import GraphSchedule as GraphSchedule
from pullback.graph_schedules.graph_schedule import optimal_graph as optimal_graph
from pullback.planning.long_runs import RunForecast as RunForecast
from pullback.planning.long_runs import forecast as forecast
from pullback.scheduling.actions import Action as Action
from pullback.scheduling.actions import Advance as Advance
from pullback.scheduling.actions import Delete as Delete
from pullback.scheduling.actions import EndForward as EndForward
from pullback.scheduling.actions import EndReverse as EndReverse
from pullback.scheduling.actions import Load as Load
from pullback.scheduling.actions import Record as Record
from pullback.scheduling.actions import Reverse as Reverse
from pullback.scheduling.actions import Save as Save
from pullback.scheduling.actions import Transfer as Transfer
from pullback.scheduling.drawing import draw as draw
from pullback.scheduling.machine import Machine as Machine
from pullback.scheduling.picture import Drawing as Drawing
from pullback.scheduling.schedule import Schedule as Schedule
from pullback.scheduling.simulator import Simulation as Simulation
from pullback.scheduling.simulator import play as play
from pullback.scheduling.simulator import simulate as simulate
