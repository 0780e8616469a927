"""Memory policies: one per file, with the actions they speak, the machine that checks them and the simulator that prices them.

Nothing here knows of arrays: a policy sees a chain of steps with sizes and costs and yields actions.
"""
