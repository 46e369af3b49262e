"""Clips as encoders and containers make them: a corpus for decoders, damage, and the boxes of MP4 that crop and turn a clip."""
