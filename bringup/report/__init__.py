"""What was found and done, as text for people and as documents for machines."""
