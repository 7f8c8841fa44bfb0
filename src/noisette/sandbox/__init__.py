"""Running an analyst's function on blocks of private rows, apart from each other and from the world.

    payload    the function as bytes, and the modules that it needs
    dividing   which unit is in which blocks, and the rows of each
    running    waves of blocks in slots of public length, one helper process for all of them
    runner     that process, which never sees a row: it forks a child for each block, which calls the function
    sandbox    how the world is closed behind a child: a list of the few system calls that are left

Private aggregates of what the blocks gave are in `noisette.releases.blocks`.

What it protects from, and what it does not, stands in docs/apply.md.
"""
