"""What a loop's body or a staged function reads besides its arguments: frozen, put back, watched for changes.

May import: words, travelling, recording.
"""
