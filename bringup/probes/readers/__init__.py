"""Pure parsers of what tools print, one file a tool. They name no thresholds and judge nothing.

None raises, whatever the text is: words that cannot be read are left out or kept as printed.
"""
