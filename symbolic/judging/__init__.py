"""Is a claimed formula right: normal forms, samples, the smallest counterexample, hints."""
