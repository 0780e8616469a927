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

from pullback.instruments.planning.long_runs import RunForecast as RunForecast
from pullback.instruments.planning.long_runs import forecast as forecast
from pullback.scheduling.graphs.chain_schedule import ChainSchedule as ChainSchedule
from pullback.scheduling.graphs.chain_schedule import optimal_chain as optimal_chain
from pullback.scheduling.graphs.graph_schedule import GraphSchedule as GraphSchedule
from pullback.scheduling.graphs.graph_schedule import optimal_graph as optimal_graph
from pullback.scheduling.machine.actions import Action as Action
from pullback.scheduling.machine.actions import Advance as Advance
from pullback.scheduling.machine.actions import Delete as Delete
from pullback.scheduling.machine.actions import EndForward as EndForward
from pullback.scheduling.machine.actions import EndReverse as EndReverse
from pullback.scheduling.machine.actions import Load as Load
from pullback.scheduling.machine.actions import Record as Record
from pullback.scheduling.machine.actions import Reverse as Reverse
from pullback.scheduling.machine.actions import Save as Save
from pullback.scheduling.machine.actions import Transfer as Transfer
from pullback.scheduling.machine.drawing import draw as draw
from pullback.scheduling.machine.machine import Machine as Machine
from pullback.scheduling.machine.picture import Drawing as Drawing
from pullback.scheduling.machine.schedule import Schedule as Schedule
from pullback.scheduling.machine.simulator import Simulation as Simulation
from pullback.scheduling.machine.simulator import play as play
from pullback.scheduling.machine.simulator import simulate as simulate
