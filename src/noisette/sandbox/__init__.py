"""Running an analyst's function on blocks of private rows, apart from each other and from the world.

    payload    the function as bytes, and the modules that it needs
    dividing   which unit is in which blocks, and the rows of each
    running    waves of blocks in slots of public length, one helper process for all of them
    runner     that process: it forks a child for each block and never sees a row
    child      reads its block, closes the world behind itself, calls the function, writes a few bytes
    sandbox    how the world is closed: a list of the few system calls that are left (`syscalls`)

Private aggregates of what the blocks gave are in `noisette.releases.blocks`.

What it protects from, and what it does not, stands in docs/apply.md.
"""
