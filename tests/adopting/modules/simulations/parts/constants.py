"""What imports what imports it."""

from . import energies

HALF = 0.5
USER = energies.__name__
