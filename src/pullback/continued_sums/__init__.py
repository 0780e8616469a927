"""Generated reverses that continue sums of cotangents: later readers of the stage's arguments have begun them.

May import: words, recording, staging.statements, staging.generated.
"""
