"""Pictures: pixel formats, colours, and the steps that crop, turn and scale them. Read `steps.Crop` first, a typical step."""
