"""Pure parts of images: recipes, patches, build contexts, gates, layers. Reads nothing itself."""
