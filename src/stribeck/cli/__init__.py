"""The command line: ``stribeck COMMAND`` parses options, calls the library and prints results."""
