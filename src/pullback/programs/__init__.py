"""Programs without a loop function: marked steps and plain code, under a policy."""
