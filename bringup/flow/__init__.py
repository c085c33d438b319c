"""Everything that acts in order: gather, plan, apply, and the flows of images, bundles, serving."""
