"""Pictures: pixel formats, colours, and the steps that crop, turn and scale them. Read `crop` first, a typical step."""
