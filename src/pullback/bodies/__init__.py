"""What a loop's body reads besides its arguments: frozen at entry, put back, watched for changes.

May import: words, recording.
May be imported by: loops, solving.
"""
