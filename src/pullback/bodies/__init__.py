"""What a loop's body or a staged function reads besides its arguments: frozen, put back, watched for changes.

May import: words, travelling, recording.
May be imported by: loops, resuming, solving, staged_functions, nested_derivatives, staged_pulls.
"""
