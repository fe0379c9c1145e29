"""Is what the library says of uncertainty true? Every statement, in many worlds whose truth is known."""
