"""Operations that repeat, as generated functions that are compared with what the user's code does."""
