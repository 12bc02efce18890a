"""Workers: real processes that carry tasks on."""
