"""The command line: ``stribeck <verb>`` parses options, calls the library and prints results."""
