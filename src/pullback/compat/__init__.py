"""Front ends for programs written for other libraries."""
