       seq, line, parent, base, at, label, cause, depth, author, size, stored, chain_size, chain_length, position,
       valid, superseded, pinned, chunks, frame
