"""The command line: ``stribeck <verb>`` parses, calls, prints."""
